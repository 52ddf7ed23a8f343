// Gradients of the parameters, summed on the way back every few steps, while what they are made of is at hand.
#pragma once
#include "cells/step.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

inline int64_t rows_at_once(int64_t rows) { return std::max<int64_t>(rows, 96 / rows * rows); }

template <class T> class Gradients {
    const slimrnn_scan &s;
    const Recurrence<T> &map;
    const int64_t width, row_gates;

    // Where a thread's sums lie: every term's, the input matrix transposed with the bias as its last row, own.
    struct Sums {
        T *term[SLIMRNN_MOST_TERMS], *input, *own;
        int64_t size;
    };
    const Sums sums;

    // The last few steps, row by row.
    int64_t rows = 0;
    const int64_t most, ldd, ldx, ldu;
    T *d;                         // (rows, G, width), rows ldd apart: gradients of the gates
    T *special;                   // GRU: (rows, width) the candidate's own gradient (after) or input (before)
    T *x;                         // (rows, ldx) the state before, masked
    T *u;                         // (rows, ldu) the input and a one
    T *kept[SLIMRNN_MOST_TERMS];  // per term: (rows, G, kept_size)

    // Rows a multiple of a page apart would compete for the same few lines of the cache.
    static int64_t apart(int64_t length) { return length % (1024 / sizeof(T)) ? length : length + lanes<T>; }

    static Sums split(const slimrnn_scan &s, Term<T> *const *terms, T *at) {
        Sums sums{};
        int64_t size = 0;
        for (int k = 0; k < terms_per_phase(s); k++) {
            sums.term[k] = at + size;
            size += round_up(terms[k]->gradient_size(), lanes<T>);
        }
        sums.input = at + size;
        if (s.u) size += round_up(s.gates * s.width * (s.input_size + 1), lanes<T>);
        sums.own = at + size;
        size += round_up(s.own_rows * s.width, lanes<T>);
        sums.size = size;
        return sums;
    }

  public:
    Gradients(const slimrnn_scan &s, const Recurrence<T> &map, Arena<T> &memory, T *at)
        : s(s), map(map), width(s.width), row_gates(s.gates * s.width), sums(split(s, map.terms, at)),
          most(rows_at_once(map.rows)), ldd(apart(row_gates)), ldx(apart(round_up(width, panel<T>))),
          ldu(round_up(s.input_size + 1, panel<T>)) {
        d = memory.take(most * ldd);
        special = memory.take(most * ldx + panel<T>);
        x = memory.take(most * ldx + panel<T>);
        u = memory.take(most * ldu + panel<T>);
        for (int k = 0; k < map.count; k++) kept[k] = memory.take(most * s.gates * map.terms[k]->kept_size());
    }
    static int64_t size(const slimrnn_scan &s, Term<T> *const *terms) { return split(s, terms, nullptr).size; }

    T *own() const { return sums.own; }

    // Where the next step's gradients go.
    void make_room(Step<T> &step, Recurrence<T> &recurrence) const {
        step.d_gates = d + rows * ldd;
        step.ldd = ldd;
        step.spare = special + rows * width;
        for (int k = 0; k < map.count; k++) recurrence.kept[k] = kept[k] + rows * s.gates * map.terms[k]->kept_size();
    }
    // The step has been taken back; `input` is what it saw, where that is multiplied here.
    void remember(const Step<T> &step, const T *input) {
        for (int64_t r = 0; r < step.rows; r++, rows++) {
            T *to = x + rows * ldx;
            const T *h = step.h_before + r * width;
            if (const T *mask = step.map->mask)
                for (int64_t i = 0; i < width; i++) to[i] = h[i] * mask[r * width + i];
            else
                memcpy(to, h, sizeof(T) * width);
            if (s.cell == SLIMRNN_GRU_BEFORE) {  // the candidate's product is that of r h
                const T *reset = step.gates + r * row_gates;
                for (int64_t i = 0; i < width; i++) special[rows * width + i] = reset[i] * to[i];
            }
            if (!input) continue;
            memcpy(u + rows * ldu, input + r * s.input_size, sizeof(T) * s.input_size);
            u[rows * ldu + s.input_size] = T(1);
        }
    }
    bool is_full() const { return rows + map.rows > most; }

    void sum_up() {
        if (!rows) return;
        for (int k = 0; k < map.count; k++) {
            const Term<T> &term = *map.terms[k];
            auto add = [&](const T *from, int64_t ldf, const T *y, int64_t ldy, int first, int last) {
                term.gradient(map.scratch, rows, from, ldf, y, ldy, first, last, kept[k], s.gates * term.kept_size(),
                              sums.term[k]);
            };
            if (s.cell == SLIMRNN_GRU_AFTER) {
                add(x, ldx, d, ldd, 0, 2);
                add(x, ldx, special, width, 2, 3);
            } else if (s.cell == SLIMRNN_GRU_BEFORE) {
                add(x, ldx, d, ldd, 0, 2);
                add(special, width, d + 2 * width, ldd, 2, 3);
            } else {
                add(x, ldx, d, ldd, 0, s.gates);
            }
        }
        if (s.u) correlate(rows, s.input_size + 1, row_gates, u, ldu, d, ldd, sums.input, row_gates);
        rows = 0;
    }

    // Adds a thread's sums of a phase to the caller's tensors; returns where those of the next phase lie.
    static const T *deliver(const slimrnn_scan &s, Term<T> *const *terms, const T *at, int phase) {
        const Sums sums = split(s, terms, const_cast<T *>(at));
        for (int k = 0; k < terms_per_phase(s); k++) terms[k]->deliver(sums.term[k], 0, s.gates);
        const int64_t own = s.own_rows * s.width, m = s.input_size;
        T *d_own = static_cast<T *>(s.d_own) + phase * own;
        for (int64_t i = 0; i < own; i++) d_own[i] += sums.own[i];
        if (s.u) deliver_input(s, sums.input, m);
        return at + sums.size;
    }
    static void deliver_input(const slimrnn_scan &s, const T *sums, int64_t m) {
        const int64_t n = s.gates * s.width;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < m; j++) static_cast<T *>(s.d_u)[i * m + j] += sums[j * n + i];
            if (s.bias) static_cast<T *>(s.d_bias)[i] += sums[m * n + i];
        }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
