// acc += Σ of four int8 products, for as many rows of a matrix as a vector has lanes: the four weights of a row lie next
// to each other, then those of the next row. Sums of integers are exact, so every way to take them gives the same.
#pragma once
#include "../product.h"
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <immintrin.h>
#endif

namespace slimrnn {
namespace SLIMRNN_ISA {

#if defined(__AVX512F__)
// Of processors with VNNI. Its first factors are unsigned: q + 128, and 128 Σ w is taken off at the end (`correction`).
// In assembly, since the rest of this file runs where there is none.
struct VnniDot {
    static constexpr int flip = 0x80, rows = 4;  // of q's bits; rows of x in a tile
    struct Four {
        __m512i q;
    };
    struct Total {
        __m512i sum;
    };
    static Four four(const uint8_t *q) {
        int32_t bits;
        memcpy(&bits, q, 4);
        return {_mm512_set1_epi32(bits)};
    }
    static void add(Total &t, Four a, const int8_t *w) {
        const __m512i weights = _mm512_loadu_si512(w);
        __asm__("vpdpbusd %2, %1, %0" : "+v"(t.sum) : "v"(a.q), "v"(weights));
    }
    static Int<float> total(Total t) { return (Int<float>)t.sum; }
};
// |q| and w with the sign of q: two products are at most 2 · 127², which an int16 holds.
struct Dot {
    static constexpr int flip = 0, rows = 4;
    struct Four {
        __m512i size;
        __mmask64 negative;
    };
    struct Total {
        __m512i sum;
    };
    static Four four(const uint8_t *q) {
        int32_t bits;
        memcpy(&bits, q, 4);
        const __m512i all = _mm512_set1_epi32(bits);
        return {_mm512_abs_epi8(all), _mm512_movepi8_mask(all)};
    }
    static void add(Total &t, Four a, const int8_t *w) {
        const __m512i weights = _mm512_loadu_si512(w);
        const __m512i turned = _mm512_mask_sub_epi8(weights, a.negative, _mm512_setzero_si512(), weights);
        const __m512i pairs = _mm512_maddubs_epi16(a.size, turned);
        t.sum = _mm512_add_epi32(t.sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    }
    static Int<float> total(Total t) { return (Int<float>)t.sum; }
};
#elif defined(__AVX2__)
struct Dot {
    static constexpr int flip = 0, rows = 2;
    struct Four {
        __m256i size, q;
    };
    struct Total {
        __m256i sum;
    };
    static Four four(const uint8_t *q) {
        int32_t bits;
        memcpy(&bits, q, 4);
        const __m256i all = _mm256_set1_epi32(bits);
        return {_mm256_abs_epi8(all), all};
    }
    static void add(Total &t, Four a, const int8_t *w) {
        __m256i weights;
        memcpy(&weights, w, sizeof weights);
        const __m256i pairs = _mm256_maddubs_epi16(a.size, _mm256_sign_epi8(weights, a.q));
        t.sum = _mm256_add_epi32(t.sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    static Int<float> total(Total t) { return (Int<float>)t.sum; }
};
#elif defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
struct Dot {
    static constexpr int flip = 0, rows = 4;
    struct Four {
        int8x16_t q;
    };
    struct Total {
        int32x4_t sum;
    };
    static Four four(const uint8_t *q) {
        int32_t bits;
        memcpy(&bits, q, 4);
        return {vreinterpretq_s8_s32(vdupq_n_s32(bits))};
    }
    static void add(Total &t, Four a, const int8_t *w) { t.sum = vdotq_s32(t.sum, vld1q_s8(w), a.q); }
    static Int<float> total(Total t) { return (Int<float>)t.sum; }
};
#elif defined(__aarch64__)
struct Dot {
    static constexpr int flip = 0, rows = 2;
    struct Four {
        int8x8_t q;
    };
    struct Total {
        int32x4_t low, high;  // of every row two sums
    };
    static Four four(const uint8_t *q) {
        int32_t bits;
        memcpy(&bits, q, 4);
        return {vreinterpret_s8_s32(vdup_n_s32(bits))};
    }
    static void add(Total &t, Four a, const int8_t *w) {
        const int8x16_t weights = vld1q_s8(w);
        t.low = vpadalq_s16(t.low, vmull_s8(vget_low_s8(weights), a.q));
        t.high = vpadalq_s16(t.high, vmull_s8(vget_high_s8(weights), a.q));
    }
    static Int<float> total(Total t) { return (Int<float>)vpaddq_s32(t.low, t.high); }
};
#elif defined(__SSE2__)
struct Dot {
    static constexpr int flip = 0, rows = 2;
    struct Four {
        __m128i q;  // as int16
    };
    struct Total {
        __m128i low, high;  // of every row two sums
    };
    static __m128i low_half(__m128i bytes) { return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8); }
    static __m128i high_half(__m128i bytes) { return _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8); }
    static Four four(const uint8_t *q) {
        int32_t bits;
        memcpy(&bits, q, 4);
        return {low_half(_mm_set1_epi32(bits))};
    }
    static void add(Total &t, Four a, const int8_t *w) {
        const __m128i weights = _mm_loadu_si128(reinterpret_cast<const __m128i *>(w));
        t.low = _mm_add_epi32(t.low, _mm_madd_epi16(low_half(weights), a.q));
        t.high = _mm_add_epi32(t.high, _mm_madd_epi16(high_half(weights), a.q));
    }
    static Int<float> total(Total t) {
        const __m128 low = _mm_castsi128_ps(t.low), high = _mm_castsi128_ps(t.high);
        const __m128i even = _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88));
        const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd));
        return (Int<float>)_mm_add_epi32(even, odd);
    }
};
#else
struct Dot {
    static constexpr int flip = 0, rows = 1;
    struct Four {
        int8_t q[4];
    };
    struct Total {
        Int<float> sum;
    };
    static Four four(const uint8_t *q) {
        Four a;
        memcpy(a.q, q, 4);
        return a;
    }
    static void add(Total &t, Four a, const int8_t *w) {
        for (int j = 0; j < lanes<float>; j++)
            for (int i = 0; i < 4; i++) t.sum[j] += int32_t(w[4 * j + i]) * a.q[i];
    }
    static Int<float> total(Total t) { return t.sum; }
};
#endif

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
