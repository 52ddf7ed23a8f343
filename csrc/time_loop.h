// The only time loop: forward and backward through time, either direction, ragged or not, for the rows of one thread.
#pragma once
#include "cells/stepper.h"
#include "gradients.h"
#include "input_product.h"
#include "kernels.h"
#include "pairs.h"
#include "some_rows.h"

#include <new>

namespace slimrnn {
namespace SLIMRNN_ISA {

// So many steps that the tiles of the input product are filled and U is not read for every step.
inline int64_t steps_ahead(const slimrnn_scan &s, int64_t rows) {
    return rows < 2 * SLIMRNN_TILE_ROWS && s.input_size >= 8 ? 48 / rows : 1;
}

template <class T, class Input = InputProduct<T>> class TimeLoop {
    const slimrnn_scan &s;
    const slimrnn_cell &cell;
    const int64_t first, rows, width, row_gates, row_slots;
    const int64_t block;  // numbers of a state of these rows
    const int states;
    const Input &input;
    Arena<T> input_scratch;
    Stepper<T> stepper;
    Recurrence<T> maps[SLIMRNN_MOST_PHASES];
    SomeRows<T> some;  // where sequences have ended, the others
    Crew *crew = nullptr;

    const T *start[SLIMRNN_MOST_STATES];  // the states before the first step, and
    T *end[SLIMRNN_MOST_STATES];          // where those after the last go
    T *spare, *row_sums;
    int64_t ahead = 1;         // steps whose U x + b are taken at once, where rows are few
    T *products, *some_input;  // of those steps, (ahead, rows, G, width), and their x where that is not in one piece
    T *slots, *now[2][SLIMRNN_MOST_STATES];          // forward, where no history is kept
    T *states_before[SLIMRNN_MOST_STATES];           // where they are not those after the step before
    T *d_states[2][SLIMRNN_MOST_STATES], *pairs[2];  // backward
    alignas(Gradients<T>) unsigned char room[SLIMRNN_MOST_PHASES][sizeof(Gradients<T>)];
    Gradients<T> *gradients[SLIMRNN_MOST_PHASES];

    const T *in(const void *p, int64_t t, int64_t per_row) const {
        return static_cast<const T *>(p) + (t * s.batch + first) * per_row;
    }
    T *out(void *p, int64_t t, int64_t per_row) const { return static_cast<T *>(p) + (t * s.batch + first) * per_row; }
    bool valid(int64_t t, int64_t r) const { return !s.lengths || t < s.lengths[first + r]; }
    bool is_reset(int64_t t, int64_t r) const { return s.resets[t * s.batch + first + r] && valid(t, r); }
    bool any_reset(int64_t t) const {
        for (int64_t r = 0; s.resets && r < rows; r++)
            if (is_reset(t, r)) return true;
        return false;
    }
    int64_t time_of(int64_t step) const { return s.reverse ? s.time - 1 - step : step; }
    // All that is kept of a state, or null. A complex first state is not kept as it is, but as it is shown.
    T *history(int state) const {
        if (state == 0) return static_cast<T *>(s.is_complex ? nullptr : s.out);
        return s.state_history ? static_cast<T *>(s.state_history) + (state - 1) * s.time * s.batch * width : nullptr;
    }

  public:
    // Takes all its memory here, for `forward` or, where there are sums to add to, for `backward`; `memory` has the crew.
    TimeLoop(const slimrnn_scan &scan, Term<T> *const *terms, const Ready<T> &program, const Input &input,
             int64_t first, int64_t rows, Arena<T> &memory, T *sums)
        : s(scan), cell(*scan.cell), first(first), rows(rows), width(scan.width), row_gates(cell.gates * width),
          row_slots(cell.slots * width), block(rows * width), states(cell.states), input(input),
          stepper(scan, program, memory) {
        int64_t most = 0;
        for (int k = 0; k < s.term_count; k++)
            most = std::max(most, round_up(terms[k]->scratch_size(rows_at_once(rows)), lanes<T>));
        Arena<T> scratch(memory.take(most), most);
        scratch.crew = crew = memory.crew;
        T *masked = memory.take(block);
        for (int phase = 0; phase < s.phases; phase++) {
            Recurrence<T> &map = maps[phase];
            map.terms = terms + phase * terms_per_phase(s);
            map.count = terms_per_phase(s), map.matrices = cell.matrices;
            map.rows = rows, map.width = width;
            map.masks = masks_of(s);
            map.mask = s.mask ? in(s.mask, 0, map.masks * width) : nullptr;
            map.masked = masked, map.scratch = scratch;
        }
        if (s.lengths) some = SomeRows<T>(s, rows, memory);
        spare = memory.take(cell.spares * block), row_sums = memory.take(cell.row_sums * Step<T>::row_sum_size(rows));
        for (int i = 0; i < states && s.state; i++) start[i] = in(s.state, i, width);
        for (int i = 0; i < states && s.last; i++) end[i] = out(s.last, i, width);
        if (sums)
            prepare_backward(memory, sums);
        else
            prepare_forward(memory);
    }
    // The states of a single step lie wherever the caller has them.
    void use(void *const *before, void *const *after) {
        for (int i = 0; i < states; i++) {
            start[i] = static_cast<const T *>(before[i]) + first * width;
            end[i] = static_cast<T *>(after[i]) + first * width;
        }
    }

    void forward() {
        Step<T> step = common();
        for (int i = 0; i < states; i++) step.before[i] = start[i];
        for (int64_t k = 0; k < s.time; k++) {
            const int64_t t = time_of(k);
            enter(step, k);
            step.slots = s.gate_history ? out(s.gate_history, t, row_slots) : slots;
            if (k + 1 < s.time) prefetch_next(time_of(k + 1));
            if (ahead > 1 && k % ahead == 0) look_ahead(k);
            for (int i = 0; i < states; i++)
                step.after[i] = s.lengths || !history(i) ? now[k % 2][i] : out(history(i), t, width);
            if (any_reset(t)) reset(step, t);
            if (all_go_on(t)) {
                begin(step.slots, k);
                stepper.forward(step);
            } else {
                forward_some(step, k);
            }
            for (int i = 0; i < states; i++) {
                if (s.lengths) keep_ended(step.after[i], step.before[i], t, history(i));
                step.before[i] = step.after[i];
            }
            if (s.is_complex) show(step.after[0], t);
        }
        for (int i = 0; i < states; i++) memcpy(end[i], step.before[i], sizeof(T) * block);
    }

    // Back through time. The gradients of the parameters are summed every few steps, while what they need is at hand.
    void backward() {
        Step<T> step = common();
        step.after[0] = shown(time_of(s.time - 1), pairs[0]);
        T **d_after = d_states[0], **d_before = d_states[1];
        for (int i = 0; i < states; i++) memcpy(d_after[i], in(s.d_last, i, width), sizeof(T) * block);
        for (int64_t k = s.time - 1; k >= 0; k--) {
            const int64_t t = time_of(k);
            for (int64_t r = 0; r < rows; r++)
                if (s.d_out && valid(t, r)) add_shown(d_after[0] + r * width, in(s.d_out, t, width) + r * width);
            enter(step, k);
            Gradients<T> &sums = *gradients[k % s.phases];
            step.d_own = sums.own();
            step.slots = s.gate_history ? out(s.gate_history, t, row_slots) : nullptr;
            T *const previous = k ? shown(time_of(k - 1), pairs[1]) : nullptr;
            look_at_states(step, k, previous);
            for (int i = 0; i < states; i++) step.d_after[i] = d_after[i], step.d_before[i] = d_before[i];
            prefetch_previous(k);
            if (all_go_on(t))
                backward_all(step, t, sums);
            else
                backward_some(step, t, sums);
            if (any_reset(t)) reset_back(d_before, t);
            std::swap(d_after, d_before);
            std::swap(pairs[0], pairs[1]);
            step.after[0] = previous;
            if (sums.is_full() || k < s.phases) sums.sum_up();
        }
        for (int i = 0; i < states; i++) memcpy(out(s.d_state, i, width), d_after[i], sizeof(T) * block);
    }

  private:
    void prepare_forward(Arena<T> &memory) {
        slots = memory.take(rows * row_slots);
        if (s.u) ahead = std::min(s.time, steps_ahead(s, rows));
        if (ahead > 1) products = memory.take(ahead * rows * row_gates);
        const int64_t most = s.u ? round_up(input.scratch_size(ahead * rows), lanes<T>) : 0;
        input_scratch = Arena<T>(memory.take(most), most);
        if (ahead > 1 && rows < s.batch) some_input = memory.take(ahead * rows * s.input_size);
        for (int i = 0; i < states; i++)
            for (T **part : {&now[0][i], &now[1][i]}) *part = memory.take(block);
        for (int i = 0; i < states && s.resets; i++) states_before[i] = memory.take(block);
    }
    void prepare_backward(Arena<T> &memory, T *sums) {
        for (int phase = 0; phase < s.phases; phase++) {
            gradients[phase] = new (room[phase]) Gradients<T>(s, maps[phase], memory, sums);
            sums += Gradients<T>::size(s, maps[phase].terms);
        }
        for (int i = 0; i < states; i++)
            for (T **part : {&d_states[0][i], &d_states[1][i], &states_before[i]}) *part = memory.take(block);
        for (T *&part : pairs) part = memory.take(block);
    }
    // What is the same in every step.
    Step<T> common() const {
        Step<T> step;
        step.rows = rows, step.width = width, step.spare = spare, step.row_sums = row_sums;
        step.seed = s.seed, step.first_row = first;
        return step;
    }
    // The maps and parameters of step k.
    void enter(Step<T> &step, int64_t k) const {
        step.map = &maps[k % s.phases];
        step.time = s.first_step + time_of(k);
        if (s.own) step.own = static_cast<const T *>(s.own) + k % s.phases * cell.own_rows * width;
    }
    // What a step begins with: x, or U x + b where that is ready.
    int64_t row_input() const { return s.u && ahead == 1 ? s.input_size : row_gates; }
    const T *input_of(int64_t k) const {
        if (ahead == 1) return in(s.x, time_of(k), row_input());
        const int64_t last = std::min(s.time - k / ahead * ahead, ahead) - 1;
        return products + (s.reverse ? last - k % ahead : k % ahead) * rows * row_gates;
    }
    // U x + b of the steps from k on, in the order of time: few rows would leave the multipliers idle, and U would be
    // read again for every step.
    void look_ahead(int64_t k) {
        const int64_t steps = std::min(s.time - k, ahead), earliest = s.reverse ? time_of(k + steps - 1) : k;
        const T *x = in(s.x, earliest, s.input_size);
        if (rows < s.batch) {
            for (int64_t i = 0; i < steps; i++)
                memcpy(some_input + i * rows * s.input_size, in(s.x, earliest + i, s.input_size),
                       sizeof(T) * rows * s.input_size);
            x = some_input;
        }
        multiply_input(products, row_gates, x, steps * rows);
    }

    // Memory of the next step on its way into the cache.
    template <int WRITE = 0> static void prefetch(const T *p, int64_t count) {
        for (int64_t i = 0; i < count; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(p + i, WRITE, 2);
    }
    void prefetch_next(int64_t t) const {
        if (s.tokens)
            for (int64_t r = 0; r < rows; r++) prefetch(table_row(t, r), row_gates);
        else if (!s.u)
            prefetch(in(s.x, t, row_gates), rows * row_gates);
        if (s.gate_history) prefetch<1>(in(s.gate_history, t, row_slots), rows * row_slots);
    }
    void prefetch_previous(int64_t k) const {
        if (k > 0 && s.d_out) prefetch(in(s.d_out, time_of(k - 1), width), block);
        if (k > 0 && s.gate_history) prefetch(in(s.gate_history, time_of(k - 1), row_slots), rows * row_slots);
        if (k > 1) prefetch(in(s.out, time_of(k - 2), width), block);
        for (int i = 1; i < states && k > 1; i++) prefetch(in(history(i), time_of(k - 2), width), block);
    }
    // On the way back: the states before and after step k, where `previous` is the first state before it.
    void look_at_states(Step<T> &step, int64_t k, const T *previous) const {
        for (int i = 0; i < states; i++) {
            if (i > 0) step.after[i] = out(history(i), time_of(k), width);
            if (i > 0 && k > 0) previous = in(history(i), time_of(k - 1), width);
            step.before[i] = state_before(k, previous, i, states_before[i]);
        }
        if (any_reset(time_of(k))) reset(step, time_of(k));
    }
    // Some rows begin anew with the step at t, and
    void reset(Step<T> &step, int64_t t) const {
        for (int i = 0; i < states; i++) {
            T *const local = states_before[i];
            if (step.before[i] != local) memcpy(local, step.before[i], sizeof(T) * block);
            for (int64_t r = 0; r < rows; r++)
                if (is_reset(t, r))
                    memcpy(local + r * width, in(s.reset_state, i, width) + r * width, sizeof(T) * width);
            step.before[i] = local;
        }
    }
    // on the way back what they began with has their gradient, and the step before has none.
    void reset_back(T *const *d_before, int64_t t) const {
        for (int i = 0; i < states; i++)
            for (int64_t r = 0; r < rows; r++) {
                if (!is_reset(t, r)) continue;
                T *const d = d_before[i] + r * width, *const to = out(s.d_reset_state, i, width) + r * width;
                for (int64_t j = 0; j < width; j++) to[j] += d[j], d[j] = T(0);
            }
    }

    // Sequences that have ended take no part in a step: whatever stands in their rows reaches neither a state nor a sum.
    bool all_go_on(int64_t t) {
        if (!s.lengths) return true;
        some.count = 0;
        for (int64_t r = 0; r < rows; r++)
            if (valid(t, r)) some.number[some.count] = first + r, some.row[some.count++] = r;
        return some.count == rows;
    }
    // The same step for those rows alone.
    Step<T> narrowed(const Step<T> &step) const {
        Step<T> part = step;
        part.rows = some.count, part.row_numbers = some.number;
        for (int i = 0; i < states; i++) part.before[i] = some.gather(step.before[i], width, some.before[i]);
        return part;
    }
    Recurrence<T> narrowed(const Recurrence<T> &map) const {
        Recurrence<T> part = map;
        part.rows = some.count;
        if (map.mask) part.mask = some.gather(map.mask, map.masks * width, some.mask);
        return part;
    }
    void forward_some(Step<T> &step, int64_t k) {
        const Recurrence<T> map = narrowed(*step.map);
        Step<T> part = narrowed(step);
        part.map = &map, part.slots = some.slots;
        for (int i = 0; i < states; i++) part.after[i] = some.after[i];
        begin_some(part.slots, k);
        if (some.count) stepper.forward(part);
        for (int i = 0; i < states; i++) some.scatter(part.after[i], width, width, step.after[i]);
        if (s.gate_history) some.scatter(part.slots, row_slots, row_slots, step.slots, rows);
    }
    void backward_all(Step<T> &step, int64_t t, Gradients<T> &sums) {
        sums.make_room(step);
        stepper.backward(step);
        for (int64_t r = 0; s.d_wx && r < rows; r++) {
            const T *d = step.d_gates + r * step.ldd;
            if (s.tokens)
                sums.add_token(token(t, r), d);
            else
                memcpy(out(s.d_wx, t, row_gates) + r * row_gates, d, sizeof(T) * row_gates);
        }
        sums.remember(step, s.u ? in(s.x, t, s.input_size) : nullptr);
    }
    void backward_some(Step<T> &step, int64_t t, Gradients<T> &sums) {
        const Recurrence<T> map = narrowed(*step.map);
        Step<T> part = narrowed(step);
        part.map = &map;
        sums.make_room(part);
        if (s.gate_history) part.slots = some.gather(step.slots, row_slots, some.slots);
        for (int i = 0; i < states; i++) {
            part.after[i] = some.gather(step.after[i], width, some.after[i]);
            part.d_after[i] = some.gather(step.d_after[i], width, some.d_after[i]);
            part.d_before[i] = some.d_before[i];
        }
        if (some.count) stepper.backward(part);
        for (int i = 0; i < states; i++) {
            memcpy(step.d_before[i], step.d_after[i], sizeof(T) * block);  // past the step, unchanged
            some.scatter(part.d_before[i], width, width, step.d_before[i]);
        }
        if (s.d_wx && !s.tokens) some.scatter(part.d_gates, part.ldd, row_gates, out(s.d_wx, t, row_gates), rows);
        for (int64_t i = 0; s.d_wx && s.tokens && i < some.count; i++)
            sums.add_token(token(t, some.row[i]), part.d_gates + i * part.ldd);
        sums.remember(part, s.u ? some.gather(in(s.x, t, s.input_size), s.input_size, some.input) : nullptr);
    }
    // The gates before the recurrent product: U x + b, in the first slots of a row.
    void begin(T *slots, int64_t k) const {
        if (!s.tokens) return begin_with(slots, input_of(k), rows);
        for (int64_t r = 0; r < rows; r++)
            memcpy(slots + r * row_slots, table_row(time_of(k), r), sizeof(T) * row_gates);
    }
    void begin_some(T *slots, int64_t k) const {
        if (!s.tokens) return begin_with(slots, some.gather(input_of(k), row_input(), some.input), some.count);
        for (int64_t i = 0; i < some.count; i++)
            memcpy(slots + i * row_slots, table_row(time_of(k), some.row[i]), sizeof(T) * row_gates);
    }
    int64_t token(int64_t t, int64_t r) const { return s.tokens[t * s.batch + first + r]; }
    const T *table_row(int64_t t, int64_t r) const { return static_cast<const T *>(s.x) + token(t, r) * row_gates; }
    void begin_with(T *slots, const T *x, int64_t rows) const {
        if (s.u && ahead == 1)
            multiply_input(slots, row_slots, x, rows);
        else
            copy_rows(slots, x, rows);
    }
    void multiply_input(T *to, int64_t apart, const T *x, int64_t rows) const {
        input.multiply(input_scratch, crew, rows, x, to, apart);
    }
    void copy_rows(T *slots, const T *x, int64_t rows) const {
        if (row_slots == row_gates)
            memcpy(slots, x, sizeof(T) * rows * row_gates);
        else
            for (int64_t r = 0; r < rows; r++) memcpy(slots + r * row_slots, x + r * row_gates, sizeof(T) * row_gates);
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
    // Sequences that have ended keep their state; their history is zero.
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
