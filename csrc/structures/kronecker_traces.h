// Gradients of W = W_1 ⊗ … ⊗ W_k, square factors of 2, 4 and 8. With v = W^H y, which the way back needs anyway, that of
// W_i is W_i^-H N_i, N_i the partial trace of v x^H over all digits but its own, where factors are well conditioned; the
// general path otherwise.
#pragma once
#include "kronecker_digits.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T, int FIELD> struct KroneckerTraces : KroneckerDigits<T, FIELD> {
    using Base = KroneckerDigits<T, FIELD>;
    using Base::at_most;
    using Base::factors;
    using Base::first_digit;
    using Base::gates;
    using Base::most;
    using Base::p;
    using Base::width;
    using C = Chunk<T, FIELD>;

    struct Group;
    typedef void (*Sweep)(const Group &g, const int *highs, int64_t width, const T *v, const T *x, T *sums);
    // Neighbouring factors: v times conj(x) is summed for every value of their high digits and, lane by lane, of their low
    // ones, both in v; those in x are changed in some of them, by `lows` and `highs`.
    struct Group : Digits {
        int from = 0, until = 0;  // factors
        int low_count = 0, high_count = 0, lows[1 << at_most], highs[1 << at_most];
        Sweep sweeps[2];   // of four lows each
        int64_t sums = 0;  // (highs, lows, values) chunks
    };

    int group_count = 0;
    int64_t sums_per_gate = 0, inverses_per_gate = 0;
    int64_t inverse_at[most];
    Group groups[most];
    bool is_safe = false;
    T *inverses = nullptr;

    explicit KroneckerTraces(const Operands &o) : Base(o) {
        for (int i = factors; i > 0; i = groups[group_count++].from) plan(i);
        for (int i = 0; i < factors; i++) {
            inverse_at[i] = inverses_per_gate;
            inverses_per_gate += p[i] * p[i] * FIELD;
        }
    }
    void plan(int until) {
        Group g;
        g.until = until, g.from = until - 1;
        const int first = first_digit[g.from];
        int count = this->digits_of(g.from), largest = count;
        while (g.from > 0 && count + this->digits_of(g.from - 1) <= at_most && first + count != C::digits) {
            const int more = this->digits_of(--g.from);
            count += more, largest = std::max(largest, more);
        }
        static_cast<Digits &>(g) = Digits(first, count, C::digits);
        g.low_count = changes(g.low, largest == 1, g.lows);
        g.high_count = changes(g.high, largest == 1, g.highs);
        choose<0, 1>(g, largest == 1);
        g.sums = sums_per_gate;
        sums_per_gate += int64_t(g.low_count) * g.high_count * C::size << g.high;
        groups[group_count] = g;
    }
    // What may happen to so many digits: to one of them at a time, or to several.
    static int changes(int digits, bool single, int *to) {
        int count = 0;
        for (int change = 0; change < 1 << digits; change++)
            if (!single || (change & (change - 1)) == 0) to[count++] = change;
        return count;
    }
    // The values of factor i's digits, in the digits of its group.
    int part(const Group &g, int i, int value) const { return value >> (first_digit[i] - g.first) & int(p[i] - 1); }
    bool is_of(const Group &g, int i, int change) const {
        return change == part(g, i, change) << (first_digit[i] - g.first);
    }

    // --- inverses ---

    int64_t packed_size() const override { return round_up(Base::packed_size(), C::L) + gates * inverses_per_gate; }
    void pack(T *at, bool backward) override {
        Base::pack(at, backward);
        inverses = at + round_up(Base::packed_size(), C::L);
        is_safe = backward;
        for (int gate = 0; gate < gates && is_safe; gate++)
            for (int i = 0; i < factors && is_safe; i++) is_safe = invert(gate, i);
    }
    T *inverse(int gate, int i) const { return inverses + gate * inverses_per_gate + inverse_at[i]; }

    struct Number {
        T re = 0, im = 0;
        T square() const { return re * re + im * im; }
        Number operator*(Number z) const { return {re * z.re - im * z.im, re * z.im + im * z.re}; }
        Number operator-(Number z) const { return {re - z.re, im - z.im}; }
        Number operator/(Number z) const {
            const Number n = *this * Number{z.re, -z.im};
            return {n.re / z.square(), n.im / z.square()};
        }
    };
    static Number number(const T *z) { return {z[0], FIELD == 2 ? z[1] : T(0)}; }

    // By Gauss and Jordan. True if the factor's condition in the Frobenius norm is at most four times that of a unitary
    // one, and its size is nowhere near the limits of T.
    bool invert(int gate, int i) {
        constexpr int N = 1 << at_most;
        const int n = int(p[i]);
        Number a[N][2 * N];
        T size = 0, inverse_size = 0;
        for (int r = 0; r < n; r++)
            for (int c = 0; c < n; c++) {
                a[r][c] = number(this->data[i] + ((int64_t(gate) * n + r) * n + c) * FIELD);
                a[r][n + c] = {T(r == c), 0};
                size += a[r][c].square();
            }
        if (!(size > T(1e-6) && size < T(1e6))) return false;
        for (int k = 0; k < n; k++)
            if (!eliminate(a, n, k)) return false;
        T *to = inverse(gate, i);
        for (int r = 0; r < n; r++)
            for (int c = 0; c < n; c++, to += FIELD) {
                const Number z = a[r][n + c];
                to[0] = z.re;
                if (FIELD == 2) to[1] = z.im;
                inverse_size += z.square();
            }
        return size * inverse_size <= T(16 * n * n);
    }
    template <int N2> static bool eliminate(Number (*a)[N2], int n, int k) {
        int best = k;
        for (int r = k + 1; r < n; r++)
            if (a[r][k].square() > a[best][k].square()) best = r;
        const Number pivot = a[best][k];
        if (!(pivot.square() > T(1e-12))) return false;
        for (int c = 0; c < 2 * n; c++) {
            const Number z = a[best][c];
            a[best][c] = a[k][c];
            a[k][c] = z / pivot;
        }
        for (int r = 0; r < n; r++) {
            const Number factor = a[r][k];
            for (int c = 0; r != k && c < 2 * n; c++) a[r][c] = a[r][c] - factor * a[k][c];
        }
        return true;
    }

    // --- sums ---

    int64_t sums_at() const { return round_up(Base::gradient_size(), C::L); }
    int64_t gradient_size() const override { return sums_at() + gates * sums_per_gate; }

    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *kept, int64_t ldk, T *sums) const override {
        if (!is_safe) {
            Base::gradient(scratch, rows, x, ldx, y, ldy, first, last, kept, ldk, sums);
            return;
        }
        T *chunks = scratch.take(width);
        for (int64_t r = 0; r < rows; r++) {
            this->into_chunks(x + r * ldx, chunks);
            for (int gate = first; gate < last; gate++)
                for (int k = 0; k < group_count; k++)
                    add_group(groups[k], kept + r * ldk + gate * width, chunks,
                              sums + sums_at() + gate * sums_per_gate + groups[k].sums);
        }
    }
    // Four sums at a time.
    void add_group(const Group &g, const T *v, const T *x, T *sums) const {
        if (g.low == 0) {
            constexpr Sweep of[] = {sweep<1, 0>, sweep<2, 0>, sweep<3, 0>, sweep<4, 0>};
            for (int h = 0; h < g.high_count; h += 4)
                of[std::min(4, g.high_count - h) - 1](g, g.highs + h, width, v, x, sums + (h * C::size << g.high));
            return;
        }
        for (int h = 0; h < g.high_count; h++)
            for (int k = 0; k < g.low_count; k += 4)
                g.sweeps[k / 4](g, g.highs + h, width, v, x, sums + ((h * g.low_count + k) * C::size << g.high));
    }
    template <int FIRST, int LOW> static void choose(Group &g, bool single) {
        if (g.low == LOW && g.first == FIRST) {
            if constexpr (LOW == 1) g.sweeps[0] = low_sweep<FIRST, 0, 1>();
            if constexpr (LOW == 2) g.sweeps[0] = single ? low_sweep<FIRST, 0, 1, 2>() : low_sweep<FIRST, 0, 1, 2, 3>();
            if constexpr (LOW == 3) {
                g.sweeps[0] = single ? low_sweep<FIRST, 0, 1, 2, 4>() : low_sweep<FIRST, 0, 1, 2, 3>();
                g.sweeps[1] = low_sweep<FIRST, 4, 5, 6, 7>();
            }
        } else if constexpr (LOW < at_most && FIRST + LOW < C::digits) {
            choose<FIRST, LOW + 1>(g, single);
        } else if constexpr (FIRST + 1 < C::digits) {
            choose<FIRST + 1, 1>(g, single);
        }
    }
    template <int FIRST, int... CHANGES> static Sweep low_sweep() {
        return sweep<1, Base::template flip<FIRST, CHANGES>()...>;
    }

    template <int HIGHS, int... FLIPS>
    static void sweep(const Group &g, const int *highs, int64_t width, const T *v, const T *x, T *sums) {
        constexpr int COUNT = HIGHS * int(sizeof...(FLIPS));
        const int64_t step = g.right * C::size;
        for (int64_t value = 0; value < 1 << g.high; value++) {
            C sum[COUNT] = {};
            const T *from[HIGHS];
            for (int h = 0; h < HIGHS; h++) from[h] = x + (value ^ highs[h]) * step;
            for (int64_t block = 0; block < width; block += step << g.high)
                for (int64_t at = block; at < block + step; at += C::size) {
                    const C here = C::get(v + at + value * step);
                    C *to = sum;
                    for (int h = 0; h < HIGHS; h++) {
                        const C there = C::get(from[h] + at);
                        ((to++)->add_conjugate(here, there.template exchanged<FLIPS>()), ...);
                    }
                }
            for (int m = 0; m < COUNT; m++) {
                T *to = sums + (int64_t(m) << g.high | value) * C::size;
                (C::get(to) + sum[m]).put(to);
            }
        }
    }

    // --- from the sums to the gradients ---

    void deliver(const T *sums, int first, int last) const override {
        if (!is_safe) {
            Base::deliver(sums, first, last);
            return;
        }
        for (int gate = first; gate < last; gate++)
            for (int k = 0; k < group_count; k++)
                for (int i = groups[k].from; i < groups[k].until; i++) {
                    Number trace[1 << at_most][1 << at_most];
                    partial_trace(groups[k], i, sums + sums_at() + gate * sums_per_gate + groups[k].sums, trace);
                    add_gradient_of(gate, i, trace);
                }
    }
    template <int N> void partial_trace(const Group &g, int i, const T *sums, Number (*trace)[N]) const {
        for (int h = 0; h < g.high_count; h++)
            for (int k = 0; k < g.low_count; k++)
                for (int high = 0; high < 1 << g.high; high++, sums += C::size) {
                    const int change = g.highs[h] << g.low | g.lows[k];
                    if (is_of(g, i, change)) add_lanes(g, i, high, change, sums, trace);
                }
    }
    template <int N>
    void add_lanes(const Group &g, int i, int high, int change, const T *sums, Number (*trace)[N]) const {
        for (int place = 0; place < C::L; place++) {
            const int value = high << g.low | g.low_value(place);
            Number &to = trace[part(g, i, value)][part(g, i, value ^ change)];
            const T *z = sums + C::lane(place);
            to.re += z[0];
            if (FIELD == 2) to.im += z[C::L];
        }
    }
    // += A^-H N
    template <int N> void add_gradient_of(int gate, int i, Number (*trace)[N]) const {
        const int n = int(p[i]);
        T *to = this->target[i] + int64_t(gate) * n * n * FIELD;
        for (int r = 0; r < n; r++)
            for (int c = 0; c < n; c++, to += FIELD)
                for (int k = 0; k < n; k++) {
                    const Number z = number(inverse(gate, i) + (k * n + r) * FIELD);
                    const Number d = Number{z.re, -z.im} * trace[k][c];
                    to[0] += d.re;
                    if (FIELD == 2) to[1] += d.im;
                }
    }
};

template <class T> Term<T> *Kronecker<T>::make(const Operands &o) {
    if (KroneckerTraces<T, 1>::fits(o)) return new (std::nothrow) KroneckerTraces<T, 1>(o);
    if (KroneckerTraces<T, 2>::fits(o)) return new (std::nothrow) KroneckerTraces<T, 2>(o);
    return new (std::nothrow) Kronecker(o);
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
