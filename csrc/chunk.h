// As many numbers of the field as a vector has lanes: a vector of real parts and, FIELD = 2, one of imaginary parts. In a
// lane is not always the number of that place in memory: lane_bit says where the bits of a place go.
#pragma once
#include "simd.h"

#define SLIMRNN_INLINE inline __attribute__((always_inline))  // chunks live in registers, which calls would empty
#define SLIMRNN_INSIDE __attribute__((always_inline))         // the same of a lambda

namespace slimrnn {
namespace SLIMRNN_ISA {

// lane j <- lane j ^ FLIP
template <class T, int FLIP> SLIMRNN_INLINE Vec<T> exchange(Vec<T> v) {
    if constexpr (FLIP == 0) return v;
#if defined(__clang__)
    Vec<T> r;
    for (int j = 0; j < lanes<T>; j++) r[j] = v[j ^ FLIP];
    return r;
#else
    Int<T> order;
    for (int j = 0; j < lanes<T>; j++) order[j] = j ^ FLIP;
    return __builtin_shuffle(v, order);
#endif
}

// Whether a comparison holds in any lane.
template <class I> inline bool any(I mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    bool found = false;
    for (size_t j = 0; j < sizeof(mask) / sizeof(mask[0]); j++) found |= mask[j] != 0;
    return found;
#endif
}

constexpr int log_two(int n) { return n < 2 ? 0 : 1 + log_two(n / 2); }

template <class T, int FIELD> struct Chunk {
    static constexpr int L = lanes<T>;
    static constexpr int size = FIELD * L;        // numbers of T
    static constexpr int digits = log_two(L);     // binary digits of a place
    static constexpr int Q = 16 / sizeof(T);      // lanes that shuffle among themselves at no extra cost
    static constexpr int pairs = log_two(Q / 2);  // digits of a pair among those of one vector

    Vec<T> part[FIELD];

    // The pairs of two vectors are shuffled in groups of Q lanes: those of the second vector go behind the first's.
    static constexpr int lane_bit(int digit) {
        if (FIELD == 1 || digit < pairs) return digit;
        return digit + 1 == digits ? pairs : digit + 1;
    }
    static constexpr int lane(int place) {
        int lane = 0;
        for (int d = 0; d < digits; d++) lane |= (place >> d & 1) << lane_bit(d);
        return lane;
    }

    static SLIMRNN_INLINE Chunk get(const T *p) {
        Chunk z;
        for (int f = 0; f < FIELD; f++) z.part[f] = load(p + f * L);
        return z;
    }
    SLIMRNN_INLINE void put(T *p) const {
        for (int f = 0; f < FIELD; f++) store(p + f * L, part[f]);
    }
    static SLIMRNN_INLINE Chunk from_row(const T *p) {
        Chunk z = get(p);
        if constexpr (FIELD == 2) {
            const Vec<T> low = z.part[0], high = z.part[1];
#if defined(__clang__)
            for (int j = 0; j < L; j++)
                for (int f = 0; f < 2; f++) z.part[f][j] = (j % Q < Q / 2 ? low : high)[source(j) + f];
#else
            Int<T> re;
            for (int j = 0; j < L; j++) re[j] = source(j) + (j % Q < Q / 2 ? 0 : L);
            z.part[0] = __builtin_shuffle(low, high, re);
            z.part[1] = __builtin_shuffle(low, high, re + 1);
#endif
        }
        return z;
    }
    SLIMRNN_INLINE Chunk as_row() const {  // the other way
        Chunk row = *this;
        if constexpr (FIELD == 2) {
#if defined(__clang__)
            for (int j = 0; j < L; j++)
                for (int f = 0; f < 2; f++) row.part[f][j] = part[j % 2][target(j) + f * (Q / 2)];
#else
            Int<T> low;
            for (int j = 0; j < L; j++) low[j] = target(j) + j % 2 * L;
            row.part[0] = __builtin_shuffle(part[0], part[1], low);
            row.part[1] = __builtin_shuffle(part[0], part[1], low + Q / 2);
#endif
        }
        return row;
    }
    SLIMRNN_INLINE void put_row(T *p) const { as_row().put(p); }
    SLIMRNN_INLINE void add_to_row(T *p) const {
        const Chunk row = as_row();
        for (int f = 0; f < FIELD; f++) store(p + f * L, load(p + f * L) + row.part[f]);
    }
    template <int FLIP> SLIMRNN_INLINE Chunk exchanged() const {
        Chunk z;
        for (int f = 0; f < FIELD; f++) z.part[f] = exchange<T, FLIP>(part[f]);
        return z;
    }

    static SLIMRNN_INLINE Chunk product(Chunk a, Chunk b) {
        if constexpr (FIELD == 1)
            return {{a.part[0] * b.part[0]}};
        else
            return {{a.part[0] * b.part[0] - a.part[1] * b.part[1], a.part[0] * b.part[1] + a.part[1] * b.part[0]}};
    }
    SLIMRNN_INLINE Chunk operator*(Vec<T> a) const {
        Chunk z;
        for (int f = 0; f < FIELD; f++) z.part[f] = part[f] * a;
        return z;
    }
    SLIMRNN_INLINE Chunk operator+(Chunk a) const {
        for (int f = 0; f < FIELD; f++) a.part[f] = part[f] + a.part[f];
        return a;
    }
    SLIMRNN_INLINE Chunk operator-(Chunk a) const {
        for (int f = 0; f < FIELD; f++) a.part[f] = part[f] - a.part[f];
        return a;
    }
    SLIMRNN_INLINE Chunk where(Int<T> mask) const {  // zero elsewhere
        Chunk z;
        for (int f = 0; f < FIELD; f++) z.part[f] = mask ? part[f] : Vec<T>{};
        return z;
    }
    SLIMRNN_INLINE void add(Chunk a, Chunk b) {  // a b
        part[0] += a.part[0] * b.part[0];
        if constexpr (FIELD == 2) {
            part[1] += a.part[0] * b.part[1];
            part[0] -= a.part[1] * b.part[1];
            part[1] += a.part[1] * b.part[0];
        }
    }
    SLIMRNN_INLINE void add_conjugate(Chunk a, Chunk b) {  // a conj(b)
        part[0] += a.part[0] * b.part[0];
        if constexpr (FIELD == 2) {
            part[1] += a.part[1] * b.part[0];
            part[0] += a.part[1] * b.part[1];
            part[1] -= a.part[0] * b.part[1];
        }
    }

  private:
    static constexpr int source(int lane) { return lane / Q * Q + lane % (Q / 2) * 2; }
    static constexpr int target(int lane) { return lane / Q * Q + lane % Q / 2; }
};

// What is left of a row, filled up with zeros.
template <class T, int FIELD> struct Rest {
    using C = Chunk<T, FIELD>;
    int count;
    SLIMRNN_INLINE C from_row(const T *p) const {
        T whole[C::size] = {};
        memcpy(whole, p, sizeof(T) * count);
        return C::from_row(whole);
    }
    SLIMRNN_INLINE void put_row(T *p, C z) const {
        T whole[C::size];
        z.put_row(whole);
        memcpy(p, whole, sizeof(T) * count);
    }
};
template <class T, int FIELD> struct Whole {
    using C = Chunk<T, FIELD>;
    SLIMRNN_INLINE C from_row(const T *p) const { return C::from_row(p); }
    SLIMRNN_INLINE void put_row(T *p, C z) const { z.put_row(p); }
};
template <class T, int FIELD, class F> inline void each_chunk(int64_t width, F f) {
    constexpr int size = Chunk<T, FIELD>::size;
    int64_t i = 0;
    for (; i + size <= width; i += size) f(i, Whole<T, FIELD>{});
    if (i < width) f(i, Rest<T, FIELD>{int(width - i)});
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
