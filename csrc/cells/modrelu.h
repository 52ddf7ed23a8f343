// modReLU: v = z/|z| · max(|z| + b, 0) for z = U x + b + W h, and h = v, or LEAKY, h = v + α (h_before − v). Row 0
// of own is b, row 1 is α, each, where the state is COMPLEX, the same in both numbers of a pair. The way back needs v alone: it is h, or, LEAKY, kept
// in the slot.
#pragma once
#include "step.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T, bool COMPLEX, bool LEAKY> struct ModRelu {
    // z/|z| and |z|. Very small and very large numbers are scaled, so that their squares exist.
    static void split(Vec<T> z, Vec<T> &unit, Vec<T> &size) {
        if (!COMPLEX) {
            unit = z < T(0) ? fill(T(-1)) : z > T(0) ? fill(T(1)) : z;
            size = magnitude<T>(z);
            return;
        }
        const T far = sizeof(T) == 4 ? T(4722366482869645213696.0) : T(3.7739624248215413e168);  // 2^72, 2^560
        const T low = sizeof(T) == 4 ? T(1e-15) : T(1e-140), high = T(1) / low;
        Vec<T> part = magnitude<T>(z), other = swap_pairs<T>(part), larger = part > other ? part : other;
        Vec<T> up = larger < low ? fill(far) : larger > high ? fill(1 / far) : fill(T(1));
        Vec<T> down = larger < low ? fill(1 / far) : larger > high ? fill(far) : fill(T(1));
        z *= up;
        Vec<T> squares = z * z;
        squares += swap_pairs<T>(squares);
        Vec<T> inverse = squares == T(0) ? Vec<T>{} : inverse_root(squares);
        unit = z * inverse;
        size = squares * inverse * down;
    }
    static void forward(Step<T> &s) {
        s.apply(s.before[0], s.slots, s.width, 0, 1);
        for (int64_t r = 0; r < s.rows; r++)
            each_vector<T>(s.width, [&](int64_t i, auto n) {
                const int64_t at = r * s.width + i;
                Vec<T> unit, size;
                split(n.get(s.slots + at), unit, size);
                size += n.get(s.own + i);
                Vec<T> v = size < T(0) ? Vec<T>{} : unit * size;
                if (LEAKY) {
                    n.put(s.slots + at, v);
                    v += n.get(s.own + s.width + i) * (n.get(s.before[0] + at) - v);
                }
                n.put(s.after[0] + at, v);
            });
    }
    // From v: |v| = |z| + b where the unit is alive, and v points where z did. Radially the gradient passes unchanged,
    // across it shrinks by (|z| + b)/|z|.
    static Vec<T> of_product(Vec<T> v, Vec<T> d, Vec<T> bias, Vec<T> &d_bias) {
        Vec<T> unit, size;
        split(v, unit, size);
        Vec<T> along = unit * d;
        if (COMPLEX) along = along + swap_pairs<T>(along);
        d_bias = size > T(0) ? along * T(COMPLEX ? 0.5 : 1) : Vec<T>{};  // in both numbers of a pair: half for each
        Vec<T> d_z = unit * along;
        if (COMPLEX) {
            Vec<T> before = size - bias;  // |z|
            d_z += before > T(0) ? (d - d_z) * size / before : Vec<T>{};
        }
        return size > T(0) ? d_z : Vec<T>{};
    }
    static void backward(Step<T> &s) {
        for (int64_t r = 0; r < s.rows; r++)
            each_vector<T>(s.width, [&](int64_t i, auto n) {
                const int64_t at = r * s.width + i;
                Vec<T> d = n.get(s.d_after[0] + at), past{}, d_bias, v;
                if (LEAKY) {
                    Vec<T> leak = n.get(s.own + s.width + i);
                    v = n.get(s.slots + at);
                    add_to<T>(s.d_own + s.width + i, n, d * (n.get(s.before[0] + at) - v));
                    past = d * leak;
                    d -= past;
                } else {
                    v = n.get(s.after[0] + at);
                }
                n.put(s.d_before[0] + at, past);
                n.put(s.d_gates + r * s.ldd + i, of_product(v, d, n.get(s.own + i), d_bias));
                add_to<T>(s.d_own + i, n, d_bias);
            });
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
