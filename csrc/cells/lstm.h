// c = f c + i g, h = o tanh(c). The gate slots keep i, f, g, o after their nonlinearities.
#pragma once
#include "step.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Lstm {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.map->apply(s.h_before, s.gates, 4 * w, 0, 4);
        for (int64_t r = 0; r < s.rows; r++) {
            T *at = s.gates + r * 4 * w;
            each_vector<T>(w, [&](int64_t k, auto n) {
                Vec<T> i = n.get(at + k), f = n.get(at + w + k), g = n.get(at + 2 * w + k), o = n.get(at + 3 * w + k);
                Vec<T> c = n.get(s.c_before + r * w + k);
                if (s.own) {
                    i += n.get(s.own + k) * c;
                    f += n.get(s.own + w + k) * c;
                }
                i = sigmoid<T>(i), f = sigmoid<T>(f), g = hyperbolic_tangent<T>(g);
                c = f * c + i * g;
                if (s.own) o += n.get(s.own + 2 * w + k) * c;
                o = sigmoid<T>(o);
                n.put(at + k, i), n.put(at + w + k, f), n.put(at + 2 * w + k, g), n.put(at + 3 * w + k, o);
                n.put(s.c + r * w + k, c);
                n.put(s.h + r * w + k, o * hyperbolic_tangent<T>(c));
            });
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            const T *at = s.gates + r * 4 * w;
            T *to = s.d_gates + r * s.ldd;
            each_vector<T>(w, [&](int64_t k, auto n) {
                Vec<T> i = n.get(at + k), f = n.get(at + w + k), g = n.get(at + 2 * w + k), o = n.get(at + 3 * w + k);
                Vec<T> before = n.get(s.c_before + r * w + k), tc = hyperbolic_tangent<T>(n.get(s.c + r * w + k));
                Vec<T> dh = n.get(s.d_h + r * w + k), dc = n.get(s.d_c + r * w + k);
                Vec<T> d_o = dh * tc * o * (T(1) - o);
                dc += dh * o * (T(1) - tc * tc);
                if (s.own) dc += d_o * n.get(s.own + 2 * w + k);
                Vec<T> d_i = dc * g * i * (T(1) - i), d_f = dc * before * f * (T(1) - f), d_g = dc * i * (T(1) - g * g);
                dc *= f;
                if (s.own) {
                    dc += d_i * n.get(s.own + k) + d_f * n.get(s.own + w + k);
                    add_to<T>(s.d_own + k, n, d_i * before);
                    add_to<T>(s.d_own + w + k, n, d_f * before);
                    add_to<T>(s.d_own + 2 * w + k, n, d_o * n.get(s.c + r * w + k));
                }
                n.put(to + k, d_i), n.put(to + w + k, d_f), n.put(to + 2 * w + k, d_g), n.put(to + 3 * w + k, d_o);
                n.put(s.d_c + r * w + k, dc);
            });
        }
        s.map->adjoint(s.d_gates, s.ldd, s.d_h_before, 0, 4);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
