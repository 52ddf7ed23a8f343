// W = W_1 ⊗ … ⊗ W_k of 2 x 2 factors: the vector passes through registers a few factors at a time. With v = W^H y, which
// the way back needs anyway, the gradient of W_i is W_i^-H N_i, N_i the partial trace of v x^H over all other digits
// (where factors are well conditioned; the general path otherwise).
#pragma once
#include "kronecker.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T, int FIELD> struct KroneckerPairs : Kronecker<T> {
    using Base = Kronecker<T>;
    using Base::factors;
    using Base::gates;
    using Base::width;
    static constexpr int L = lanes<T>;
    static constexpr int inside = L / FIELD == 16  ? 4
                                  : L / FIELD == 8 ? 3
                                  : L / FIELD == 4 ? 2
                                  : L / FIELD == 2 ? 1
                                                   : 0;
    static constexpr int at_once = SLIMRNN_BYTES == 64 ? 3 : 2;  // digits whose vectors fit into the registers

    bool fast_gradient = false;
    T *coefficients = nullptr;

    explicit KroneckerPairs(const Operands &o) : Base(o) {}
    static bool fits(const Operands &o) {
        for (int i = 0; i < o.count(); i++)
            if (o.extent(i, 1) != 2 || o.extent(i, 2) != 2) return false;
        return o.is_complex() == (FIELD == 2) && o.count() >= inside;
    }

    int digits() const { return factors - inside; }  // that tell vectors apart
    int passes() const { return std::max(1, (digits() + at_once - 1) / at_once); }

    // Coefficients of digit d (the factor d from the end), there or back: for the digit's two values the vectors
    // re and im of "itself" and of "the other", im with the signs of a complex product.
    static constexpr int64_t per_digit = 8 * L;
    const T *coefficient(int gate, bool back, int d) const {
        return coefficients + ((int64_t(gate) * 2 + back) * factors + d) * per_digit;
    }
    int64_t packed_size() const override {
        return round_up(Base::packed_size(), L) + int64_t(gates) * 2 * factors * per_digit;
    }
    const T *entry_of(int gate, int d, int row, int column) const {
        return this->data[factors - 1 - d] + ((int64_t(gate) * 2 + row) * 2 + column) * FIELD;
    }
    void pack(T *at, bool backward) override {
        Base::pack(at, backward);
        coefficients = at + round_up(Base::packed_size(), L);
        fast_gradient = true;
        for (int gate = 0; gate < gates; gate++)
            for (int d = 0; d < factors; d++) {
                for (int back = 0; back < 2; back++) pack_digit(gate, back, d);
                fast_gradient = fast_gradient && is_well_conditioned(gate, d);
            }
    }
    // lane j of an inside digit has the value of its own bit; other digits have the same coefficient in all lanes
    void pack_digit(int gate, bool back, int d) {
        T *to = const_cast<T *>(coefficient(gate, back, d));
        for (int value = 0; value < 2; value++)
            for (int other = 0; other < 2; other++)
                for (int j = 0; j < L; j++) {
                    const int row = d < inside ? (j / FIELD >> d) & 1 : value, column = other ? 1 - row : row;
                    const T *z = back ? entry_of(gate, d, column, row) : entry_of(gate, d, row, column);
                    T *at = to + (value * 2 + other) * 2 * L + j;
                    at[0] = z[0];
                    at[L] = FIELD == 1 ? T(0) : (j % 2 == 0) != back ? -z[1] : z[1];
                }
    }
    // |A|² / |det A| = κ + 1/κ of a 2 x 2 matrix
    bool is_well_conditioned(int gate, int d) const {
        T squares = 0, det[2];
        for (int i = 0; i < 4; i++)
            for (int f = 0; f < FIELD; f++) {
                const T z = entry_of(gate, d, i / 2, i % 2)[f];
                squares += z * z;
            }
        determinant(gate, d, det);
        const T size = det[0] * det[0] + det[1] * det[1];
        return size > T(1e-12) && size < T(1e12) && squares * squares <= T(64) * size;
    }
    void determinant(int gate, int d, T *det) const {
        const T *a = entry_of(gate, d, 0, 0), *b = entry_of(gate, d, 0, 1), *c = entry_of(gate, d, 1, 0),
                *e = entry_of(gate, d, 1, 1);
        det[0] = a[0] * e[0] - b[0] * c[0], det[1] = 0;
        if (FIELD == 1) return;
        det[0] -= a[1] * e[1] - b[1] * c[1];
        det[1] = a[0] * e[1] + a[1] * e[0] - b[0] * c[1] - b[1] * c[0];
    }

    int64_t scratch_size(int64_t rows) const override { return std::max(Base::scratch_size(rows), round_up(width, L)); }

    // --- products ---

    template <int DIGIT> static Vec<T> exchange(Vec<T> v) {  // lane j <- lane with this digit turned over
        constexpr int flip = FIELD << DIGIT;
#if defined(__clang__)
        Vec<T> r;
        for (int j = 0; j < L; j++) r[j] = v[j ^ flip];
        return r;
#else
        Int<T> order;
        for (int j = 0; j < L; j++) order[j] = j ^ flip;
        return __builtin_shuffle(v, order);
#endif
    }
    template <int DIGIT> static Vec<T> within(Vec<T> v, const T *c) {
        if constexpr (DIGIT == inside) {
            return v;
        } else {
            const Vec<T> o = exchange<DIGIT>(v);
            Vec<T> sum = v * load(c) + o * load(c + 2 * L);
            if (FIELD == 2) sum += swap_pairs<T>(v) * load(c + L) + swap_pairs<T>(o) * load(c + 3 * L);
            return within<DIGIT + 1>(sum, c + per_digit);
        }
    }
    // One digit of 2^MANY vectors in registers: pairs whose numbers differ in bit BIT.
    template <int MANY, int BIT> static void between(Vec<T> *v, const T *c) {
        if constexpr (BIT < MANY) {
            const Vec<T> re00 = load(c), im00 = load(c + L), re01 = load(c + 2 * L), im01 = load(c + 3 * L);
            const Vec<T> re11 = load(c + 4 * L), im11 = load(c + 5 * L), re10 = load(c + 6 * L), im10 = load(c + 7 * L);
            for (int i = 0; i < 1 << MANY; i++) {
                if (i >> BIT & 1) continue;
                const Vec<T> a = v[i], b = v[i | 1 << BIT];
                Vec<T> low = a * re00 + b * re01, high = a * re10 + b * re11;
                if (FIELD == 2) {
                    const Vec<T> sa = swap_pairs<T>(a), sb = swap_pairs<T>(b);
                    low += sa * im00, low += sb * im01, high += sa * im10, high += sb * im11;
                }
                v[i] = low, v[i | 1 << BIT] = high;
            }
            between<MANY, BIT + 1>(v, c + per_digit);
        }
    }
    template <int MANY, bool FIRST, bool ADD>
    void pass(const T *inner, const T *c, int64_t stride, const T *from, T *to) const {
        for (int64_t block = 0; block < width; block += stride * L << MANY)
            for (int64_t at = block; at < block + stride * L; at += L) {
                Vec<T> v[1 << MANY];
                for (int i = 0; i < 1 << MANY; i++) {
                    v[i] = load(from + at + i * stride * L);
                    if (FIRST) v[i] = within<0>(v[i], inner);
                }
                between<MANY, 0>(v, c);
                for (int i = 0; i < 1 << MANY; i++) {
                    T *out = to + at + i * stride * L;
                    store(out, ADD ? load(out) + v[i] : v[i]);
                }
            }
    }
    template <bool FIRST, bool ADD>
    void pass(int many, const T *inner, const T *c, int64_t stride, const T *from, T *to) const {
        if (many == 0) pass<0, FIRST, ADD>(inner, c, stride, from, to);
        if (many == 1) pass<1, FIRST, ADD>(inner, c, stride, from, to);
        if (many == 2) pass<2, FIRST, ADD>(inner, c, stride, from, to);
        if constexpr (at_once > 2)
            if (many == 3) pass<3, FIRST, ADD>(inner, c, stride, from, to);
    }
    // to (+)= W from, or W^H from
    template <bool ADD> void product(int gate, bool back, const T *from, T *buffer, T *to) const {
        const int count = passes();
        int digit = 0;
        for (int k = 0; k < count; k++) {
            const int until = digits() * (k + 1) / count, many = until - digit;
            const T *inner = coefficient(gate, back, 0), *c = coefficient(gate, back, inside + digit);
            const int64_t stride = int64_t(1) << digit;
            const bool ends = k + 1 == count;
            if (k == 0 && ends)
                pass<true, ADD>(many, inner, c, stride, from, to);
            else if (k == 0)
                pass<true, false>(many, inner, c, stride, from, buffer);
            else if (ends)
                pass<false, ADD>(many, inner, c, stride, buffer, to);
            else
                pass<false, false>(many, inner, c, stride, buffer, buffer);
            digit = until;
        }
    }
    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        T *buffer = scratch.take(width);
        for (int64_t r = 0; r < rows; r++)
            for (int gate = first; gate < last; gate++)
                product<true>(gate, false, x + r * ldx, buffer, y + r * ldy + (gate - first) * width);
    }
    int64_t kept_size() const override { return width; }
    void rmatvec(Arena<T> scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last,
                 T *kept, int64_t ldk) const override {
        T *buffer = scratch.take(width);
        for (int64_t r = 0; r < rows; r++)
            for (int gate = first; gate < last; gate++) {
                T *v = kept + r * ldk + gate * width, *to = x + r * ldx;
                product<false>(gate, true, y + r * ldy + (gate - first) * width, buffer, v);
                for (int64_t i = 0; i < width; i += L) store(to + i, load(to + i) + load(v + i));
            }
    }

    // --- gradients ---

    // sums of v conj(x) per lane: for every number of the state, and per digit of v times the number with that digit
    // turned over: re and im for both values of the digit
    int64_t own_sums() const { return FIELD * width + int64_t(factors) * 2 * FIELD * L; }
    int64_t own_at() const { return round_up(Base::gradient_size(), L); }
    int64_t gradient_size() const override { return own_at() + gates * own_sums(); }

    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *kept, int64_t ldk, T *sums) const override {
        if (!fast_gradient) {
            Base::gradient(scratch, rows, x, ldx, y, ldy, first, last, kept, ldk, sums);
            return;
        }
        const int64_t few = 16;  // rows: they and the vectors around stay in the nearest cache
        for (int64_t r = 0; r < rows; r += few)
            for (int gate = first; gate < last; gate++)
                for (int64_t at = 0; at < width; at += L)
                    traces(std::min(few, rows - r), at, kept + r * ldk + gate * width, ldk, x + r * ldx, ldx,
                           sums + own_at() + gate * own_sums());
    }
    struct Sum {
        Vec<T> same = {}, cross = {};
        void add(Vec<T> v, Vec<T> turned, Vec<T> x) {
            same += v * x;
            if (FIELD == 2) cross += turned * x;
        }
        void put(T *to) const {
            store(to, load(to) + same);
            if (FIELD == 2) store(to + L, load(to + L) + cross);
        }
    };
    template <int DIGIT> static void add_inside(Sum *sum, Vec<T> v, Vec<T> turned, Vec<T> x) {
        if constexpr (DIGIT < inside) {
            sum[DIGIT].add(v, turned, exchange<DIGIT>(x));
            add_inside<DIGIT + 1>(sum, v, turned, x);
        }
    }
    template <int MANY>
    static void add_outside(int64_t rows, int64_t at, int digit, const T *v, int64_t ldv, const T *x, int64_t ldx,
                            T *turned_over) {
        Sum sum[MANY];
        for (int64_t r = 0; r < rows; r++) {
            const Vec<T> here = load(v + r * ldv + at), turned = swap_pairs<T>(here);
            for (int m = 0; m < MANY; m++)
                sum[m].add(here, turned, load(x + r * ldx + (at ^ (int64_t(L) << (digit + m)))));
        }
        for (int m = 0; m < MANY; m++) {
            const int d = digit + m;
            sum[m].put(turned_over + ((inside + d) * 2 + (at / L >> d & 1)) * FIELD * L);
        }
    }
    void traces(int64_t rows, int64_t at, const T *v, int64_t ldv, const T *x, int64_t ldx, T *sums) const {
        T *turned_over = sums + FIELD * width;
        Sum itself, digit[inside + 1];
        for (int64_t r = 0; r < rows; r++) {
            const Vec<T> here = load(v + r * ldv + at), turned = swap_pairs<T>(here), there = load(x + r * ldx + at);
            itself.add(here, turned, there);
            add_inside<0>(digit, here, turned, there);
        }
        itself.put(sums + FIELD * at);
        for (int d = 0; d < inside; d++) digit[d].put(turned_over + d * 2 * FIELD * L);
        int d = 0;
        for (; d + 3 <= digits(); d += 3) add_outside<3>(rows, at, d, v, ldv, x, ldx, turned_over);
        for (; d < digits(); d++) add_outside<1>(rows, at, d, v, ldv, x, ldx, turned_over);
    }

    // N (2 x 2, re and im) of a digit
    void partial_trace(const T *sums, int d, T (*n)[2][2]) const {
        memset(n, 0, sizeof(T) * 8);
        const T *turned_over = sums + FIELD * width;
        for (int64_t i = 0; i < width; i++) {
            const T *lane = sums + i / L * FIELD * L + i % L;
            const int value = i / FIELD >> d & 1;
            n[value][value][0] += lane[0];
            if (FIELD == 2) n[value][value][1] += i % 2 ? -lane[L] : lane[L];
        }
        for (int value = 0; value < 2; value++)
            for (int j = 0; j < L; j++) {
                const T *lane = turned_over + (d * 2 + (d < inside ? 0 : value)) * FIELD * L + j;
                if (d < inside && (j / FIELD >> d & 1) != value) continue;
                n[value][1 - value][0] += lane[0];
                if (FIELD == 2) n[value][1 - value][1] += j % 2 ? -lane[L] : lane[L];
            }
    }
    void deliver(const T *sums, int first, int last) const override {
        if (!fast_gradient) {
            Base::deliver(sums, first, last);
            return;
        }
        for (int gate = first; gate < last; gate++)
            for (int d = 0; d < factors; d++) {
                T n[2][2][2], det[2];
                partial_trace(sums + own_at() + gate * own_sums(), d, n);
                determinant(gate, d, det);
                const T size = det[0] * det[0] + det[1] * det[1];
                T *to = this->target[factors - 1 - d] + int64_t(gate) * 4 * FIELD;
                for (int i = 0; i < 4; i++) add_entry(gate, d, i / 2, i % 2, n, det, size, to + i * FIELD);
            }
    }
    // (A^-H N)[row][column], A^-H = conj(cofactors of A) / conj(det A)
    void add_entry(int gate, int d, int row, int column, T (*n)[2][2], const T *det, T size, T *to) const {
        T re = 0, im = 0;
        for (int k = 0; k < 2; k++) {
            const T *z = entry_of(gate, d, 1 - row, 1 - k), sign = row == k ? T(1) : T(-1);
            const T a = sign * z[0], b = FIELD == 2 ? -sign * z[1] : T(0);
            re += a * n[k][column][0] - b * n[k][column][1];
            im += a * n[k][column][1] + b * n[k][column][0];
        }
        to[0] += (re * det[0] - im * det[1]) / size;  // times det / |det|², since 1 / conj(det)
        if (FIELD == 2) to[1] += (re * det[1] + im * det[0]) / size;
    }
};

template <class T> Term<T> *Kronecker<T>::make(const Operands &o) {
    if (KroneckerPairs<T, 1>::fits(o)) return new (std::nothrow) KroneckerPairs<T, 1>(o);
    if (KroneckerPairs<T, 2>::fits(o)) return new (std::nothrow) KroneckerPairs<T, 2>(o);
    return new (std::nothrow) Kronecker(o);
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
