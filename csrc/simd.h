// Vectors of the width that this file is compiled for, and the functions of them that recurrent cells need.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

// What int8 layers run is compiled apart, without contractions: it has names of its own.
#if defined(SLIMRNN_INT8)
#define SLIMRNN_SET(isa) isa##_int8
#else
#define SLIMRNN_SET(isa) isa
#endif
#if defined(__AVX512F__)
#define SLIMRNN_ISA SLIMRNN_SET(avx512)
#define SLIMRNN_BYTES 64
#define SLIMRNN_TILE_ROWS 12
#elif defined(__AVX2__)
#define SLIMRNN_ISA SLIMRNN_SET(avx2)
#define SLIMRNN_BYTES 32
#define SLIMRNN_TILE_ROWS 6
#else
#define SLIMRNN_ISA SLIMRNN_SET(generic)
#define SLIMRNN_BYTES 16
#if defined(__aarch64__)  // NEON has 32 registers: 24 sums, two vectors of weights and the inputs
#define SLIMRNN_TILE_ROWS 12
#else
#define SLIMRNN_TILE_ROWS 6
#endif
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
    template <class T> Vec<T> only(Vec<T> v) const { return v; }
};
struct Tail {
    int count;
    template <class T> Vec<T> get(const T *p) const {
        Vec<T> v{};
        memcpy(&v, p, sizeof(T) * count);
        return v;
    }
    template <class T> void put(T *p, Vec<T> v) const { memcpy(p, &v, sizeof(T) * count); }
    template <class T> Vec<T> only(Vec<T> v) const {  // zeros beyond the row, for sums over it
        for (int j = count; j < lanes<T>; j++) v[j] = 0;
        return v;
    }
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

template <class T> inline T sum_of(Vec<T> v) {
    T sum = 0;
    for (int j = 0; j < lanes<T>; j++) sum += v[j];
    return sum;
}

inline Vec<float> root(Vec<float> v) {
#if defined(__AVX512F__)
    return (Vec<float>)_mm512_maskz_sqrt_ps(0xffff, (__m512)v);
#elif defined(__AVX2__)
    return (Vec<float>)_mm256_sqrt_ps((__m256)v);
#else
    for (int j = 0; j < lanes<float>; j++) v[j] = std::sqrt(v[j]);
    return v;
#endif
}
inline Vec<double> root(Vec<double> v) {
#if defined(__AVX512F__)
    return (Vec<double>)_mm512_maskz_sqrt_pd(0xff, (__m512d)v);
#elif defined(__AVX2__)
    return (Vec<double>)_mm256_sqrt_pd((__m256d)v);
#else
    for (int j = 0; j < lanes<double>; j++) v[j] = std::sqrt(v[j]);
    return v;
#endif
}
template <class T> inline Vec<T> square_root(Vec<T> v) { return root(v); }

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
    Vec<T> scale, p, k;
};
// The integer nearest to a number of this size stands in the low bits of their sum: 1.5 * 2^23, 1.5 * 2^52.
template <class T> constexpr T magic = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);
inline Vec<float> power_of_two(Vec<float> shifted) {  // 2^k of k + magic
    return (Vec<float>)(((Int<float>)shifted << 23) + 0x3f800000);
}
inline Vec<double> power_of_two(Vec<double> shifted) {
    return (Vec<double>)(((Int<double>)shifted << 52) + 0x3ff0000000000000LL);
}
inline Exponent<float> split_exp(Vec<float> x) {
    Vec<float> t = x * 1.44269504088896341f + magic<float>;
    Vec<float> k = t - magic<float>;
    Vec<float> r = x - k * 0.693145751953125f - k * 1.428606765330187e-6f;
    Vec<float> r2 = r * r;  // (e^r − 1 − r) / r² to 5e-9, summed in pairs: the sums wait for less
    Vec<float> q = r2 * 1.394136437e-3f + (r * 8.367197464e-3f + 4.166635351e-2f);
    q = r2 * q + (r * 1.666653853e-1f + 5.000000045e-1f);
    return {power_of_two(t), r + r2 * q, k};
}
inline Exponent<double> split_exp(Vec<double> x) {
    Vec<double> t = x * 1.4426950408889634074 + magic<double>;
    Vec<double> k = t - magic<double>;
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
    return {power_of_two(t), r + r * r * q, k};
}

template <class T> constexpr T exp_zero = sizeof(T) == 4 ? T(104) : T(746);  // e^-x is 0 from here
template <class T> constexpr T exp_limit = sizeof(T) == 4 ? T(87) : T(708);  // of a 2^-k that can be written, ...
template <class T> constexpr T exp_top = sizeof(T) == 4 ? T(88.8) : T(710);  // ... and of the first 2^k that cannot

template <class T> inline Vec<T> magnitude(Vec<T> x) {  // without the sign bit, which is all that −0 has
    return (Vec<T>)((Int<T>)x & ~(Int<T>)-Vec<T>{});
}
// x between two limits. A NaN stays: the processor's minimum and maximum give their second operand then.
template <class T> inline Vec<T> within(T low, Vec<T> x, T high) {
    const Vec<T> least = fill(low), most = fill(high);
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
        const __m512 below = _mm512_maskz_min_ps(0xffff, (__m512)most, (__m512)x);
        return (Vec<T>)_mm512_maskz_max_ps(0xffff, (__m512)least, below);
    } else {
        const __m512d below = _mm512_maskz_min_pd(0xff, (__m512d)most, (__m512d)x);
        return (Vec<T>)_mm512_maskz_max_pd(0xff, (__m512d)least, below);
    }
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return (Vec<T>)_mm256_max_ps((__m256)least, _mm256_min_ps((__m256)most, (__m256)x));
    else
        return (Vec<T>)_mm256_max_pd((__m256d)least, _mm256_min_pd((__m256d)most, (__m256d)x));
#else
    x = x > high ? most : x;
    return x < low ? least : x;
#endif
}

// 1 / (1 + e^-x). At the lower limit 2^k is written as infinity, and the sigmoid is 0.
template <class T> inline Vec<T> sigmoid(Vec<T> x) {
    auto e = split_exp(-within<T>(-exp_top<T>, x, exp_limit<T>));
    return T(1) / ((e.p + T(1)) * e.scale + T(1));
}
// expm1(2x) / (2 + expm1(2x)), accurate for small x too
template <class T> inline Vec<T> hyperbolic_tangent(Vec<T> x) {
    auto e = split_exp(T(2) * within<T>(T(-20), x, T(20)));
    Vec<T> em1 = e.scale * e.p + (e.scale - T(1));
    return em1 / (em1 + T(2));
}
// e^x, from 0 to infinity. The scale comes in two halves, since 2^k alone may be too large or too small to write.
template <class T> inline Vec<T> exponential(Vec<T> x) {
    const T top = sizeof(T) == 4 ? T(89) : T(710);
    x = x > top ? fill(top) : x;
    x = x < -exp_zero<T> ? fill(-exp_zero<T>) : x;
    auto e = split_exp(x);
    Vec<T> half = e.k * T(0.5) + magic<T>;
    return (e.p + T(1)) * power_of_two(half) * power_of_two(e.k - (half - magic<T>)+magic<T>);
}

// x = 2^k (1 + f) with 1 + f between √½ and √2, for positive normal x
template <class T> struct Logarithm {
    Vec<T> k, f;
};
inline Logarithm<float> split_log(Vec<float> x) {
    typedef uint32_t U __attribute__((vector_size(SLIMRNN_BYTES)));
    U bits = (U)x, k = (bits + (0x3f800000u - 0x3f3504f3u)) >> 23;
    Vec<float> exponent = (Vec<float>)(k | 0x4b000000u) - 8388608.0f - 127.0f;  // 2^23 + k as a float
    return {exponent, (Vec<float>)(bits - ((k - 127u) << 23)) - 1.0f};
}
inline Logarithm<double> split_log(Vec<double> x) {
    typedef uint64_t U __attribute__((vector_size(SLIMRNN_BYTES)));
    U bits = (U)x, k = (bits + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull)) >> 52;
    Vec<double> exponent = (Vec<double>)(k | 0x4330000000000000ull) - 4503599627370496.0 - 1023.0;
    return {exponent, (Vec<double>)(bits - ((k - 1023ull) << 52)) - 1.0};
}
// log(1 + f) = f − f²/2 + s (f²/2 + R) with s = f / (2 + f) and R a polynomial in s², as in fdlibm; more: added to it
inline Vec<float> join_log(Logarithm<float> l, Vec<float> more) {
    Vec<float> f = l.f, s = f / (f + 2.0f), z = s * s, half = 0.5f * f * f;
    Vec<float> q = z * 0.24279078841f + 0.28498786688f;
    q = q * z + 0.40000972152f;
    q = q * z + 0.66666662693f;
    Vec<float> low = s * (half + q * z) + (l.k * 9.0580006145e-06f + more);
    return l.k * 6.9313812256e-01f - ((half - low) - f);
}
inline Vec<double> join_log(Logarithm<double> l, Vec<double> more) {
    Vec<double> f = l.f, s = f / (f + 2.0), z = s * s, half = 0.5 * f * f;
    Vec<double> q = fill(1.479819860511658591e-01);
    const double c[] = {1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
                        2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01};
    for (double a : c) q = q * z + a;
    Vec<double> low = s * (half + q * z) + (l.k * 1.90821492927058770002e-10 + more);
    return l.k * 6.93147180369123816490e-01 - ((half - low) - f);
}
template <class T> inline Vec<T> logarithm(Vec<T> x) {
    const T least = sizeof(T) == 4 ? T(1.17549435e-38) : T(2.2250738585072014e-308);  // the least normal number
    const T far = sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0), digits = sizeof(T) == 4 ? T(23) : T(52);
    auto l = split_log(x < least ? x * far : x);
    l.k -= x < least ? fill(digits) : Vec<T>{};
    Vec<T> y = join_log(l, Vec<T>{}), infinite = fill(T(INFINITY));
    y = x == T(0) ? -infinite : x < T(0) ? fill(T(NAN)) : y;
    return x < infinite ? y : x;  // infinity and NaN
}
// log(1 + x) for x from 0 to 1; what 1 + x rounds away is given back
template <class T> inline Vec<T> log_of_one_plus(Vec<T> x) {
    Vec<T> u = x + T(1);
    Vec<T> lost = x - (u - T(1));
    return join_log(split_log(u), lost / u);
}
template <class T> inline Vec<T> softplus(Vec<T> x) {
    Vec<T> most = x < T(0) ? Vec<T>{} : x;
    return most + log_of_one_plus<T>(exponential<T>(-magnitude<T>(x)));
}

// As torch: a NaN on either side is the result.
template <class T> inline Vec<T> maximum(Vec<T> a, Vec<T> b) { return ((a > b) | (a != a)) ? a : b; }
template <class T> inline Vec<T> minimum(Vec<T> a, Vec<T> b) { return ((a < b) | (a != a)) ? a : b; }
template <class T> inline Vec<T> relu(Vec<T> x) { return x < T(0) ? Vec<T>{} : x; }
template <class T> inline Vec<T> sign(Vec<T> x) { return x < T(0) ? fill(T(-1)) : x > T(0) ? fill(T(1)) : Vec<T>{}; }

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
