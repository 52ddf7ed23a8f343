// h = (1 − u) n + u h. The gate slots keep r, u and, before: n; after: the product W_n h + b' that r acts on. From that
// n = (h − u h_before)/(1 − u); wherever n is used in the gradient it is multiplied by 1 − u, so nothing is lost.
#pragma once
#include "step.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Gru {
    template <class N> static void update(Step<T> &s, int64_t at, Vec<T> u, Vec<T> n, N lanes_of) {
        Vec<T> before = lanes_of.get(s.h_before + at);
        lanes_of.put(s.h + at, n + u * (before - n));
    }
};

template <class T> struct GruAfter {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.map->apply(s.h_before, s.gates, 3 * w, 0, 2);
        for (int64_t r = 0; r < s.rows; r++)
            if (s.own)
                memcpy(s.spare + r * w, s.own, sizeof(T) * w);
            else
                memset(s.spare + r * w, 0, sizeof(T) * w);
        s.map->apply(s.h_before, s.spare, w, 2, 3);
        for (int64_t row = 0; row < s.rows; row++) {
            T *at = s.gates + row * 3 * w;
            each_vector<T>(w, [&](int64_t k, auto n) {
                Vec<T> r = sigmoid<T>(n.get(at + k)), u = sigmoid<T>(n.get(at + w + k));
                Vec<T> inner = n.get(s.spare + row * w + k);
                Vec<T> candidate = hyperbolic_tangent<T>(n.get(at + 2 * w + k) + r * inner);
                n.put(at + k, r), n.put(at + w + k, u), n.put(at + 2 * w + k, inner);
                Gru<T>::update(s, row * w + k, u, candidate, n);
            });
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t row = 0; row < s.rows; row++) {
            const T *at = s.gates + row * 3 * w;
            T *to = s.d_gates + row * s.ldd;
            each_vector<T>(w, [&](int64_t k, auto n) {
                Vec<T> r = n.get(at + k), u = n.get(at + w + k), inner = n.get(at + 2 * w + k);
                Vec<T> before = n.get(s.h_before + row * w + k), h = n.get(s.h + row * w + k);
                Vec<T> dh = n.get(s.d_h + row * w + k), open = T(1) - u;
                Vec<T> candidate = open == T(0) ? Vec<T>{} : (h - u * before) / open;
                candidate = candidate > T(1) ? fill(T(1)) : candidate < T(-1) ? fill(T(-1)) : candidate;
                Vec<T> d_n = dh * open * (T(1) - candidate * candidate);
                Vec<T> d_r = d_n * inner * r * (T(1) - r);
                Vec<T> d_u = dh * (before - candidate) * u * open;
                n.put(to + k, d_r), n.put(to + w + k, d_u), n.put(to + 2 * w + k, d_n);
                n.put(s.spare + row * w + k, d_n * r);
                if (s.own) add_to<T>(s.d_own + k, n, d_n * r);
                n.put(s.d_h_before + row * w + k, dh * u);
            });
        }
        s.map->adjoint(s.d_gates, s.ldd, s.d_h_before, 0, 2);
        s.map->adjoint(s.spare, w, s.d_h_before, 2, 3);
    }
};

template <class T> struct GruBefore {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.map->apply(s.h_before, s.gates, 3 * w, 0, 2);
        for (int64_t row = 0; row < s.rows; row++) {
            T *at = s.gates + row * 3 * w;
            each_vector<T>(w, [&](int64_t k, auto n) {
                Vec<T> r = sigmoid<T>(n.get(at + k)), u = sigmoid<T>(n.get(at + w + k));
                n.put(at + k, r), n.put(at + w + k, u);
                n.put(s.spare + row * w + k, r * n.get(s.h_before + row * w + k));
            });
        }
        s.map->apply(s.spare, s.gates + 2 * w, 3 * w, 2, 3);
        for (int64_t row = 0; row < s.rows; row++) {
            T *at = s.gates + row * 3 * w;
            each_vector<T>(w, [&](int64_t k, auto n) {
                Vec<T> candidate = hyperbolic_tangent<T>(n.get(at + 2 * w + k));
                n.put(at + 2 * w + k, candidate);
                Gru<T>::update(s, row * w + k, n.get(at + w + k), candidate, n);
            });
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t row = 0; row < s.rows; row++) {
            const T *at = s.gates + row * 3 * w;
            T *to = s.d_gates + row * s.ldd;
            each_vector<T>(w, [&](int64_t k, auto n) {
                Vec<T> u = n.get(at + w + k), candidate = n.get(at + 2 * w + k);
                Vec<T> before = n.get(s.h_before + row * w + k), dh = n.get(s.d_h + row * w + k);
                n.put(to + w + k, dh * (before - candidate) * u * (T(1) - u));
                n.put(to + 2 * w + k, dh * (T(1) - u) * (T(1) - candidate * candidate));
                n.put(s.d_h_before + row * w + k, dh * u);
                n.put(s.spare + row * w + k, Vec<T>{});
            });
        }
        s.map->adjoint(s.d_gates + 2 * w, s.ldd, s.spare, 2, 3);  // gradient of r h
        for (int64_t row = 0; row < s.rows; row++) {
            const T *at = s.gates + row * 3 * w;
            T *to = s.d_gates + row * s.ldd;
            each_vector<T>(w, [&](int64_t k, auto n) {
                Vec<T> r = n.get(at + k), d_rh = n.get(s.spare + row * w + k), before = n.get(s.h_before + row * w + k);
                n.put(to + k, d_rh * before * r * (T(1) - r));
                n.put(s.d_h_before + row * w + k, n.get(s.d_h_before + row * w + k) + d_rh * r);
            });
        }
        s.map->adjoint(s.d_gates, s.ldd, s.d_h_before, 0, 2);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
