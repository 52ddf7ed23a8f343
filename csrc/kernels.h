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
};

extern const Kernels generic_kernels;
#ifdef SLIMRNN_HAS_AVX2
extern const Kernels avx2_kernels;
#endif
#ifdef SLIMRNN_HAS_AVX512
extern const Kernels avx512_kernels;
#endif

}  // namespace slimrnn
