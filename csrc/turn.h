// Matrices turned in vectors: their transposes, written or added.
#pragma once
#include "simd.h"

#include <algorithm>

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T, int W> struct GroupTypes;
#define SLIMRNN_GROUP(T, I, W)                                                                                         \
    template <> struct GroupTypes<T, W> {                                                                              \
        typedef T V __attribute__((vector_size(W * sizeof(T))));                                                       \
        typedef I Order __attribute__((vector_size(W * sizeof(T))));                                                   \
    };
SLIMRNN_GROUP(float, int32_t, 4)
SLIMRNN_GROUP(float, int32_t, 8)
SLIMRNN_GROUP(double, int64_t, 2)
SLIMRNN_GROUP(double, int64_t, 4)
#undef SLIMRNN_GROUP

// Rows of a group. Wider ones would leave the first-level cache sooner than they would save instructions.
template <class T> constexpr int widest = std::min(32, SLIMRNN_BYTES) / int(sizeof(T));
template <class T> constexpr int narrowest = 16 / int(sizeof(T));

// The transpose of W vectors, by interleaving the first half with the second log₂ W times.
template <class T, int W> inline void transpose(typename GroupTypes<T, W>::V (&v)[W]) {
    typedef typename GroupTypes<T, W>::V V;
    for (int size = 1; size < W; size *= 2) {
        V next[W];
        for (int i = 0; i < W / 2; i++) {
            const V a = v[i], b = v[i + W / 2];
#if defined(__clang__)
            for (int j = 0; j < W; j++) {
                next[2 * i][j] = (j % 2 ? b : a)[j / 2];
                next[2 * i + 1][j] = (j % 2 ? b : a)[(j + W) / 2];
            }
#else
            typename GroupTypes<T, W>::Order low, high;
            for (int j = 0; j < W; j++) {
                low[j] = j / 2 + (j % 2 ? W : 0);
                high[j] = low[j] + W / 2;
            }
            next[2 * i] = __builtin_shuffle(a, b, low);
            next[2 * i + 1] = __builtin_shuffle(a, b, high);
#endif
        }
        for (int i = 0; i < W; i++) v[i] = next[i];
    }
}

// to (columns, rows) = fromᵀ of a matrix (rows, columns), or += that
template <class T, bool ADD>
inline void turn(int64_t rows, int64_t columns, const T *from, int64_t ldf, T *to, int64_t ldt) {
    constexpr int W = widest<T>;
    typedef typename GroupTypes<T, W>::V V;
    const int64_t whole_rows = rows / W * W, whole_columns = columns / W * W;
    for (int64_t c = 0; c < whole_columns; c += W)
        for (int64_t r = 0; r < whole_rows; r += W) {
            V v[W], sum;
            for (int i = 0; i < W; i++) memcpy(&v[i], from + (r + i) * ldf + c, sizeof(V));
            transpose<T, W>(v);
            for (int i = 0; i < W; i++) {
                T *at = to + (c + i) * ldt + r;
                if (ADD) memcpy(&sum, at, sizeof(V)), v[i] += sum;
                memcpy(at, &v[i], sizeof(V));
            }
        }
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; r++)
            to[c * ldt + r] = (ADD ? to[c * ldt + r] : T(0)) + from[r * ldf + c];
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
