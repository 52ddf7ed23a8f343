/* A StreamPool without Python: every row of a file is a frame of one stream or another.
 *
 *     cc -I csrc/include examples/stream_pool.c -ldl -o stream_pool
 *     ./stream_pool LIBRARY MODEL STREAMS < frames > outputs
 *
 * LIBRARY is libslimrnn.so of the python package, MODEL what StreamPool.write has written. Frames are numbers of the
 * model's type, one after the other: the first frame of each stream, the second of each, and so on. */
#include "slimrnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, int status) {
    fprintf(stderr, "stream_pool: %s (status %d)\n", what, status);
    exit(1);
}

static char *read_file(const char *path, int64_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail("expected a model that can be read", 0);
    *bytes = ftell(file);
    rewind(file);
    char *data = malloc((size_t)*bytes);
    if (!data || fread(data, 1, (size_t)*bytes, file) != (size_t)*bytes) fail("the model could not be read", 0);
    fclose(file);
    return data;
}

/* A function of the library, of the type that the header declares. */
#define FUNCTION(name) __typeof__(slimrnn_##name) *name = (__typeof__(name))dlsym(library, "slimrnn_" #name)

int main(int count, char **arguments) {
    if (count != 4) fail("expected LIBRARY MODEL STREAMS", 0);
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library) fail(dlerror(), 0);
    FUNCTION(abi);
    FUNCTION(pool_open);
    FUNCTION(pool_stats_of);
    FUNCTION(pool_step);
    FUNCTION(pool_free);
    FUNCTION(stream_open);
    if (!abi || abi() != SLIMRNN_ABI) fail("expected the library of this header", abi ? abi() : 0);

    int64_t bytes, streams = atoll(arguments[3]);
    char *model = read_file(arguments[2], &bytes);
    slimrnn_pool_options options = {.capacity = streams, .max_tickets = 1, .max_batch = 64, .threads = 1};
    void *pool;
    int status = pool_open(model, bytes, &options, &pool);
    if (status) fail("the pool could not be made", status);
    free(model);

    slimrnn_pool_stats stats;
    pool_stats_of(pool, 0, &stats);
    const size_t item = stats.dtype == SLIMRNN_F64 ? 8 : 4, frame = item * (size_t)stats.input_size;
    int64_t *ids = malloc(sizeof(int64_t) * (size_t)streams);
    int32_t *statuses = malloc(sizeof(int32_t) * (size_t)streams);
    char *frames = malloc(frame * (size_t)streams), *outputs = malloc(item * (size_t)(stats.output_size * streams));
    if (!ids || !statuses || !frames || !outputs) fail("out of memory", 0);
    for (int64_t k = 0; k < streams; k++)
        if ((status = stream_open(pool, &ids[k]))) fail("a stream could not be opened", status);
    while (fread(frames, frame, (size_t)streams, stdin) == (size_t)streams) {
        if ((status = pool_step(pool, streams, ids, frames, outputs, statuses))) fail("a step failed", status);
        fwrite(outputs, item, (size_t)(stats.output_size * streams), stdout);
    }
    pool_stats_of(pool, 0, &stats);
    fprintf(stderr, "%lld frames in %lld batches\n", (long long)stats.frames, (long long)stats.batches);
    pool_free(pool);
    free(ids), free(statuses), free(frames), free(outputs);
    return 0;
}
