/* Runs recorded calls of the native library, without Python: on platforms where there is none to test with.
 *
 *     driver LIBRARY CALLS RESULTS [INSTRUCTION_SET]
 *
 * release/calls.py records the calls. Each is a piece of memory that holds all structs and tensors of the call; a pointer
 * in it is an offset from its start, and `pointers` lists where they are. The results are parts of the memory after the
 * call, and are written one after the other. */
#include "slimrnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
static void *load(const char *path) { return (void *)LoadLibraryA(path); }
static void *find(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }
#else
#include <dlfcn.h>
static void *load(const char *path) { return dlopen(path, RTLD_NOW); }
static void *find(void *library, const char *name) { return dlsym(library, name); }
#endif

static void fail(const char *what) {
    fprintf(stderr, "driver: %s\n", what);
    exit(1);
}
static void *need(void *found, const char *what) {
    if (!found) fail(what);
    return found;
}

/* The functions of the library, as the header declares them. */
#define FUNCTION(name) __typeof__(slimrnn_##name) *name
static struct {
    FUNCTION(abi);
    FUNCTION(version);
    FUNCTION(compiler);
    FUNCTION(isa);
    FUNCTION(use_isa);
    FUNCTION(forward);
    FUNCTION(backward);
    FUNCTION(open);
    FUNCTION(step);
    FUNCTION(close);
} of;
#define FIND(name) of.name = (__typeof__(of.name))need(find(library, "slimrnn_" #name), "slimrnn_" #name " is missing")
static void find_all(void *library) {
    FIND(abi);
    FIND(version);
    FIND(compiler);
    FIND(isa);
    FIND(use_isa);
    FIND(forward);
    FIND(backward);
    FIND(open);
    FIND(step);
    FIND(close);
}

enum { FORWARD, BACKWARD, STEP };
typedef struct {
    int64_t kind, size, pointer_count, result_count;
    int64_t scan, scan_size, places, batch; /* places and batch: of a step */
} call;

static void get(void *to, size_t size, FILE *file) {
    if (size && fread(to, size, 1, file) != 1) fail("the file of calls is too short");
}

static int32_t take_step(const slimrnn_scan *scan, const slimrnn_places *places, int64_t batch) {
    void *handle = NULL;
    int32_t status = of.open(scan, &handle);
    if (status == SLIMRNN_OK) status = of.step(handle, NULL, batch, places);
    of.close(handle);
    return status;
}

static void run(FILE *calls, FILE *results) {
    call c;
    get(&c, sizeof c, calls);
    if (c.scan_size != (int64_t)sizeof(slimrnn_scan)) fail("slimrnn_scan has another size here than where it was recorded");
    int64_t *pointers = need(malloc(8 * (size_t)c.pointer_count + 8), "out of memory");
    int64_t *parts = need(malloc(16 * (size_t)c.result_count + 16), "out of memory");
    char *memory = need(malloc((size_t)c.size), "out of memory");
    get(pointers, 8 * (size_t)c.pointer_count, calls);
    get(parts, 16 * (size_t)c.result_count, calls);
    get(memory, (size_t)c.size, calls);
    for (int64_t i = 0; i < c.pointer_count; i++) {
        int64_t offset;
        memcpy(&offset, memory + pointers[i], sizeof offset);
        char *target = memory + offset;
        memcpy(memory + pointers[i], &target, sizeof target);
    }
    const slimrnn_scan *scan = (const slimrnn_scan *)(memory + c.scan);
    int32_t status = c.kind == FORWARD    ? of.forward(scan)
                     : c.kind == BACKWARD ? of.backward(scan)
                                          : take_step(scan, (const slimrnn_places *)(memory + c.places), c.batch);
    if (status) fail("a call failed");
    for (int64_t i = 0; i < c.result_count; i++)
        if (parts[2 * i + 1] && fwrite(memory + parts[2 * i], (size_t)parts[2 * i + 1], 1, results) != 1)
            fail("the results cannot be written");
    free(pointers), free(parts), free(memory);
}

int main(int count, char **words) {
    if (count < 4 || count > 5) fail("expected LIBRARY CALLS RESULTS [INSTRUCTION_SET]");
    find_all(need(load(words[1]), "the library cannot be loaded"));
    if (of.abi() != SLIMRNN_ABI) fail("the library has another interface version");
    if (count == 5 && of.use_isa(words[4])) fail("this machine or build lacks the instruction set");
    FILE *calls = need(fopen(words[2], "rb"), "the calls cannot be read");
    FILE *results = need(fopen(words[3], "wb"), "the results cannot be written");
    int64_t number;
    get(&number, sizeof number, calls);
    for (int64_t i = 0; i < number; i++) run(calls, results);
    if (fclose(results)) fail("the results cannot be written");
    printf("slimrnn %s, %s, %d calls on %s of", of.version(), of.compiler(), (int)number, count == 5 ? words[4] : of.isa(0));
    for (int i = 0; of.isa(i); i++) printf(" %s", of.isa(i));
    printf("\n");
    return 0;
}
