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

#if defined(_WIN32)
#define SLIMRNN_API __declspec(dllexport)
#elif defined(__GNUC__)
#define SLIMRNN_API __attribute__((visibility("default")))
#else
#define SLIMRNN_API
#endif

#define SLIMRNN_ABI 12

enum slimrnn_status {
    SLIMRNN_OK = 0,
    SLIMRNN_BAD_ARGUMENT = 1,
    SLIMRNN_NO_MEMORY = 2,
    SLIMRNN_NO_THREAD = 3,
    SLIMRNN_INTERNAL = 4, /* a mistake in the core itself */
    SLIMRNN_CHANGED = 5,  /* no error: see slimrnn_step */
};
/* SLIMRNN_I8: float32 but for the matrices, which are int8 with a float32 scale for each row; forward and steps only.
 * csrc/int8/structures.h says which structures there are and what tensors they take. The same bits on every machine. */
enum slimrnn_dtype { SLIMRNN_F32 = 0, SLIMRNN_F64 = 1, SLIMRNN_I8 = 2 };
/* Of one call. */
enum slimrnn_limit {
    SLIMRNN_MOST_TERMS = 16, /* in a phase */
    SLIMRNN_MOST_PHASES = 16,
    SLIMRNN_MOST_DIMS = 4,
    SLIMRNN_MOST_GATES = 32,
    SLIMRNN_MOST_STATES = 8,
    SLIMRNN_MOST_PRODUCTS = 8, /* of a cell: recurrent products in one step */
    SLIMRNN_MOST_REGISTERS = 64,
};

/* --- cells ---------------------------------------------------------------------------------------------------------
 *
 * A cell is data: how much memory its step wants, which recurrent products it takes, and two programs, its step and the
 * way back. src/slimrnn/tracing writes them, from the cell's step in python. Where the library was built with C++ for the
 * same step (see slimrnn_cell_code), that runs instead. */

/* W_g x for the gates first ... last-1, in one step. x is state i before the step (i), state i after it (MOST_STATES + i),
 * or a vector that the way back writes to X (-1). The product's gradient is that of the input products of the same gates
 * (of_gates = 1), or the way back writes it to Y. */
typedef struct {
    int32_t x, first, last, of_gates;
} slimrnn_product_spec;

/* Memory that instructions read and write: `kind` and `index` say which, one row (of a step, for one sequence) being at
 *   SLOT      slot `index` of (rows, slots, width): before the step the first `gates` hold U x + b, after it what is kept
 *   BEFORE    state `index` before the step         D_BEFORE  its gradient, written by the way back
 *   AFTER     state `index` after the step          D_AFTER   its gradient, given
 *   SPARE     part `part` of (rows, parts, width), which starts at spare number `index`
 *   OWN       row `index` of own, the same for all sequences
 *   D_GATE    gradient of the input product of gate `index`
 *   X         product number `index`: what it multiplies, see slimrnn_product_spec
 *   Y         product number `index`, gate first + `part`: its gradient */
enum slimrnn_place_kind {
    SLIMRNN_SLOT,
    SLIMRNN_BEFORE,
    SLIMRNN_AFTER,
    SLIMRNN_SPARE,
    SLIMRNN_OWN,
    SLIMRNN_D_GATE,
    SLIMRNN_D_BEFORE,
    SLIMRNN_D_AFTER,
    SLIMRNN_X,
    SLIMRNN_Y,
    SLIMRNN_PLACE_KINDS,
};
typedef struct {
    int32_t kind, index, part, parts; /* part and parts: 0 and 1 but for SPARE and Y */
} slimrnn_place;

/* Between loops:
 *   APPLY    place `to` += W_g (mask of place a) for the gates b ... c-1; `to` is the first of as many parts or slots
 *   ADJOINT  place `to` += mask of W^H (place a), of product b; place a is the first of as many parts or gates
 *   LOOP     the next `to` instructions run for every unit of every row
 *   ROWS     the next `to` instructions, arithmetic only, run for every row: their registers are the constants, then the
 *            row sums
 * In a loop, on registers (numbers 0 ... constant_count-1 hold the constants):
 *   LOAD     register to = place a              STORE  place to = register a
 *   SUM      gradient of own, row to += register a, over the rows
 *   TOTAL    row sum `to` = the sum over the units of register a; later loops read it
 *   PER_ROW  register to = row sum a            NOISE  register to = uniform in [0, 1), stream a
 * and arithmetic, register to = op(a, b, c); comparisons give masks, which WHERE takes as its a. */
enum slimrnn_op {
    SLIMRNN_APPLY,
    SLIMRNN_ADJOINT,
    SLIMRNN_LOOP,
    SLIMRNN_ROWS,
    SLIMRNN_LOAD,
    SLIMRNN_STORE,
    SLIMRNN_SUM,
    SLIMRNN_TOTAL,
    SLIMRNN_PER_ROW,
    SLIMRNN_NOISE,
    SLIMRNN_ADD,
    SLIMRNN_SUB,
    SLIMRNN_MUL,
    SLIMRNN_DIV,
    SLIMRNN_NEG,
    SLIMRNN_SIGMOID,
    SLIMRNN_TANH,
    SLIMRNN_EXP,
    SLIMRNN_LOG,
    SLIMRNN_SOFTPLUS,
    SLIMRNN_SQRT,
    SLIMRNN_ABS,
    SLIMRNN_SIGN,
    SLIMRNN_RELU,
    SLIMRNN_MAXIMUM,
    SLIMRNN_MINIMUM,
    SLIMRNN_GT,
    SLIMRNN_LT,
    SLIMRNN_GE,
    SLIMRNN_LE,
    SLIMRNN_EQ,
    SLIMRNN_WHERE,
    SLIMRNN_OPS,
};
typedef struct {
    int32_t op, to, a, b, c;
} slimrnn_instruction;
typedef struct {
    const slimrnn_instruction *code;
    int32_t count;
} slimrnn_program;

typedef struct {
    int32_t code;     /* index of slimrnn_cell_code, or -1: the programs run */
    int32_t gates;    /* input products per step */
    int32_t matrices; /* recurrent matrices of every term; 0: no terms. Products count their gates among these */
    int32_t states, own_rows;
    int32_t slots;    /* per row; at least as many as gates */
    int32_t kept;     /* slots that the way back reads; 0: no gate_history is wanted */
    int32_t spares;   /* vectors per row that a step needs for itself */
    int32_t row_sums; /* of TOTAL and ROWS */
    int32_t product_count, place_count, constant_count, register_count;
    slimrnn_product_spec products[SLIMRNN_MOST_PRODUCTS];
    const slimrnn_place *places;
    const double *constants;
    slimrnn_program forward, backward;
} slimrnn_cell;

/* A contiguous tensor of a structure: numbers of the call's dtype, or int64 where the structure says so. A complex number
 * is a pair, and the pair is no axis of the shape. */
typedef struct {
    const void *data;
    void *gradient; /* backward: added to; null where the structure has no gradient for it */
    int32_t dims;
    int64_t shape[SLIMRNN_MOST_DIMS];
} slimrnn_tensor;

/* One term of the recurrent map, as many (size x size) matrices as the cell says. `structure` is an index of slimrnn_structure; the
 * header of each structure in csrc/structures says which tensors it takes. */
typedef struct {
    int32_t structure, tensor_count;
    const slimrnn_tensor *tensors;
} slimrnn_term;

typedef struct {
    int32_t dtype, is_complex, reverse, threads, term_count;
    int32_t phases; /* step k of the loop takes the terms and the own parameters of phase k mod phases */
    int32_t masks;  /* where there is a mask: 1, for all gates, or one for each of the cell's matrices */
    int64_t time, batch, width, input_size;
    int64_t vocabulary; /* rows of x where there are tokens */
    int64_t first_step; /* number of the first step of these in the whole sequence, for noise only */
    uint64_t seed;      /* of noise */
    const slimrnn_cell *cell;
    const slimrnn_term *terms; /* term_count / phases for each phase */
    const void *x;           /* (time, batch, input_size); or, where u is null, U x + b: (time, batch, gates, width) */
    const int64_t *tokens;   /* (time, batch) or null: then x is U x + b of every token, (vocabulary, gates, width), and
                               there is no u and one phase */
    const void *u;           /* (gates, width, input_size) or null; one phase only */
    const void *u_scale;     /* (gates, width), where u is int8 */
    const void *bias;        /* (gates, width) or null; goes with u */
    const void *state;       /* (states, batch, width) */
    const void *own;         /* (phases, own_rows, width), or null where there are no rows */
    const void *mask;        /* (batch, masks, width) or null: factors on a vector before every product */
    const int64_t *lengths;  /* (batch) or null */
    const uint8_t *resets;   /* (time, batch) or null: where it is 1, the state before the step is that of ... */
    const void *reset_state; /* ... (states, batch, width), and not what the step before has left */
    void *out;               /* (time, batch, width); a complex state as all real parts, then all imaginary parts */
    void *gate_history;      /* (time, batch, slots, width) or null: keep none */
    void *state_history;     /* (states - 1, time, batch, width) or null: keep none; of all states but the first */
    void *last;              /* (states, batch, width) */
    const void *d_out, *d_last; /* backward: gradients coming in, that of out or null: none */
    void *d_state;              /* backward: gradients going out, and */
    void *d_wx;                 /* (time, batch, gates, width) of U x + b, or null; with tokens as x, added to */
    void *d_u, *d_bias, *d_own; /* as u, bias and own, added to; null where those are */
    void *d_reset_state;        /* the same of reset_state */
} slimrnn_scan;

/* Version of this interface that the library was built with. */
SLIMRNN_API int32_t slimrnn_abi(void);
/* Version of the package that the library was built for. */
SLIMRNN_API const char *slimrnn_version(void);
/* The compiler of the kernels in use, such as "GCC 12.2.0". */
SLIMRNN_API const char *slimrnn_compiler(void);
/* Names of the structures that a term can have; null after the last. */
SLIMRNN_API const char *slimrnn_structure(int32_t index);
/* The limits of a call, in the order of slimrnn_limit; returns how many there are. */
SLIMRNN_API int32_t slimrnn_limits(int32_t *limits, int32_t room);
/* Fingerprints of the cells that the library was built with C++ for; null after the last. */
SLIMRNN_API const char *slimrnn_cell_code(int32_t index);
/* Names of the instruction sets of this build that this machine can run, best first; null after the last. */
SLIMRNN_API const char *slimrnn_isa(int32_t index);
/* Choose one by name; null chooses the best. */
SLIMRNN_API int32_t slimrnn_use_isa(const char *name);

SLIMRNN_API int32_t slimrnn_forward(const slimrnn_scan *scan);
SLIMRNN_API int32_t slimrnn_backward(const slimrnn_scan *scan);

/* The first term of a scan by itself, for rows of `width` numbers and the gates first ... last-1 only; of the scan, its
 * dtype, is_complex, width and terms are read, and its cell's matrices.
 * WAY_PRODUCT   y (rows, last-first, width) += W x
 * WAY_ADJOINT   x (rows, width) += W^H y
 * WAY_GRADIENT  the term's gradients += the gradient of the sum of <y, W x> */
enum slimrnn_way { SLIMRNN_WAY_PRODUCT = 0, SLIMRNN_WAY_ADJOINT = 1, SLIMRNN_WAY_GRADIENT = 2 };
SLIMRNN_API int32_t slimrnn_product(const slimrnn_scan *scan, int32_t way, int64_t rows, int32_t first, int32_t last,
                                    void *x, void *y);

/* Single steps with weights packed once. `open` reads everything of the scan but time, batch, x, tokens, state, out and
 * last; own and bias must stay where they are until `close`. Steps of one handle may run in several threads at once. */
SLIMRNN_API int32_t slimrnn_open(const slimrnn_scan *scan, void **handle);
SLIMRNN_API void slimrnn_close(void *handle);
/* A number that tells whether memory still holds what it held: of `count` pieces of so many bytes each. */
SLIMRNN_API uint64_t slimrnn_checksum(const void *const *data, const int64_t *bytes, int32_t count);
typedef struct {
    const void *const *data;
    const int64_t *bytes;
    int32_t count;
    uint64_t checksum;
} slimrnn_memory;

/* Where the tensors of a step are. x is (batch, input_size) and may lie anyhow, so many numbers from row to row and from
 * column to column; the others are (batch, width) and contiguous. */
typedef struct {
    const void *x;
    int64_t x_row, x_column;
    void *out;
    void *states[2 * SLIMRNN_MOST_STATES]; /* those before the step, then those after it; no more of it is read */
} slimrnn_places;
/* x and the states before -> the output and the states after. Where `unchanged` is given and its memory has another
 * checksum by now, nothing is done and CHANGED returned: the packed weights are old. */
SLIMRNN_API int32_t slimrnn_step(void *handle, const slimrnn_memory *unchanged, int64_t batch,
                                 const slimrnn_places *places);

/* --- pools of streams ----------------------------------------------------------------------------------------------
 *
 * Many streams over one copy of a model: the states of all of them, threads that run whatever frames have come as one
 * batch, and a queue. A frame's output does not depend on the other frames of its batch, bit for bit; the frames of one
 * stream run in the order in which they came. All functions may be called from any thread, at any time before `free`.
 * In the child of a fork they return FORKED and do nothing. */
enum slimrnn_pool_status {
    SLIMRNN_FULL = 32,        /* as many streams are open as may be, or as many tickets */
    SLIMRNN_CLOSED = 33,      /* there is no such stream */
    SLIMRNN_NOT_FINITE = 34,  /* a frame, or what came of it, is NaN or infinite: the stream is as it was before */
    SLIMRNN_SHUT_DOWN = 35,   /* nothing new is taken */
    SLIMRNN_WAITING = 36,     /* not done in that time */
    SLIMRNN_NO_TICKET = 37,   /* its result has been taken, or it never was */
    SLIMRNN_DAMAGED = 38,     /* the bytes are not what was written */
    SLIMRNN_OTHER_MODEL = 39, /* the state of a stream of another model */
    SLIMRNN_FORKED = 40,
};
enum { SLIMRNN_POOL_SIZES = 12 }; /* of batches: 1, 2-3, 4-7, ... rows */

typedef struct {
    int64_t capacity;    /* streams that may be open at once */
    int64_t max_tickets; /* frames that may wait or be done but not taken, those of `step` aside */
    int64_t max_batch;   /* frames that run at once */
    int32_t threads;     /* that compute at once, those that called `step` among them */
    int32_t takes_nan;   /* frames and states that are not finite are computed like others */
    double max_delay;    /* seconds that a frame may wait for others, unless there are max_batch */
} slimrnn_pool_options;

typedef struct {
    int64_t input_size, output_size, saved_bytes; /* of a frame, an output and a saved stream */
    int32_t dtype;
    int64_t capacity, open, waiting; /* streams; frames that have not been run */
    int64_t frames, failed, batches, largest_batch, batch_sizes[SLIMRNN_POOL_SIZES];
    double seconds;                      /* since the counts began */
    double p50, p90, p99, p999, longest; /* seconds from a frame's arrival until it was done */
} slimrnn_pool_stats;

/* `model` is what StreamPool.write of the python package writes; it may be freed afterwards. */
SLIMRNN_API int32_t slimrnn_pool_open(const void *model, int64_t bytes, const slimrnn_pool_options *options,
                                      void **pool);
/* Takes nothing new and returns when all frames are done; results can still be taken and streams saved. */
SLIMRNN_API int32_t slimrnn_pool_shut_down(void *pool);
SLIMRNN_API void slimrnn_pool_free(void *pool);
SLIMRNN_API int32_t slimrnn_pool_stats_of(void *pool, int32_t start_again, slimrnn_pool_stats *stats);

SLIMRNN_API int32_t slimrnn_stream_open(void *pool, int64_t *stream);
/* Frames that wait fail with CLOSED. */
SLIMRNN_API int32_t slimrnn_stream_close(void *pool, int64_t stream);
/* The state after all frames that have come before, in `saved_bytes` bytes; a stream of the same model that goes on. A
 * state with NaN or infinity is NOT_FINITE unless the pool takes them. */
SLIMRNN_API int32_t slimrnn_stream_save(void *pool, int64_t stream, void *bytes);
SLIMRNN_API int32_t slimrnn_stream_load(void *pool, const void *bytes, int64_t size, int64_t *stream);

/* One frame of each stream, (count, input_size), to outputs (count, output_size); a stream may come more than once. All or
 * nothing: where one fails, all streams are as they were before. `statuses` has room for one of each, and tells which
 * failed; outputs are of use only if none did. */
SLIMRNN_API int32_t slimrnn_pool_step(void *pool, int64_t count, const int64_t *streams, const void *frames,
                                      void *outputs, int32_t *statuses);
/* A ticket for the result of a frame, which is copied. With `collected` it comes to slimrnn_pool_collect. */
SLIMRNN_API int32_t slimrnn_pool_submit(void *pool, int64_t stream, const void *frame, int32_t collected,
                                        int64_t *ticket);
/* Waits so many seconds; the status is the frame's. Below zero: the result is not wanted any more. */
SLIMRNN_API int32_t slimrnn_pool_take(void *pool, int64_t ticket, double seconds, void *output);
/* Up to `room` results, as soon as there is one; SHUT_DOWN when no more will come. */
SLIMRNN_API int32_t slimrnn_pool_collect(void *pool, int64_t room, double seconds, int64_t *tickets, void *outputs,
                                         int32_t *statuses, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif
