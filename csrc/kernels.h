// What the same source, compiled for one instruction set, offers to the entry points.
#pragma once
#include "crew.h"
#include "include/slimrnn.h"

namespace slimrnn {

// Single steps of one batch size, for one thread at a time.
struct ReadyStep {
    int dtype;
    int64_t batch;
};

struct Kernels {
    const char *name;
    const char *(*structure_name)(int index);  // null after the last
    const char *(*cell_code)(int index);       // null after the last
    bool (*code_fits)(const slimrnn_cell &cell);
    bool (*terms_are_sound)(const slimrnn_scan *scan, bool backward);
    // Terms and the cell's program, made ready for use by any number of threads; null when memory is short.
    void *(*pack)(const slimrnn_scan *scan, bool backward, int *status);
    int (*pack_input)(void *packed, const slimrnn_scan *scan);
    void (*release)(void *packed);
    // Weights whose products the crew of one sequence would share.
    int64_t (*shared_weights)(const slimrnn_scan *scan, void *packed);
    int (*forward)(const slimrnn_scan *scan, void *packed, int64_t first, int64_t rows, Crew *crew);
    // Gradients of parameters are summed into `sums`, numbers of a thread's own, and delivered when all have done.
    int64_t (*sums_size)(const slimrnn_scan *scan, void *packed);
    int (*backward)(const slimrnn_scan *scan, void *packed, int64_t first, int64_t rows, Crew *crew, void *sums);
    void (*deliver)(const slimrnn_scan *scan, void *packed, const void *sums);
    ReadyStep *(*ready_step)(const slimrnn_scan *scan, void *packed);  // throws when memory is short
    void (*run_step)(ReadyStep *ready, const slimrnn_places &places);
    void (*release_step)(ReadyStep *ready);
    uint64_t (*checksum)(const void *const *data, const int64_t *bytes, int count);
    // One term by itself, see slimrnn_product.
    int (*product)(const slimrnn_scan *scan, int way, int64_t rows, int first, int last, void *x, void *y);
    const char *compiler;
    const Kernels *int8;  // of int8 layers, which have no backward, no product and no names of their own
};

extern const Kernels generic_kernels, generic_int8_kernels;
extern const Kernels avx2_kernels, avx2_int8_kernels;  // where the build has them
extern const Kernels avx512_kernels, avx512_int8_kernels;

// Those of the set that this file is compiled for.
#if defined(__AVX512F__)
#define SLIMRNN_FLOAT_KERNELS avx512_kernels
#define SLIMRNN_INT8_KERNELS avx512_int8_kernels
#elif defined(__AVX2__)
#define SLIMRNN_FLOAT_KERNELS avx2_kernels
#define SLIMRNN_INT8_KERNELS avx2_int8_kernels
#else
#define SLIMRNN_FLOAT_KERNELS generic_kernels
#define SLIMRNN_INT8_KERNELS generic_int8_kernels
#endif

}  // namespace slimrnn
