// The only time loop: forward and backward through time, either direction, ragged or not, for the rows of one thread.
#pragma once
#include "cells/find.h"
#include "gradients.h"
#include "pairs.h"
#include "some_rows.h"

#include <new>

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> class TimeLoop {
    const slimrnn_scan &s;
    const Cell<T> cell;
    const int64_t first, rows, width, row_gates;
    Workspace<T> memory;
    const int64_t block;  // numbers of a state of these rows
    const Packed<T> input;
    Recurrence<T> maps[most_phases];
    SomeRows<T> some;  // where sequences have ended, the others

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
        int64_t most = 0;
        for (int k = 0; k < s.term_count; k++) most = std::max(most, terms[k]->scratch_size(rows_at_once(rows)));
        T *scratch = memory.take(most), *masked = memory.take(block);
        for (int phase = 0; phase < s.phases; phase++)
            maps[phase] = {terms + phase * terms_per_phase(s), terms_per_phase(s), s.mask ? in(s.mask, 0, width) : nullptr,
                           rows, width, masked, scratch, s.gates, {}};
        if (s.lengths) some = SomeRows<T>(s, rows, memory);
    }

    void forward() {
        Step<T> step{nullptr, rows, width, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                     memory.take(block), nullptr, nullptr, nullptr, nullptr, nullptr, 0};
        T *gates = memory.take(rows * row_gates), *h[2] = {memory.take(block), memory.take(block)},
          *c[2] = {memory.take(block), memory.take(block)}, *given = memory.take(block);
        T *h_history = static_cast<T *>(s.is_complex ? nullptr : s.out);
        T *c_history = static_cast<T *>(s.states == 2 ? s.state_history : nullptr);
        step.h_before = in(s.state, 0, width);
        step.c_before = s.states == 2 ? in(s.state, 1, width) : nullptr;
        for (int64_t k = 0; k < s.time; k++) {
            const int64_t t = time_of(k);
            enter(step, k);
            step.gates = s.gate_history ? out(s.gate_history, t, row_gates) : gates;
            if (!s.u && k + 1 < s.time) prefetch(in(s.x, time_of(k + 1), row_gates), rows * row_gates);
            if (s.gate_history && k + 1 < s.time)
                prefetch<1>(in(s.gate_history, time_of(k + 1), row_gates), rows * row_gates);
            T *to = s.lengths || !h_history ? h[k % 2] : out(h_history, t, width);
            step.h = !s.leaky ? to : keeps_given() ? out(s.state_history, t, width) : given;
            step.c = s.lengths || !c_history ? c[k % 2] : out(c_history, t, width);
            if (all_go_on(t)) {
                begin(step.gates, in(s.x, t, row_input()), rows);
                cell.forward(step);
                if (s.leaky) mix(step, leak(k), to);
            } else {
                forward_some(step, k, to, given);
            }
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
        alignas(Gradients<T>) unsigned char room[most_phases][sizeof(Gradients<T>)];
        Gradients<T> *of_phase[most_phases];
        for (int phase = 0; phase < s.phases; phase++) {
            of_phase[phase] = new (room[phase]) Gradients<T>(s, maps[phase], memory, sums);
            sums += Gradients<T>::size(s, maps[phase].terms);
        }
        Step<T> step{nullptr, rows, width, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                     nullptr, nullptr, memory.take(block), nullptr, nullptr, nullptr, 0};
        T *d_h = memory.take(block), *before = memory.take(block);
        T *h_local = memory.take(block), *c_local = memory.take(block);
        T *given = memory.take(block), *d_given = memory.take(block);
        T *pairs[2] = {memory.take(block), memory.take(block)};
        step.h = shown(time_of(s.time - 1), pairs[0]);
        memcpy(d_h, in(s.d_last, 0, width), sizeof(T) * block);
        if (s.states == 2) memcpy(step.d_c, in(s.d_last, 1, width), sizeof(T) * block);
        for (int64_t k = s.time - 1; k >= 0; k--) {
            const int64_t t = time_of(k);
            for (int64_t r = 0; r < rows; r++)
                if (valid(t, r)) add_shown(d_h + r * width, in(s.d_out, t, width) + r * width);
            enter(step, k);
            Gradients<T> &gradients = *of_phase[k % s.phases];
            step.d_own = gradients.own();
            step.gates = s.gate_history ? out(s.gate_history, t, row_gates) : nullptr;
            gradients.make_room(step, maps[k % s.phases]);
            const T *previous = k ? shown(time_of(k - 1), pairs[1]) : nullptr;
            step.c = s.states == 2 ? out(s.state_history, t, width) : nullptr;
            step.h_before = state_before(k, previous, 0, h_local);
            if (s.states == 2)
                step.c_before = state_before(k, k ? in(s.state_history, time_of(k - 1), width) : nullptr, 1, c_local);
            if (k > 0) prefetch(in(s.d_out, time_of(k - 1), width), block);
            if (k > 1) prefetch(in(s.out, time_of(k - 2), width), block);
            if (k > 0 && s.gate_history) prefetch(in(s.gate_history, time_of(k - 1), row_gates), rows * row_gates);
            step.d_h = d_h;
            step.d_h_before = before;
            if (all_go_on(t)) {
                take_back(step, k, keeps_given() ? out(s.state_history, t, width) : given, d_given);
                for (int64_t r = 0; s.d_wx && r < rows; r++)
                    memcpy(out(s.d_wx, t, row_gates) + r * row_gates, step.d_gates + r * step.ldd, sizeof(T) * row_gates);
                gradients.remember(step, s.u ? in(s.x, t, s.input_size) : nullptr);
            } else {
                backward_some(step, k, gradients, given, d_given);
            }
            std::swap(d_h, before);
            step.h = const_cast<T *>(previous);
            std::swap(pairs[0], pairs[1]);
            if (gradients.is_full() || k < s.phases) gradients.sum_up();
        }
        memcpy(out(s.d_state, 0, width), d_h, sizeof(T) * block);
        if (s.states == 2) memcpy(out(s.d_state, 1, width), step.d_c, sizeof(T) * block);
    }

    static int64_t workspace(const slimrnn_scan &s, Term<T> *const *terms, int64_t rows) {
        int64_t scratch = 0;
        for (int k = 0; k < s.term_count; k++)
            scratch = std::max(scratch, terms[k]->scratch_size(rows_at_once(rows)));
        int64_t sums = 0;
        for (int phase = 0; phase < s.phases; phase++)
            sums += Gradients<T>::workspace(s, terms + phase * terms_per_phase(s), rows);
        return scratch + rows * s.width * (11 + s.gates) + 36 * panel<T> + sums + SomeRows<T>::workspace(s, rows);
    }

  private:
    // The maps and parameters of step k.
    const T *own(int64_t k) const { return static_cast<const T *>(s.own) + k % s.phases * s.own_rows * width; }
    const T *leak(int64_t k) const { return own(k) + (s.own_rows - 1) * width; }
    bool keeps_given() const { return s.leaky && s.states == 1 && s.state_history; }
    void enter(Step<T> &step, int64_t k) const {
        step.map = &maps[k % s.phases];
        step.own = s.own_rows > s.leaky ? own(k) : nullptr;
    }
    int64_t row_input() const { return s.u ? s.input_size : row_gates; }

    // Sequences that have ended take no part in a step: whatever stands in their rows reaches neither a state nor a sum.
    bool all_go_on(int64_t t) {
        if (!s.lengths) return true;
        some.count = 0;
        for (int64_t r = 0; r < rows; r++)
            if (valid(t, r)) some.row[some.count++] = r;
        return some.count == rows;
    }
    // The same step for those rows alone.
    Step<T> narrowed(const Step<T> &step) const {
        Step<T> part = step;
        part.rows = some.count;
        part.h_before = some.gather(step.h_before, width, some.h_before);
        if (s.states == 2) part.c_before = some.gather(step.c_before, width, some.c_before);
        return part;
    }
    Recurrence<T> narrowed(const Recurrence<T> &map) const {
        Recurrence<T> part = map;
        part.rows = some.count;
        if (map.mask) part.mask = some.gather(map.mask, width, some.mask);
        return part;
    }
    void forward_some(Step<T> &step, int64_t k, T *to, T *given) {
        const int64_t t = time_of(k);
        const Recurrence<T> map = narrowed(*step.map);
        Step<T> part = narrowed(step);
        part.map = &map;
        part.gates = some.gates, part.h = s.leaky ? given : some.h, part.c = some.c;
        begin(part.gates, some.gather(in(s.x, t, row_input()), row_input(), some.input), part.rows);
        cell.forward(part);
        if (keeps_given()) some.scatter(given, width, width, out(s.state_history, t, width), rows);
        if (s.leaky) mix(part, leak(k), some.h);
        some.scatter(part.h, width, width, to);
        if (s.states == 2) some.scatter(part.c, width, width, step.c);
        if (s.gate_history) some.scatter(part.gates, row_gates, row_gates, step.gates, rows);
        step.h = to;
    }
    void backward_some(Step<T> &step, int64_t k, Gradients<T> &gradients, T *given, T *d_given) {
        const int64_t t = time_of(k);
        Recurrence<T> map = narrowed(*step.map);
        Step<T> part = narrowed(step);
        part.map = &map;
        gradients.make_room(part, map);
        part.h = some.gather(step.h, width, some.h);
        part.d_h = some.gather(step.d_h, width, some.d_h);
        part.d_h_before = some.d_h_before;
        if (s.gate_history) part.gates = some.gather(step.gates, row_gates, some.gates);
        if (s.states == 2) {
            part.c = some.gather(step.c, width, some.c);
            part.d_c = some.gather(step.d_c, width, some.d_c);
        }
        if (keeps_given()) some.gather(out(s.state_history, t, width), width, given);
        take_back(part, k, given, d_given);
        memcpy(step.d_h_before, step.d_h, sizeof(T) * block);  // past the step, unchanged
        some.scatter(part.d_h_before, width, width, step.d_h_before);
        if (s.states == 2) some.scatter(part.d_c, width, width, step.d_c);
        if (s.d_wx) some.scatter(part.d_gates, part.ldd, row_gates, out(s.d_wx, t, row_gates), rows);
        gradients.remember(part, s.u ? some.gather(in(s.x, t, s.input_size), s.input_size, some.input) : nullptr);
    }
    void take_back(Step<T> &step, int64_t k, T *given, T *d_given) const {
        const T *d_h = step.d_h;
        memset(step.d_h_before, 0, sizeof(T) * step.rows * width);
        if (s.leaky) unmix(step, leak(k), given, d_given);
        cell.backward(step);
        if (s.leaky) pass_leak(step.rows, d_h, leak(k), step.d_h_before);
    }
    // h = a h_before + (1 − a) v, where the cell gave v
    void mix(Step<T> &step, const T *leak, T *to) const {
        for (int64_t r = 0; r < step.rows; r++)
            each_vector<T>(width, [&](int64_t i, auto n) {
                const int64_t at = r * width + i;
                Vec<T> v = n.get(step.h + at), a = n.get(leak + i);
                n.put(to + at, v + a * (n.get(step.h_before + at) - v));
            });
        step.h = to;
    }
    // The cell sees what it gave and the gradient of that; the leak's is summed.
    void unmix(Step<T> &step, const T *leak, T *given, T *d_given) const {
        T *d_leak = step.d_own + (s.own_rows - 1) * width;
        for (int64_t r = 0; r < step.rows; r++)
            each_vector<T>(width, [&](int64_t i, auto n) {
                const int64_t at = r * width + i;
                if (s.states == 2)
                    n.put(given + at, n.get(step.gates + r * row_gates + 3 * width + i) *
                                          hyperbolic_tangent<T>(n.get(step.c + at)));
                Vec<T> d = n.get(step.d_h + at);
                add_to<T>(d_leak + i, n, d * (n.get(step.h_before + at) - n.get(given + at)));
                n.put(d_given + at, d - d * n.get(leak + i));
            });
        step.h = given;
        step.d_h = d_given;
    }
    void pass_leak(int64_t rows, const T *d_h, const T *leak, T *d_before) const {
        for (int64_t r = 0; r < rows; r++)
            each_vector<T>(width, [&](int64_t i, auto n) {
                add_to<T>(d_before + r * width + i, n, n.get(d_h + r * width + i) * n.get(leak + i));
            });
    }
    // The gates before the recurrent product: U x + b.
    void begin(T *gates, const T *x, int64_t rows) const {
        if (!s.u) {
            memcpy(gates, x, sizeof(T) * rows * row_gates);
            return;
        }
        const T *bias = static_cast<const T *>(s.bias);
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
            from_pairs(h, width / 2, to);
        }
    }
    // The state again, from what was shown of it.
    T *shown(int64_t t, T *local) const {
        T *at = out(s.out, t, width);
        if (!s.is_complex) return at;
        for (int64_t r = 0; r < rows; r++) as_pairs<T, false>(at + r * width, width / 2, local + r * width);
        return local;
    }
    void add_shown(T *d_h, const T *d_out) const {
        if (s.is_complex)
            as_pairs<T, true>(d_out, width / 2, d_h);
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
