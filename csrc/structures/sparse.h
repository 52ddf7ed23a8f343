// Few entries, at fixed places. Takes their values (gates, count) and where they are, i size + j, int64 (gates, count).
// Rows are turned so that the same number of all rows is a vector: an entry then is one multiplication of vectors.
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Sparse : Term<T> {
    static constexpr const char *name = "sparse";
    static bool is_sound(const Operands &o, bool backward) {
        const int64_t count = o.extent(0, 1);
        if (o.count() != 2 || !o.has(0, o.gates(), count) || !o.has(1, o.gates(), count)) return false;
        if (backward && !o.have_gradients(1)) return false;
        const int64_t *at = o.data<int64_t>(1);
        for (int64_t e = 0; e < o.gates() * count; e++)
            if (at[e] < 0 || at[e] >= o.size() * o.size()) return false;
        return true;
    }
    static Term<T> *make(const Operands &o) { return new (std::nothrow) Sparse(o); }

    int gates;
    int64_t width, parts, count;  // parts: real numbers of a value
    const T *given;
    const int64_t *positions;
    T *target;
    T *values = nullptr;
    int32_t *places = nullptr;  // (gates, count, 2): i and j, in real numbers

    explicit Sparse(const Operands &o)
        : gates(o.gates()), width(o.width()), parts(o.is_complex() ? 2 : 1), count(o.extent(0, 1)), given(o.data<T>(0)),
          positions(o.data<int64_t>(1)), target(o.gradient<T>(0)) {}

    int64_t packed_size() const override { return gates * count * (parts + 2); }
    void pack(T *at, bool) override {
        values = at;
        memcpy(values, given, sizeof(T) * size_t(gates * count * parts));
        places = reinterpret_cast<int32_t *>(at + gates * count * parts);
        const int64_t size = width / parts;
        for (int64_t e = 0; e < gates * count; e++) {
            places[2 * e] = int32_t(positions[e] / size * parts);
            places[2 * e + 1] = int32_t(positions[e] % size * parts);
        }
    }

    // (rows, width) as (width, padded rows); what is added to the rows is zero
    static int64_t padded(int64_t rows) { return round_up(rows, lanes<T>); }
    int64_t scratch_size(int64_t rows) const override { return 2 * width * padded(rows); }
    void turn(int64_t rows, const T *x, int64_t ldx, T *to) const {
        const int64_t most = padded(rows);
        for (int64_t i = 0; i < width; i++, to += most) {
            for (int64_t r = 0; r < rows; r++) to[r] = x[r * ldx + i];
            for (int64_t r = rows; r < most; r++) to[r] = T(0);
        }
    }
    void add_turned(int64_t rows, const T *from, T *y, int64_t ldy) const {
        for (int64_t i = 0; i < width; i++, from += padded(rows))
            for (int64_t r = 0; r < rows; r++) y[r * ldy + i] += from[r];
    }

    // to_i += v x_j, or the other way round to_j += conj(v) x_i
    template <bool ADJOINT> void apply(int gate, int64_t most, const T *x, T *to) const {
        for (int64_t e = gate * count; e < (gate + 1) * count; e++) {
            const T *from = x + places[2 * e + !ADJOINT] * most, *v = values + e * parts;
            T *at = to + places[2 * e + ADJOINT] * most;
            if (parts == 1) {
                for (int64_t r = 0; r < most; r += lanes<T>) store(at + r, load(at + r) + load(from + r) * v[0]);
                continue;
            }
            const T im = ADJOINT ? -v[1] : v[1];
            for (int64_t r = 0; r < most; r += lanes<T>) {
                const Vec<T> a = load(from + r), b = load(from + most + r);
                store(at + r, load(at + r) + (a * v[0] - b * im));
                store(at + most + r, load(at + most + r) + (a * im + b * v[0]));
            }
        }
    }
    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        const int64_t most = padded(rows);
        T *in = scratch.take(width * most), *out = scratch.take(width * most);
        turn(rows, x, ldx, in);
        for (int g = first; g < last; g++) {
            memset(out, 0, sizeof(T) * size_t(width * most));
            apply<false>(g, most, in, out);
            add_turned(rows, out, y + (g - first) * width, ldy);
        }
    }
    void rmatvec(Arena<T> scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *,
                 int64_t) const override {
        const int64_t most = padded(rows);
        T *in = scratch.take(width * most), *out = scratch.take(width * most);
        memset(out, 0, sizeof(T) * size_t(width * most));
        for (int g = first; g < last; g++) {
            turn(rows, y + (g - first) * width, ldy, in);
            apply<true>(g, most, in, out);
        }
        add_turned(rows, out, x, ldx);
    }

    // y_i conj(x_j)
    int64_t gradient_size() const override { return gates * count * parts; }
    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *, int64_t, T *sums) const override {
        const int64_t most = padded(rows);
        T *in = scratch.take(width * most), *out = scratch.take(width * most);
        turn(rows, x, ldx, in);
        for (int g = first; g < last; g++) {
            turn(rows, y + (g - first) * width, ldy, out);
            for (int64_t e = g * count; e < (g + 1) * count; e++) {
                const T *b = out + places[2 * e] * most, *a = in + places[2 * e + 1] * most;
                Vec<T> re{}, im{};
                for (int64_t r = 0; r < most; r += lanes<T>) {
                    re += load(b + r) * load(a + r);
                    if (parts == 2) {
                        re += load(b + most + r) * load(a + most + r);
                        im += load(b + most + r) * load(a + r) - load(b + r) * load(a + most + r);
                    }
                }
                sums[e * parts] += total(re);
                if (parts == 2) sums[e * parts + 1] += total(im);
            }
        }
    }
    static T total(Vec<T> v) {
        T sum = v[0];
        for (int j = 1; j < lanes<T>; j++) sum += v[j];
        return sum;
    }
    void deliver(const T *sums, int first, int last) const override {
        for (int64_t e = first * count * parts; e < last * count * parts; e++) target[e] += sums[e];
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
