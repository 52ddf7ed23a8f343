// h = f(U x + b + W h) for f = tanh, relu, identity, modReLU. The way back needs h alone.
#pragma once
#include "step.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Tanh {
    static Vec<T> f(Vec<T> z) { return hyperbolic_tangent<T>(z); }
    static Vec<T> slope(Vec<T> h) { return T(1) - h * h; }
};
template <class T> struct Relu {
    static Vec<T> f(Vec<T> z) { return z < T(0) ? Vec<T>{} : z; }  // keeps NaN
    static Vec<T> slope(Vec<T> h) { return h > T(0) ? fill(T(1)) : Vec<T>{}; }
};
template <class T> struct Identity {
    static Vec<T> f(Vec<T> z) { return z; }
    static Vec<T> slope(Vec<T>) { return fill(T(1)); }
};

template <class T, template <class> class F> struct Elman {
    static void forward(Step<T> &s) {
        s.map->apply(s.h_before, s.gates, s.width, 0, 1);
        each_vector<T>(s.rows * s.width, [&](int64_t i, auto n) { n.put(s.h + i, F<T>::f(n.get(s.gates + i))); });
    }
    static void backward(Step<T> &s) {
        for (int64_t r = 0; r < s.rows; r++)
            each_vector<T>(s.width, [&](int64_t i, auto n) {
                int64_t at = r * s.width + i;
                n.put(s.d_gates + r * s.ldd + i, n.get(s.d_h + at) * F<T>::slope(n.get(s.h + at)));
            });
        s.map->adjoint(s.d_gates, s.ldd, s.d_h_before, 0, 1);
    }
};

// modReLU(z) = z/|z| · max(|z| + b, 0). Radially the gradient passes unchanged, across it shrinks by (|z| + b)/|z|.
template <class T, bool COMPLEX> struct ModRelu {
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
        s.map->apply(s.h_before, s.gates, s.width, 0, 1);
        for (int64_t r = 0; r < s.rows; r++)
            each_vector<T>(s.width, [&](int64_t i, auto n) {
                Vec<T> unit, size;
                split(n.get(s.gates + r * s.width + i), unit, size);
                size += n.get(s.own + i);
                n.put(s.h + r * s.width + i, size < T(0) ? Vec<T>{} : unit * size);
            });
    }
    // From h: |h| = |z| + b where the unit is alive, and h points where z did.
    static void backward(Step<T> &s) {
        for (int64_t r = 0; r < s.rows; r++)
            each_vector<T>(s.width, [&](int64_t i, auto n) {
                int64_t at = r * s.width + i;
                Vec<T> unit, size, d = n.get(s.d_h + at);
                split(n.get(s.h + at), unit, size);
                Vec<T> along = unit * d;
                if (COMPLEX) along = along + swap_pairs<T>(along);
                // A complex unit's bias stands in both lanes, so each lane gets half of its gradient.
                Vec<T> d_bias = size > T(0) ? along * T(COMPLEX ? 0.5 : 1) : Vec<T>{};
                add_to<T>(s.d_own + i, n, d_bias);
                Vec<T> d_z = unit * along;
                if (COMPLEX) {
                    Vec<T> before = size - n.get(s.own + i);  // |z|
                    d_z += before > T(0) ? (d - d_z) * size / before : Vec<T>{};
                }
                n.put(s.d_gates + r * s.ldd + i, size > T(0) ? d_z : Vec<T>{});
            });
        s.map->adjoint(s.d_gates, s.ldd, s.d_h_before, 0, 1);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
