/* The whole C interface of the native core.
 *
 * One call runs a cell over a whole sequence. Sequences are (time, batch, ...) row-major and contiguous; a state vector
 * has `width` real numbers, a complex one being (real, imaginary) pairs. Nothing is thrown across this boundary: every
 * function returns a status code. All pointers are the caller's and are used only during the call. */
#ifndef SLIMRNN_H
#define SLIMRNN_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SLIMRNN_API __attribute__((visibility("default")))
#else
#define SLIMRNN_API
#endif

#define SLIMRNN_ABI 5

enum slimrnn_status {
    SLIMRNN_OK = 0,
    SLIMRNN_BAD_ARGUMENT = 1,
    SLIMRNN_NO_MEMORY = 2,
    SLIMRNN_NO_THREAD = 3,
    SLIMRNN_INTERNAL = 4, /* a mistake in the core itself */
};
enum slimrnn_dtype { SLIMRNN_F32 = 0, SLIMRNN_F64 = 1 };
enum slimrnn_cell {
    SLIMRNN_TANH = 0,
    SLIMRNN_RELU = 1,
    SLIMRNN_IDENTITY = 2,
    SLIMRNN_MODRELU = 3,
    SLIMRNN_LSTM = 4,
    SLIMRNN_GRU_AFTER = 5,
    SLIMRNN_GRU_BEFORE = 6,
};
/* Of one call. */
enum slimrnn_limit { SLIMRNN_MOST_TERMS = 16 /* in a phase */, SLIMRNN_MOST_PHASES = 16, SLIMRNN_MOST_DIMS = 4 };

/* A contiguous tensor of a structure: numbers of the call's dtype, or int64 where the structure says so. A complex number
 * is a pair, and the pair is no axis of the shape. */
typedef struct {
    const void *data;
    void *gradient; /* backward: added to; null where the structure has no gradient for it */
    int32_t dims;
    int64_t shape[SLIMRNN_MOST_DIMS];
} slimrnn_tensor;

/* One term of the recurrent map, a (size x size) matrix for every gate. `structure` is an index of slimrnn_structure; the
 * header of each structure in csrc/structures says which tensors it takes. */
typedef struct {
    int32_t structure, tensor_count;
    const slimrnn_tensor *tensors;
} slimrnn_term;

typedef struct {
    int32_t dtype, cell, is_complex, gates, states, reverse, threads, term_count;
    int32_t phases;   /* step k of the loop takes the terms and the own parameters of phase k mod phases */
    int32_t leaky;    /* h = a h_before + (1 - a) cell(...), with a as the last row of own */
    int32_t own_rows; /* rows of own, the leak's included */
    int64_t time, batch, width, input_size;
    const slimrnn_term *terms; /* term_count / phases for each phase */
    const void *x;          /* (time, batch, input_size); or, where u is null, U x + b: (time, batch, gates, width) */
    const void *u;          /* (gates, width, input_size) or null; one phase only */
    const void *bias;       /* (gates, width) or null; goes with u */
    const void *state;      /* (states, batch, width) */
    const void *own;        /* (phases, own_rows, width) or null: modReLU 1 row, the bias; LSTM 3, peepholes, or none;
                                GRU_AFTER 1, the recurrent bias, or none; then the leak's */
    const void *mask;       /* (batch, width) or null: factors on h before every product */
    const int64_t *lengths; /* (batch) or null */
    void *out;              /* (time, batch, width); a complex state as all real parts, then all imaginary parts */
    void *gate_history;     /* LSTM, GRU: (time, batch, gates, width) or null: keep none; the other cells need none */
    void *state_history;    /* (time, batch, width) or null: keep none. LSTM: c, together with gate_history; leaky
                                cells but the LSTM: what the cell gave; the others need none */
    void *last;             /* (states, batch, width) */
    const void *d_out, *d_last; /* backward: gradients coming in */
    void *d_state;              /* backward: gradients going out, and */
    void *d_wx;                 /* (time, batch, gates, width) of U x + b, or null */
    void *d_u, *d_bias, *d_own; /* as u, bias and own, added to; null where those are */
} slimrnn_scan;

/* Version of this interface that the library was built with. */
SLIMRNN_API int32_t slimrnn_abi(void);
/* Names of the structures that a term can have; null after the last. */
SLIMRNN_API const char *slimrnn_structure(int32_t index);
/* The most terms of a phase and the most phases of a call. */
SLIMRNN_API void slimrnn_limits(int32_t *terms, int32_t *phases);
/* Names of the instruction sets of this build that this machine can run, best first; null after the last. */
SLIMRNN_API const char *slimrnn_isa(int32_t index);
/* Choose one by name; null chooses the best. */
SLIMRNN_API int32_t slimrnn_use_isa(const char *name);

SLIMRNN_API int32_t slimrnn_forward(const slimrnn_scan *scan);
SLIMRNN_API int32_t slimrnn_backward(const slimrnn_scan *scan);

/* The first term of a scan by itself, for rows of `width` numbers and the gates first ... last-1 only; of the scan, its
 * dtype, is_complex, gates, width and terms are read.
 * PRODUCT   y (rows, last-first, width) += W x
 * ADJOINT   x (rows, width) += W^H y
 * GRADIENT  the term's gradients += the gradient of the sum of <y, W x> */
enum slimrnn_way { SLIMRNN_PRODUCT = 0, SLIMRNN_ADJOINT = 1, SLIMRNN_GRADIENT = 2 };
SLIMRNN_API int32_t slimrnn_product(const slimrnn_scan *scan, int32_t way, int64_t rows, int32_t first, int32_t last,
                                    void *x, void *y);

/* Single steps with weights packed once. `open` reads everything of the scan but time, batch, x, state, out and last;
 * own and bias must stay where they are until `close`. Steps of one handle may run in several threads at once. */
SLIMRNN_API int32_t slimrnn_open(const slimrnn_scan *scan, void **handle);
SLIMRNN_API void slimrnn_close(void *handle);
/* (batch, input_size) and the states (batch, width) before -> the states after and the output (batch, width); c and
 * c_after are null but for the LSTM. */
SLIMRNN_API int32_t slimrnn_step(void *handle, int64_t batch, const void *x, const void *h, const void *c,
                                 void *h_after, void *c_after, void *out);

/* A number that tells whether memory still holds what it held: of `count` pieces of so many bytes each. */
SLIMRNN_API uint64_t slimrnn_checksum(const void *const *data, const int64_t *bytes, int32_t count);

#ifdef __cplusplus
}
#endif
#endif
