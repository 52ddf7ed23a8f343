// modReLU: v = z/|z| · max(|z| + b, 0) for z = U x + b + W h, and h = v, or LEAKY, h = v + α (h_before − v). Row 0 of
// own is b, row 1 is α, each, where the state is COMPLEX, the same in both numbers of a pair. The way back needs v alone:
// it is h, or, LEAKY, kept in the slot. Where |z| is far below b, little of |z| is left in |v| − b.
#pragma once
#include "../chunk.h"
#include "step.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T, bool COMPLEX, bool LEAKY> struct ModRelu {
    static constexpr int FIELD = COMPLEX ? 2 : 1;
    using C = Chunk<T, FIELD>;
    using Numbers = Vec<T>;

    // z/|z| and |z|
    static SLIMRNN_INLINE void split(C z, C &unit, Numbers &size) {
        if constexpr (!COMPLEX) {
            unit.part[0] = z.part[0] < T(0) ? fill(T(-1)) : z.part[0] > T(0) ? fill(T(1)) : z.part[0];
            size = magnitude<T>(z.part[0]);
        } else {
            const T low = sizeof(T) == 4 ? T(1e-30) : T(1e-280), high = T(1) / low;
            const Numbers squares = z.part[0] * z.part[0] + z.part[1] * z.part[1];
            const auto is_zero = (z.part[0] == T(0)) & (z.part[1] == T(0));
            if (any((squares > high) | ((squares < low) & ~is_zero)))
                split_scaled(z, unit, size);
            else
                divide(z, squares, unit, size);
        }
    }
    static SLIMRNN_INLINE void divide(C z, Numbers squares, C &unit, Numbers &size) {
        const Numbers inverse = squares == T(0) ? Numbers{} : inverse_root(squares);
        unit = z * inverse;
        size = squares * inverse;
    }
    // Very small and very large numbers are scaled, so that their squares exist.
    static void split_scaled(C z, C &unit, Numbers &size) {
        const T far = sizeof(T) == 4 ? T(4722366482869645213696.0) : T(3.7739624248215413e168);  // 2^72, 2^560
        const T low = sizeof(T) == 4 ? T(1e-15) : T(1e-140), high = T(1) / low;
        const Numbers re = magnitude<T>(z.part[0]), im = magnitude<T>(z.part[1]), larger = re > im ? re : im;
        const Numbers up = larger < low ? fill(far) : larger > high ? fill(1 / far) : fill(T(1));
        const Numbers down = larger < low ? fill(1 / far) : larger > high ? fill(far) : fill(T(1));
        z = z * up;
        divide(z, z.part[0] * z.part[0] + z.part[1] * z.part[1], unit, size);
        size *= down;
    }
    static void forward(Step<T> &s) {
        s.apply(s.before[0], s.slots, s.width, 0, 1);
        for (int64_t r = 0; r < s.rows; r++)
            each_chunk<T, FIELD>(s.width, [&](int64_t i, auto n) SLIMRNN_INSIDE {
                const int64_t at = r * s.width + i;
                C unit;
                Numbers size;
                split(n.from_row(s.slots + at), unit, size);
                size += n.from_row(s.own + i).part[0];
                C v = (unit * size).where(~(size < T(0)));
                if (LEAKY) {
                    n.put_row(s.slots + at, v);
                    v = v + (n.from_row(s.before[0] + at) - v) * n.from_row(s.own + s.width + i).part[0];
                }
                n.put_row(s.after[0] + at, v);
            });
    }
    // From v: |v| = |z| + b where the unit is alive, and v points where z did. Radially the gradient passes unchanged,
    // across it shrinks by (|z| + b)/|z|.
    static SLIMRNN_INLINE C of_product(C v, C d, Numbers bias, Numbers &d_bias) {
        C unit;
        Numbers size;
        split(v, unit, size);
        d_bias = unit.part[0] * d.part[0];
        if constexpr (COMPLEX) d_bias += unit.part[1] * d.part[1];
        C d_z = unit * d_bias;
        if (COMPLEX) {
            const Numbers before = size - bias;  // |z|
            d_z = d_z + ((d - d_z) * (size / before)).where(before > T(0));
        }
        d_bias = size == T(0) ? Numbers{} : d_bias;  // a NaN stays
        return d_z.where(size != T(0));
    }
    static void backward(Step<T> &s) {
        for (int64_t r = 0; r < s.rows; r++)
            each_chunk<T, FIELD>(s.width, [&](int64_t i, auto n) SLIMRNN_INSIDE {
                const int64_t at = r * s.width + i;
                C d = n.from_row(s.d_after[0] + at), past{}, v;
                if (LEAKY) {
                    v = n.from_row(s.slots + at);
                    C step = n.from_row(s.before[0] + at) - v;
                    for (int f = 0; f < FIELD; f++) step.part[f] *= d.part[f];
                    T *d_leak = s.d_own + s.width + i;
                    n.put_row(d_leak, n.from_row(d_leak) + step);
                    past = d * n.from_row(s.own + s.width + i).part[0];
                    d = d - past;
                } else {
                    v = n.from_row(s.after[0] + at);
                }
                n.put_row(s.d_before[0] + at, past);
                C d_bias = n.from_row(s.d_own + i);
                Numbers here;
                n.put_row(s.d_gates + r * s.ldd + i, of_product(v, d, n.from_row(s.own + i).part[0], here));
                d_bias.part[0] += here;  // of a pair, the sum of both numbers counts
                n.put_row(s.d_own + i, d_bias);
            });
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
