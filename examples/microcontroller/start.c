/* What runs before main on a Cortex-M, and the two functions that compilers call where a loop copies or clears. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t data_in_flash[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
extern int main(void);
void leave(int failed);
void reset(void);

void *memcpy(void *to, const void *from, size_t count)
{
    volatile uint8_t *a = to;
    const uint8_t *b = from;
    while (count-- > 0) {
        *a++ = *b++;
    }
    return to;
}

void *memset(void *to, int byte, size_t count)
{
    volatile uint8_t *a = to;
    while (count-- > 0) {
        *a++ = (uint8_t)byte;
    }
    return to;
}

void reset(void)
{
#if defined(__ARM_FP)
    *(volatile uint32_t *)0xE000ED88 |= 0xfu << 20; /* the floating-point unit is off at first */
    __asm__ volatile("dsb\n isb");
#endif
    for (size_t k = 0; data_start + k < data_end; k++) {
        data_start[k] = data_in_flash[k];
    }
    for (uint32_t *p = bss_start; p < bss_end; p++) {
        *p = 0;
    }
    leave(main());
}

static void fault(void)
{
    leave(1);
}

typedef void (*handler)(void);
__attribute__((section(".vectors"), used)) static const struct {
    uint32_t *stack;
    handler handlers[15];
} vectors = {stack_top, {reset, fault, fault, fault, fault, fault}};
