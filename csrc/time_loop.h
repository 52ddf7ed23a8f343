// The only time loop: forward and backward through time, either direction, ragged or not, for the rows of one thread.
#pragma once
#include "cells/elman.h"
#include "cells/gru.h"
#include "cells/lstm.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> Cell<T> find_cell(const slimrnn_scan &s) {
    switch (s.cell) {
        case SLIMRNN_TANH: return {1, Elman<T, Tanh>::forward, Elman<T, Tanh>::backward};
        case SLIMRNN_RELU: return {1, Elman<T, Relu>::forward, Elman<T, Relu>::backward};
        case SLIMRNN_IDENTITY: return {1, Elman<T, Identity>::forward, Elman<T, Identity>::backward};
        case SLIMRNN_MODRELU:
            if (s.is_complex) return {1, ModRelu<T, true>::forward, ModRelu<T, true>::backward};
            return {1, ModRelu<T, false>::forward, ModRelu<T, false>::backward};
        case SLIMRNN_LSTM: return {4, Lstm<T>::forward, Lstm<T>::backward};
        case SLIMRNN_GRU_AFTER: return {3, GruAfter<T>::forward, GruAfter<T>::backward};
        case SLIMRNN_GRU_BEFORE: return {3, GruBefore<T>::forward, GruBefore<T>::backward};
        default: return {0, nullptr, nullptr};
    }
}

// The memory of one thread, carved from one piece.
template <class T> struct Workspace {
    T *at;
    T *take(int64_t count) {
        T *mine = at;
        at += round_up(count, lanes<T>);
        return mine;
    }
};

template <class T> class TimeLoop {
    const slimrnn_scan &s;
    const Cell<T> cell;
    const int64_t first, rows, width, row_gates;
    Workspace<T> memory;
    const int64_t block;  // numbers of a state of these rows
    const Packed<T> input;
    Recurrence<T> map;

    const T *in(const void *p, int64_t t, int64_t per_row) const {
        return static_cast<const T *>(p) + (t * s.batch + first) * per_row;
    }
    T *out(void *p, int64_t t, int64_t per_row) const {
        return static_cast<T *>(p) + (t * s.batch + first) * per_row;
    }
    bool valid(int64_t t, int64_t r) const { return !s.lengths || t < s.lengths[first + r]; }
    int64_t time_of(int64_t step) const { return s.reverse ? s.time - 1 - step : step; }

  public:
    TimeLoop(const slimrnn_scan &scan, Term<T> *const *terms, T *input, int64_t first, int64_t rows, T *workspace)
        : s(scan), cell(find_cell<T>(scan)), first(first), rows(rows), width(scan.width),
          row_gates(scan.gates * scan.width), memory{workspace}, block(rows * scan.width),
          input{scan.input_size, row_gates, input} {
        map.terms = terms;
        map.count = s.term_count;
        map.rows = rows;
        map.width = width;
        map.gates = s.gates;
        map.mask = s.mask ? in(s.mask, 0, width) : nullptr;
        map.masked = memory.take(block);
        int64_t most = 0;
        for (int k = 0; k < s.term_count; k++) most = std::max(most, terms[k]->scratch_size(rows_at_once(rows)));
        map.scratch = memory.take(most);
    }

    void forward() {
        Step<T> step{map, rows, width, static_cast<const T *>(s.own), nullptr, nullptr, nullptr, nullptr, nullptr,
                     memory.take(block), nullptr, nullptr, nullptr, nullptr, nullptr, 0};
        T *gates = memory.take(rows * row_gates), *h[2] = {memory.take(block), memory.take(block)},
          *c[2] = {memory.take(block), memory.take(block)};
        T *h_history = static_cast<T *>(s.is_complex ? nullptr : s.out), *c_history = static_cast<T *>(s.state_history);
        step.h_before = in(s.state, 0, width);
        step.c_before = s.states == 2 ? in(s.state, 1, width) : nullptr;
        for (int64_t k = 0; k < s.time; k++) {
            const int64_t t = time_of(k);
            step.gates = s.gate_history ? out(s.gate_history, t, row_gates) : gates;
            begin(step.gates, t);
            if (!s.u && k + 1 < s.time) prefetch(in(s.x, time_of(k + 1), row_gates), rows * row_gates);
            if (s.gate_history && k + 1 < s.time)
                prefetch<1>(in(s.gate_history, time_of(k + 1), row_gates), rows * row_gates);
            step.h = s.lengths || !h_history ? h[k % 2] : out(h_history, t, width);
            step.c = s.lengths || !c_history ? c[k % 2] : out(c_history, t, width);
            cell.forward(step);
            if (s.lengths) keep_ended(step, t, h_history, c_history);
            if (s.is_complex) show(step.h, t);
            step.h_before = step.h;
            step.c_before = step.c;
        }
        memcpy(out(s.last, 0, width), step.h_before, sizeof(T) * block);
        if (s.states == 2) memcpy(out(s.last, 1, width), step.c_before, sizeof(T) * block);
    }

    // Back through time. The gradients of the parameters are summed every few steps, while what they need is at hand.
    void backward(T *sums) {
        Sums at = split(s, map.terms, sums);
        Chunk chunk = make_chunk();
        Step<T> step{map, rows, width, static_cast<const T *>(s.own), nullptr, nullptr, nullptr, nullptr, nullptr,
                     nullptr, nullptr, memory.take(block), nullptr, nullptr, at.own, chunk.ldd};
        T *d_h = memory.take(block), *before = memory.take(block);
        T *ended[2] = {memory.take(block), memory.take(block)};
        T *h_local = memory.take(block), *c_local = memory.take(block);
        T *pairs[2] = {memory.take(block), memory.take(block)};
        step.h = shown(time_of(s.time - 1), pairs[0]);
        memcpy(d_h, in(s.d_last, 0, width), sizeof(T) * block);
        if (s.states == 2) memcpy(step.d_c, in(s.d_last, 1, width), sizeof(T) * block);
        for (int64_t k = s.time - 1; k >= 0; k--) {
            const int64_t t = time_of(k);
            for (int64_t r = 0; r < rows; r++)
                if (valid(t, r)) add_shown(d_h + r * width, in(s.d_out, t, width) + r * width);
            step.gates = s.gate_history ? out(s.gate_history, t, row_gates) : nullptr;
            step.d_gates = chunk.d + chunk.rows * chunk.ldd;
            step.spare = chunk.special + chunk.rows * width;
            for (int i = 0; i < map.count; i++)
                map.kept[i] = chunk.kept[i] + chunk.rows * s.gates * map.terms[i]->kept_size();
            const T *previous = k ? shown(time_of(k - 1), pairs[1]) : nullptr;
            step.c = s.states == 2 ? out(s.state_history, t, width) : nullptr;
            step.h_before = state_before(k, previous, 0, h_local);
            if (s.states == 2)
                step.c_before = state_before(k, k ? in(s.state_history, time_of(k - 1), width) : nullptr, 1, c_local);
            if (k > 0) prefetch(in(s.d_out, time_of(k - 1), width), block);
            if (k > 1) prefetch(in(s.out, time_of(k - 2), width), block);
            if (k > 0 && s.gate_history) prefetch(in(s.gate_history, time_of(k - 1), row_gates), rows * row_gates);
            if (s.lengths) set_aside_ended(t, d_h, s.states == 2 ? step.d_c : nullptr, ended);
            step.d_h = d_h;
            step.d_h_before = before;
            memset(before, 0, sizeof(T) * block);
            cell.backward(step);
            if (s.lengths) pass_ended(step, t, ended);
            std::swap(d_h, before);
            for (int64_t r = 0; s.d_wx && r < rows; r++)
                memcpy(out(s.d_wx, t, row_gates) + r * row_gates, step.d_gates + r * chunk.ldd, sizeof(T) * row_gates);
            remember(chunk, step, t);
            step.h = const_cast<T *>(previous);
            std::swap(pairs[0], pairs[1]);
            if (chunk.rows + rows > chunk.most || k == 0) sum_up(chunk, at);
        }
        memcpy(out(s.d_state, 0, width), d_h, sizeof(T) * block);
        if (s.states == 2) memcpy(out(s.d_state, 1, width), step.d_c, sizeof(T) * block);
    }

    // Where a thread's sums of gradients lie: every term's, the input matrix transposed with the bias as its last row, own.
    struct Sums {
        T *term[16], *input, *own;
        int64_t size;
    };
    static Sums split(const slimrnn_scan &s, Term<T> *const *terms, T *at) {
        Sums sums{};
        int64_t size = 0;
        for (int k = 0; k < s.term_count; k++) {
            sums.term[k] = at + size;
            size += round_up(terms[k]->gradient_size(), lanes<T>);
        }
        sums.input = at + size;
        if (s.u) size += round_up(s.gates * s.width * (s.input_size + 1), lanes<T>);
        sums.own = at + size;
        if (s.own) size += s.width * (s.cell == SLIMRNN_LSTM ? 3 : 1);
        sums.size = size;
        return sums;
    }
    static int64_t sums_size(const slimrnn_scan &s, Term<T> *const *terms) { return split(s, terms, nullptr).size; }

    static void deliver(const slimrnn_scan &s, Term<T> *const *terms, const T *at) {
        Sums sums = split(s, terms, const_cast<T *>(at));
        for (int k = 0; k < s.term_count; k++) terms[k]->deliver(sums.term[k], 0, s.gates);
        const int64_t own = s.own ? s.width * (s.cell == SLIMRNN_LSTM ? 3 : 1) : 0, m = s.input_size;
        for (int64_t i = 0; i < own; i++) static_cast<T *>(s.d_own)[i] += sums.own[i];
        if (!s.u) return;
        const int64_t n = s.gates * s.width;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < m; j++) static_cast<T *>(s.d_u)[i * m + j] += sums.input[j * n + i];
            if (s.bias) static_cast<T *>(s.d_bias)[i] += sums.input[m * n + i];
        }
    }

    static int64_t workspace(const slimrnn_scan &s, Term<T> *const *terms, int64_t rows) {
        const int64_t most = rows_at_once(rows);
        int64_t scratch = 0;
        int64_t kept = 0;
        for (int k = 0; k < s.term_count; k++) {
            scratch = std::max(scratch, terms[k]->scratch_size(most));
            kept += round_up(most * s.gates * terms[k]->kept_size(), lanes<T>);
        }
        return scratch + kept + rows * s.width * (11 + s.gates) + 32 * panel<T> +
               most * ((3 + s.gates) * (round_up(s.width, panel<T>) + lanes<T>) + round_up(s.input_size + 1, panel<T>));
    }

  private:
    // The last few steps on the way back, row by row: what the gradients of the matrices are made of.
    struct Chunk {
        int64_t rows = 0, most, ldd, ldx, ldu;
        T *d;        // (rows, G, width), rows ldd apart: gradients of the gates
        T *x;        // (rows, ldx) the state before, masked
        T *special;  // GRU: (rows, width) the candidate's own gradient (after) or input (before)
        T *u;        // (rows, ldu) the input and a one
        T *kept[16]; // per term: (rows, G, kept_size)
    };
    // Rows a multiple of a page apart would compete for the same few lines of the cache.
    static int64_t apart(int64_t length) { return length % (1024 / sizeof(T)) ? length : length + lanes<T>; }
    static int64_t rows_at_once(int64_t rows) { return std::max<int64_t>(rows, 96 / rows * rows); }
    Chunk make_chunk() {
        Chunk c;
        c.most = rows_at_once(rows);
        c.ldd = apart(row_gates);
        c.ldx = apart(round_up(width, panel<T>));
        c.ldu = round_up(s.input_size + 1, panel<T>);
        c.d = memory.take(c.most * c.ldd);
        c.special = memory.take(c.most * c.ldx + panel<T>);
        c.x = memory.take(c.most * c.ldx + panel<T>);
        c.u = memory.take(c.most * c.ldu + panel<T>);
        for (int k = 0; k < map.count; k++) c.kept[k] = memory.take(c.most * s.gates * map.terms[k]->kept_size());
        return c;
    }
    void remember(Chunk &c, const Step<T> &step, int64_t t) const {
        for (int64_t r = 0; r < rows; r++) {
            T *to = c.x + (c.rows + r) * c.ldx;
            const T *h = step.h_before + r * width;
            if (map.mask)
                for (int64_t i = 0; i < width; i++) to[i] = h[i] * map.mask[r * width + i];
            else
                memcpy(to, h, sizeof(T) * width);
            if (!s.u) continue;
            T *u = c.u + (c.rows + r) * c.ldu;
            memcpy(u, in(s.x, t, s.input_size) + r * s.input_size, sizeof(T) * s.input_size);
            u[s.input_size] = T(1);
        }
        if (s.cell == SLIMRNN_GRU_BEFORE)  // the candidate's product is that of r h
            for (int64_t r = 0; r < rows; r++) {
                const T *reset = step.gates + r * row_gates, *h = c.x + (c.rows + r) * c.ldx;
                T *to = c.special + (c.rows + r) * width;
                for (int64_t i = 0; i < width; i++) to[i] = reset[i] * h[i];
            }
        c.rows += rows;
    }
    void sum_up(Chunk &c, const Sums &at) const {
        const int g = s.gates;
        for (int k = 0; k < s.term_count; k++) {
            auto add = [&](const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last) {
                map.terms[k]->gradient(map.scratch, c.rows, x, ldx, y, ldy, first, last, c.kept[k],
                                       g * map.terms[k]->kept_size(), at.term[k]);
            };
            if (s.cell == SLIMRNN_GRU_AFTER) {
                add(c.x, c.ldx, c.d, c.ldd, 0, 2);
                add(c.x, c.ldx, c.special, width, 2, 3);
            } else if (s.cell == SLIMRNN_GRU_BEFORE) {
                add(c.x, c.ldx, c.d, c.ldd, 0, 2);
                add(c.special, width, c.d + 2 * width, c.ldd, 2, 3);
            } else {
                add(c.x, c.ldx, c.d, c.ldd, 0, g);
            }
        }
        const int64_t m = s.input_size + 1;
        if (s.u) correlate(c.rows, m, row_gates, c.u, c.ldu, c.d, c.ldd, at.input, row_gates);
        c.rows = 0;
    }
    // The gates before the recurrent product: U x + b.
    void begin(T *gates, int64_t t) const {
        if (!s.u) {
            memcpy(gates, in(s.x, t, row_gates), sizeof(T) * rows * row_gates);
            return;
        }
        const T *x = in(s.x, t, s.input_size), *bias = static_cast<const T *>(s.bias);
        if (s.input_size < 8) {
            multiply_by_rows(rows, x, s.input_size, input, gates, row_gates, bias);
            return;
        }
        if (!bias) memset(gates, 0, sizeof(T) * rows * row_gates);
        multiply(rows, x, s.input_size, input, gates, row_gates, bias);
    }
    // A complex output is shown as real parts and imaginary parts side by side.
    void show(const T *h, int64_t t) const {
        T *to = out(s.out, t, width);
        for (int64_t r = 0; r < rows; r++, h += width, to += width) {
            if (!valid(t, r)) {
                memset(to, 0, sizeof(T) * width);
                continue;
            }
            const int64_t n = width / 2;
            int64_t i = 0;
            for (; i + lanes<T> <= n; i += lanes<T>) {
                Vec<T> re, im;
                separate<T>(load(h + 2 * i), load(h + 2 * i + lanes<T>), re, im);
                store(to + i, re), store(to + n + i, im);
            }
            for (; i < n; i++) to[i] = h[2 * i], to[n + i] = h[2 * i + 1];
        }
    }
    // pairs = (or +=) what a row shows
    template <bool ADD> void as_pairs(const T *row, T *pairs) const {
        const int64_t n = width / 2;
        int64_t i = 0;
        for (; i + lanes<T> <= n; i += lanes<T>) {
            Vec<T> low, high;
            T *to = pairs + 2 * i;
            interleave<T>(load(row + i), load(row + n + i), low, high);
            store(to, ADD ? load(to) + low : low);
            store(to + lanes<T>, ADD ? load(to + lanes<T>) + high : high);
        }
        for (; i < n; i++) {
            pairs[2 * i] = (ADD ? pairs[2 * i] : T(0)) + row[i];
            pairs[2 * i + 1] = (ADD ? pairs[2 * i + 1] : T(0)) + row[n + i];
        }
    }
    // The state again, from what was shown of it.
    T *shown(int64_t t, T *local) const {
        T *at = out(s.out, t, width);
        if (!s.is_complex) return at;
        for (int64_t r = 0; r < rows; r++) as_pairs<false>(at + r * width, local + r * width);
        return local;
    }
    void add_shown(T *d_h, const T *d_out) const {
        if (s.is_complex)
            as_pairs<true>(d_out, d_h);
        else
            for (int64_t i = 0; i < width; i++) d_h[i] += d_out[i];
    }
    template <int WRITE = 0> static void prefetch(const T *p, int64_t count) {
        for (int64_t i = 0; i < count; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(p + i, WRITE, 2);
    }
    // Sequences that have ended keep their state; their history is zero.
    void keep_ended(Step<T> &step, int64_t t, T *h_history, T *c_history) const {
        keep_ended(step.h, step.h_before, t, h_history);
        if (step.c_before) keep_ended(step.c, step.c_before, t, c_history);
    }
    void keep_ended(T *now, const T *before, int64_t t, T *history) const {
        const size_t bytes = sizeof(T) * width;
        for (int64_t r = 0; r < rows; r++) {
            T *to = history ? out(history, t, width) + r * width : nullptr;
            if (!valid(t, r)) {
                memcpy(now + r * width, before + r * width, bytes);
                if (to) memset(to, 0, bytes);
            } else if (to) {
                memcpy(to, now + r * width, bytes);
            }
        }
    }
    // On the way back the cell sees no gradient of a sequence that has ended: it goes past the step unchanged.
    void set_aside_ended(int64_t t, T *d_h, T *d_c, T *const *aside) const {
        const size_t bytes = sizeof(T) * width;
        for (int64_t r = 0; r < rows; r++)
            for (T *d : {d_h, d_c})
                if (d && !valid(t, r)) {
                    memcpy(aside[d == d_c] + r * width, d + r * width, bytes);
                    memset(d + r * width, 0, bytes);
                }
    }
    void pass_ended(Step<T> &step, int64_t t, T *const *aside) const {
        const size_t bytes = sizeof(T) * width;
        for (int64_t r = 0; r < rows; r++)
            if (!valid(t, r)) {
                memset(step.d_gates + r * step.ldd, 0, sizeof(T) * row_gates);
                memcpy(step.d_h_before + r * width, aside[0] + r * width, bytes);
                if (s.states == 2) memcpy(step.d_c + r * width, aside[1] + r * width, bytes);
            }
    }
    // The state before step k: the previous one where there was one, else the initial state.
    const T *state_before(int64_t k, const T *previous, int which, T *local) const {
        const T *start = in(s.state, which, width);
        if (k == 0) return start;
        if (!s.lengths) return previous;
        const int64_t t = time_of(k - 1);
        for (int64_t r = 0; r < rows; r++)
            memcpy(local + r * width, (valid(t, r) ? previous : start) + r * width, sizeof(T) * width);
        return local;
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
