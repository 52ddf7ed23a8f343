// What the same source, compiled for one instruction set, offers to the entry points.
#pragma once
#include "include/slimrnn.h"

namespace slimrnn {

struct Kernels {
    const char *name;
    // Terms packed for use by any number of threads; null when memory is short.
    void *(*pack)(const slimrnn_term *terms, int count, int dtype, int *status);
    int (*pack_input)(void *packed, const slimrnn_scan *scan);
    void (*release)(void *packed);
    int (*forward)(const slimrnn_scan *scan, void *packed, int64_t first, int64_t rows);
    int (*backward)(const slimrnn_scan *scan, void *packed, int64_t first, int64_t rows, int thread);
    // Gradient sums of some rows into `sums`, which has gradient_size numbers; deliver adds them to the caller's.
    int64_t (*gradient_size)(void *packed);
    int (*gradient)(void *packed, int64_t rows, const void *x, int64_t ldx, const void *y, int64_t ldy, int first,
                    int last, void *sums);
    void (*deliver)(void *packed, const void *sums, int first, int last);
};

extern const Kernels generic_kernels;
#ifdef SLIMRNN_HAS_AVX2
extern const Kernels avx2_kernels;
#endif
#ifdef SLIMRNN_HAS_AVX512
extern const Kernels avx512_kernels;
#endif

}  // namespace slimrnn
