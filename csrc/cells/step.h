// What a cell sees of one time step, and what the time loop knows of a cell.
#pragma once
#include "../structures/term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

inline int terms_per_phase(const slimrnn_scan &s) { return s.term_count / s.phases; }
inline int masks_of(const slimrnn_scan &s) { return s.mask ? s.masks : 1; }

// The recurrent map of one thread: its terms, the dropout masks of its rows, and scratch memory.
template <class T> struct Recurrence {
    Term<T> *const *terms;
    int count;
    const T *mask;  // (rows, masks, width) or null
    int masks;      // one, or one for each gate
    int64_t rows, width;
    T *masked;         // (rows, width)
    Arena<T> scratch;  // for the terms
    int matrices;

    const T *mask_of(int64_t row, int gate) const { return mask + (row * masks + (masks > 1 ? gate : 0)) * width; }
    // work(from, until) for the gates first ... last-1: all at once where they share a mask, or else one by one.
    template <class Work> void by_mask(int first, int last, Work work) const {
        if (masks == 1) return work(first, last);
        for (int gate = first; gate < last; gate++) work(gate, gate + 1);
    }
    // y (rows, last-first, width) += W (mask ⊙ x)
    void apply(const T *x, T *y, int64_t ldy, int first, int last) const {
        by_mask(first, last, [&](int from, int until) {
            for (int64_t r = 0; mask && r < rows; r++) {
                const T *row = x + r * width, *factors = mask_of(r, from);
                for (int64_t i = 0; i < width; i++) masked[r * width + i] = row[i] * factors[i];
            }
            for (int k = 0; k < count; k++)
                terms[k]->matvec(scratch, rows, mask ? masked : x, width, y + (from - first) * width, ldy, from, until);
        });
    }
    // x (rows, width) += mask ⊙ W^H y; kept: per term, what the way back leaves for the gradients, see Term
    void adjoint(const T *y, int64_t ldy, T *x, int first, int last, T *const *kept) const {
        by_mask(first, last, [&](int from, int until) {
            if (mask) memset(masked, 0, sizeof(T) * rows * width);
            for (int k = 0; k < count; k++) {
                const int64_t ldk = matrices * terms[k]->kept_size();
                terms[k]->rmatvec(scratch, rows, y + (from - first) * width, ldy, mask ? masked : x, width, from, until,
                                  kept[k], ldk);
            }
            for (int64_t r = 0; mask && r < rows; r++) {
                const T *factors = mask_of(r, from);
                for (int64_t i = 0; i < width; i++) x[r * width + i] += masked[r * width + i] * factors[i];
            }
        });
    }
};

// One product of a cell on the way back.
template <class T> struct ProductSpace {
    T *x = nullptr;  // (rows, ldx): what it multiplies, where the cell writes that
    T *y = nullptr;  // (rows, last-first, width): its gradient, where the cell writes that
    T *kept[SLIMRNN_MOST_TERMS];
};

template <class T> struct Step {
    const Recurrence<T> *map = nullptr;
    int64_t rows = 0, width = 0;
    const T *own = nullptr;                     // (own_rows, width)
    T *slots = nullptr;                         // (rows, slots, width), see SLIMRNN_SLOT
    const T *before[SLIMRNN_MOST_STATES] = {};  // (rows, width) each, as are
    T *after[SLIMRNN_MOST_STATES] = {};         // (backward: given)
    T *spare = nullptr;                         // (spares, rows, width)
    T *row_sums = nullptr;                      // (row_sums, rows and a vector, since whole vectors are written)
    // noise
    uint64_t seed = 0;
    int64_t time = 0;       // number of the step in the whole sequence
    int64_t first_row = 0;  // row r is sequence row_numbers[r], or first_row + r
    const int64_t *row_numbers = nullptr;
    // backward
    const T *d_after[SLIMRNN_MOST_STATES] = {};
    T *d_before[SLIMRNN_MOST_STATES] = {};  // written, not added to
    T *d_gates = nullptr;                   // (rows, G, width), rows ldd apart: gradients of the input products
    T *d_own = nullptr;                     // as own; sums
    int64_t ldd = 0, ldx = 0;
    ProductSpace<T> products[SLIMRNN_MOST_PRODUCTS];

    static int64_t row_sum_size(int64_t rows) { return rows + lanes<T>; }
    T *row_sum(int number) const { return row_sums + number * row_sum_size(rows); }
    void apply(const T *x, T *y, int64_t ldy, int first, int last) const { map->apply(x, y, ldy, first, last); }
    // of product number p
    void adjoint(int p, const T *y, int64_t ldy, T *x, int first, int last) const {
        map->adjoint(y, ldy, x, first, last, products[p].kept);
    }
};

template <class T, class N> inline void add_to(T *sum, N n, Vec<T> v) { n.put(sum, n.get(sum) + v); }

// What runs for inference alone has no way back.
#if defined(SLIMRNN_INT8)
#define SLIMRNN_BACK(function) nullptr
#else
#define SLIMRNN_BACK(function) function
#endif

// C++ for a cell's step, made from the same programs (generated.h) or written by hand (modrelu.h).
template <class T> struct CellCode {
    const char *fingerprint;
    int32_t sizes[9];  // gates, matrices, states, own_rows, slots, kept, spares, row_sums and product_count of the cell
    void (*forward)(Step<T> &);
    void (*backward)(Step<T> &);
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
