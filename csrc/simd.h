// Vectors of the width that this file is compiled for, and the functions of them that recurrent cells need.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define SLIMRNN_ISA avx512
#define SLIMRNN_BYTES 64
#define SLIMRNN_TILE_ROWS 12
#elif defined(__AVX2__)
#define SLIMRNN_ISA avx2
#define SLIMRNN_BYTES 32
#define SLIMRNN_TILE_ROWS 6
#else
#define SLIMRNN_ISA generic
#define SLIMRNN_BYTES 16
#define SLIMRNN_TILE_ROWS 6
#endif

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Types;
template <> struct Types<float> {
    typedef float V __attribute__((vector_size(SLIMRNN_BYTES)));
    typedef int32_t I __attribute__((vector_size(SLIMRNN_BYTES)));
};
template <> struct Types<double> {
    typedef double V __attribute__((vector_size(SLIMRNN_BYTES)));
    typedef int64_t I __attribute__((vector_size(SLIMRNN_BYTES)));
};
template <class T> using Vec = typename Types<T>::V;
template <class T> using Int = typename Types<T>::I;
template <class T> constexpr int lanes = SLIMRNN_BYTES / sizeof(T);

template <class T> inline Vec<T> load(const T *p) {
    Vec<T> v;
    memcpy(&v, p, sizeof v);
    return v;
}
template <class T> inline void store(T *p, Vec<T> v) { memcpy(p, &v, sizeof v); }
template <class T> inline Vec<T> fill(T x) { return Vec<T>{} + x; }

// A vector at full width, and the tail of a row: the same arithmetic on every lane, so results do not depend on which.
struct Full {
    template <class T> Vec<T> get(const T *p) const { return load(p); }
    template <class T> void put(T *p, Vec<T> v) const { store(p, v); }
};
struct Tail {
    int count;
    template <class T> Vec<T> get(const T *p) const {
        Vec<T> v{};
        memcpy(&v, p, sizeof(T) * count);
        return v;
    }
    template <class T> void put(T *p, Vec<T> v) const { memcpy(p, &v, sizeof(T) * count); }
};
template <class T, class F> inline void each_vector(int64_t width, F f) {
    int64_t i = 0;
    for (; i + lanes<T> <= width; i += lanes<T>) f(i, Full{});
    if (i < width) f(i, Tail{int(width - i)});
}

// (re, im, re, im, …) -> (im, re, im, re, …)
template <class T> inline Vec<T> swap_pairs(Vec<T> v) {
#if defined(__clang__)
    Vec<T> r;
    for (int j = 0; j < lanes<T>; j++) r[j] = v[j ^ 1];
    return r;
#else
    Int<T> order;
    for (int j = 0; j < lanes<T>; j++) order[j] = j ^ 1;
    return __builtin_shuffle(v, order);
#endif
}
// (a, b, …), (A, B, …) -> (a, A, b, B, …) in two vectors, and back
template <class T> inline void interleave(Vec<T> re, Vec<T> im, Vec<T> &low, Vec<T> &high) {
#if defined(__clang__)
    for (int j = 0; j < lanes<T>; j++) {
        low[j] = (j % 2 ? im : re)[j / 2];
        high[j] = (j % 2 ? im : re)[(j + lanes<T>) / 2];
    }
#else
    Int<T> first, second;
    for (int j = 0; j < lanes<T>; j++) {
        first[j] = j / 2 + (j % 2 ? lanes<T> : 0);
        second[j] = first[j] + lanes<T> / 2;
    }
    low = __builtin_shuffle(re, im, first);
    high = __builtin_shuffle(re, im, second);
#endif
}
template <class T> inline void separate(Vec<T> low, Vec<T> high, Vec<T> &re, Vec<T> &im) {
#if defined(__clang__)
    for (int j = 0; j < lanes<T>; j++) {
        re[j] = j < lanes<T> / 2 ? low[2 * j] : high[2 * j - lanes<T>];
        im[j] = j < lanes<T> / 2 ? low[2 * j + 1] : high[2 * j + 1 - lanes<T>];
    }
#else
    Int<T> even, odd;
    for (int j = 0; j < lanes<T>; j++) even[j] = 2 * j, odd[j] = 2 * j + 1;
    re = __builtin_shuffle(low, high, even);
    im = __builtin_shuffle(low, high, odd);
#endif
}

template <class T> inline Vec<T> square_root(Vec<T> v) {
    Vec<T> r;
    for (int j = 0; j < lanes<T>; j++) r[j] = std::sqrt(v[j]);
    return r;
}

// 1/√x; infinite at zero. In single precision an estimate and Newton steps, which is several times faster.
inline Vec<double> inverse_root(Vec<double> x) { return 1.0 / square_root<double>(x); }
inline Vec<float> inverse_root(Vec<float> x) {
#if defined(__AVX512F__)
    Vec<float> y = (Vec<float>)_mm512_maskz_rsqrt14_ps(0xffff, (__m512)x);
    return y * (1.5f - 0.5f * x * y * y);
#elif defined(__AVX2__)
    Vec<float> y = (Vec<float>)_mm256_rsqrt_ps((__m256)x);
    y = y * (1.5f - 0.5f * x * y * y);
    return y * (1.5f - 0.5f * x * y * y);
#else
    return 1.0f / square_root<float>(x);
#endif
}

// e^x = 2^k (1 + p) with p = e^r − 1, |r| <= ln2 / 2. A NaN passes through p.
template <class T> struct Exponent {
    Vec<T> scale, p;
};
inline Exponent<float> split_exp(Vec<float> x) {
    const float magic = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the nearest integer
    Vec<float> t = x * 1.44269504088896341f + magic;
    Vec<float> k = t - magic;
    Vec<float> r = x - k * 0.693145751953125f - k * 1.428606765330187e-6f;
    Vec<float> q = fill(1.98412698e-4f);
    q = q * r + 1.38888889e-3f;
    q = q * r + 8.33333333e-3f;
    q = q * r + 4.16666667e-2f;
    q = q * r + 1.66666667e-1f;
    q = q * r + 0.5f;
    Int<float> bits = ((Int<float>)t << 23) + 0x3f800000;
    return {(Vec<float>)bits, r + r * r * q};
}
inline Exponent<double> split_exp(Vec<double> x) {
    const double magic = 6755399441055744.0;  // 1.5 * 2^52
    Vec<double> t = x * 1.4426950408889634074 + magic;
    Vec<double> k = t - magic;
    Vec<double> r = x - k * 6.93147180369123816490e-1 - k * 1.90821492927058770002e-10;
    Vec<double> q = fill(1.0 / 6227020800.0);
    const double c[] = {1.0 / 479001600.0,
                        1.0 / 39916800.0,
                        1.0 / 3628800.0,
                        1.0 / 362880.0,
                        1.0 / 40320.0,
                        1.0 / 5040.0,
                        1.0 / 720.0,
                        1.0 / 120.0,
                        1.0 / 24.0,
                        1.0 / 6.0,
                        0.5};
    for (double a : c) q = q * r + a;
    Int<double> bits = ((Int<double>)t << 52) + 0x3ff0000000000000LL;
    return {(Vec<double>)bits, r + r * r * q};
}

template <class T> constexpr T exp_zero = sizeof(T) == 4 ? T(104) : T(746);  // e^-x is 0 from here
template <class T> constexpr T exp_limit = sizeof(T) == 4 ? T(87) : T(708);

template <class T> inline Vec<T> magnitude(Vec<T> x) { return x < 0 ? -x : x; }
template <class T> inline Vec<T> at_most(Vec<T> x, T limit) { return x > limit ? fill(limit) : x; }  // keeps NaN

template <class T> inline Vec<T> sigmoid(Vec<T> x) {
    Vec<T> size = magnitude<T>(x);
    auto e = split_exp(-at_most<T>(size, exp_limit<T>));
    Vec<T> small = size > exp_zero<T> ? Vec<T>{} : e.scale * e.p + e.scale;  // e^{-|x|}
    Vec<T> top = x < 0 ? small : fill(T(1));
    return top / (small + T(1));
}
// −expm1(−2|x|) / (2 + expm1(−2|x|)), accurate for small x too
template <class T> inline Vec<T> hyperbolic_tangent(Vec<T> x) {
    auto e = split_exp(T(-2) * at_most<T>(magnitude<T>(x), T(20)));
    Vec<T> em1 = e.scale * e.p + (e.scale - T(1));
    Vec<T> y = em1 / (em1 + T(2));
    return x < 0 ? y : -y;
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
