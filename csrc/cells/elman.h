// h = f(U x + b + W h) for f = tanh, relu, identity, modReLU. The gate slot keeps z for modReLU.
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
        s.map.apply(s.h_before, s.gates, s.width, 0, 1);
        each_vector<T>(s.rows * s.width, [&](int64_t i, auto n) { n.put(s.h + i, F<T>::f(n.get(s.gates + i))); });
    }
    static void backward(Step<T> &s) {
        for (int64_t r = 0; r < s.rows; r++)
            each_vector<T>(s.width, [&](int64_t i, auto n) {
                int64_t at = r * s.width + i;
                n.put(s.d_gates + r * s.ldd + i, n.get(s.d_h + at) * F<T>::slope(n.get(s.h + at)));
            });
        s.map.adjoint(s.d_gates, s.ldd, s.d_h_before, 0, 1);
    }
};

// modReLU(z) = z/|z| · max(|z| + b, 0). Radially the gradient passes unchanged, across it shrinks by (|z| + b)/|z|.
template <class T, bool COMPLEX> struct ModRelu {
    // z/|z| and |z| + b; a z whose square vanishes in this precision counts as zero.
    static void split(Vec<T> z, Vec<T> bias, Vec<T> &unit, Vec<T> &size, Vec<T> &inverse) {
        if (!COMPLEX) {
            unit = z < T(0) ? fill(T(-1)) : z > T(0) ? fill(T(1)) : z;
            size = magnitude<T>(z) + bias;
            inverse = Vec<T>{};  // nothing lies across
            return;
        }
        Vec<T> squares = z * z;
        squares += swap_pairs<T>(squares);
        const T least = sizeof(T) == 4 ? T(1e-37) : T(1e-300);
        inverse = squares < least ? Vec<T>{} : inverse_root(squares);
        unit = z * inverse;
        size = squares * inverse + bias;
    }
    static void forward(Step<T> &s) {
        s.map.apply(s.h_before, s.gates, s.width, 0, 1);
        for (int64_t r = 0; r < s.rows; r++)
            each_vector<T>(s.width, [&](int64_t i, auto n) {
                Vec<T> unit, grown, inverse;
                split(n.get(s.gates + r * s.width + i), n.get(s.own + i), unit, grown, inverse);
                n.put(s.h + r * s.width + i, grown < T(0) ? Vec<T>{} : unit * grown);
            });
    }
    static void backward(Step<T> &s) {
        for (int64_t r = 0; r < s.rows; r++)
            each_vector<T>(s.width, [&](int64_t i, auto n) {
                int64_t at = r * s.width + i;
                Vec<T> unit, grown, inverse, d = n.get(s.d_h + at);
                split(n.get(s.gates + at), n.get(s.own + i), unit, grown, inverse);
                Vec<T> along = unit * d;
                if (COMPLEX) along = along + swap_pairs<T>(along);
                // A complex unit's bias stands in both lanes, so each lane gets half of its gradient.
                Vec<T> d_bias = grown > T(0) ? along * T(COMPLEX ? 0.5 : 1) : Vec<T>{};
                add_to<T>(s.d_own + i, n, d_bias);
                Vec<T> radial = unit * along;
                Vec<T> across = (d - radial) * (grown * inverse);
                n.put(s.d_gates + r * s.ldd + i, grown > T(0) ? radial + across : Vec<T>{});
            });
        s.map.adjoint(s.d_gates, s.ldd, s.d_h_before, 0, 1);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
