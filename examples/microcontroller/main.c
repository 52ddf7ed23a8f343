/* Reads sequences from the host by semihosting, runs the net on them and writes its outputs back.
 *
 * inputs.bin: the number of sequences, that of the steps of each, then all inputs. outputs.bin: all outputs, then ticks of
 * the clock in all steps, ticks of a loop of 20,000 instructions, and bytes of stack that a step needs. On a board of your
 * own, read a sensor instead. net_under_test.h says which net it is. */
#include <stddef.h>
#include <stdint.h>

#include "net_under_test.h"

#define CLOCK_CONTROL (*(volatile uint32_t *)0xE000E010) /* SysTick counts down */
#define CLOCK_RELOAD (*(volatile uint32_t *)0xE000E014)
#define CLOCK (*(volatile uint32_t *)0xE000E018)
#define PAINT 0xA5A5A5A5u

enum { OPEN = 0x01, WRITE = 0x05, READ = 0x06, EXIT = 0x18 };
enum { READ_BYTES = 1, WRITE_BYTES = 5 };

extern uint32_t bss_end[];
void leave(int failed);

static int32_t host(int32_t operation, const void *block)
{
    register int32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void leave(int failed)
{
    host(EXIT, (const void *)(failed ? 0x20024 : 0x20026)); /* a run-time error, or the end of the program */
    for (;;) {
    }
}

static int32_t open_file(const char *name, size_t length, int32_t mode)
{
    const uintptr_t block[3] = {(uintptr_t)name, (uintptr_t)mode, length};
    const int32_t file = host(OPEN, block);
    if (file < 0) {
        leave(1);
    }
    return file;
}

static void transfer(int32_t operation, int32_t file, const void *data, size_t bytes)
{
    const uintptr_t block[3] = {(uintptr_t)file, (uintptr_t)data, bytes};
    if (host(operation, block) != 0) {
        leave(1);
    }
}

static uint32_t ticks_of_a_known_loop(void)
{
    const uint32_t start = CLOCK;
    uint32_t count = 10000;
    __asm__ volatile(".syntax unified\n1: subs %0, #1\n bne 1b" : "+l"(count) : : "cc");
    return (start - CLOCK) & 0xffffffu;
}

static uintptr_t stack_pointer(void)
{
    uintptr_t here;
    __asm__ volatile("mov %0, sp" : "=r"(here));
    return here;
}

static NET_STATE state;
static NET_INPUT x[NET_X];
static float y[NET_Y];

/* What is free of the stack is painted, and what is no longer so after a step was in use. */
static __attribute__((noinline)) uint32_t stack_of_a_step(void)
{
    const uintptr_t here = stack_pointer();
    uintptr_t p;
    for (p = (uintptr_t)bss_end; p < here; p += 4) {
        *(volatile uint32_t *)p = PAINT;
    }
    NET_STEP(&state, x, y);
    for (p = (uintptr_t)bss_end; *(volatile uint32_t *)p == PAINT; p += 4) {
    }
    return (uint32_t)(here - p);
}

int main(void)
{
    const int32_t in = open_file("inputs.bin", 10, READ_BYTES), out = open_file("outputs.bin", 11, WRITE_BYTES);
    uint32_t sizes[2], results[3] = {0, 0, 0};
    transfer(READ, in, sizes, sizeof sizes);
    CLOCK_RELOAD = 0xffffff;
    CLOCK = 0;
    CLOCK_CONTROL = 5;
    for (uint32_t sequence = 0; sequence < sizes[0]; sequence++) {
        NET_INIT(&state);
        for (uint32_t step = 0; step < sizes[1]; step++) {
            uint32_t start;
            transfer(READ, in, x, sizeof x);
            start = CLOCK;
            NET_STEP(&state, x, y);
            results[0] += (start - CLOCK) & 0xffffffu;
            transfer(WRITE, out, y, sizeof y);
        }
    }
    results[1] = ticks_of_a_known_loop();
    results[2] = stack_of_a_step();
    transfer(WRITE, out, results, sizeof results);
    return 0;
}
