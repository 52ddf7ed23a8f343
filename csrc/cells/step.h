// What a cell sees of one time step.
#pragma once
#include "../structures/term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

inline int terms_per_phase(const slimrnn_scan &s) { return s.term_count / s.phases; }

// The recurrent map of one thread: its terms, the dropout mask of its rows, and scratch memory.
template <class T> struct Recurrence {
    Term<T> *const *terms;
    int count;
    const T *mask;  // (rows, width) or null
    int64_t rows, width;
    T *masked;         // (rows, width)
    Arena<T> scratch;  // for the terms
    int gates;
    T *kept[SLIMRNN_MOST_TERMS];  // per term: what the way back leaves for the gradients, see Term

    // y (rows, last-first, width) += W (mask ⊙ x)
    void apply(const T *x, T *y, int64_t ldy, int first, int last) const {
        if (mask) {
            for (int64_t i = 0; i < rows * width; i++) masked[i] = x[i] * mask[i];
            x = masked;
        }
        for (int k = 0; k < count; k++) terms[k]->matvec(scratch, rows, x, width, y, ldy, first, last);
    }
    // x (rows, width) += mask ⊙ W^H y
    void adjoint(const T *y, int64_t ldy, T *x, int first, int last) const {
        T *to = x;
        if (mask) {
            memset(masked, 0, sizeof(T) * rows * width);
            to = masked;
        }
        for (int k = 0; k < count; k++) {
            const int64_t ldk = gates * terms[k]->kept_size();
            terms[k]->rmatvec(scratch, rows, y, ldy, to, width, first, last, kept[k], ldk);
        }
        if (mask)
            for (int64_t i = 0; i < rows * width; i++) x[i] += masked[i] * mask[i];
    }
};

template <class T> struct Step {
    const Recurrence<T> *map = nullptr;
    int64_t rows = 0, width = 0;
    const T *own = nullptr;  // the cell's parameters, or null
    T *gates = nullptr;      // (rows, G, width): holds the input products; forward leaves what backward needs
    const T *h_before = nullptr, *c_before = nullptr;
    T *h = nullptr, *c = nullptr;  // the new state (backward: const)
    T *spare = nullptr;            // (rows, width)
    // backward
    const T *d_h = nullptr;   // (rows, width)
    T *d_c = nullptr;         // in: of c; out: of c_before
    T *d_gates = nullptr;     // (rows, G, width), rows ldd apart: gradients of the input products
    T *d_h_before = nullptr;  // (rows, width), starts at zero
    T *d_own = nullptr;       // as own; sums
    int64_t ldd = 0;
};

template <class T, class N> inline void add_to(T *sum, N n, Vec<T> v) { n.put(sum, n.get(sum) + v); }

template <class T> struct Cell {
    int gates;
    void (*forward)(Step<T> &);
    void (*backward)(Step<T> &);
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
