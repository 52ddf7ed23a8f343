// Matrix products for few rows: the one tile that every structure is built from.
#pragma once
#include "simd.h"

#include <algorithm>

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> constexpr int panel = 2 * lanes<T>;  // columns of a packed panel

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// y[r][0..panels·panel) += Σ_k x[r·row + k·step] p[k·stride + …]. Every row and column sums over k in the same order,
// whatever the tile, so that results do not depend on how rows are shared out.
template <class T, int ROWS, int PANELS>
inline void tile(int64_t depth, const T *x, int64_t row, int64_t step, const T *p, int64_t stride, int64_t next_panel,
                 T *y, int64_t ldy, int64_t columns) {
    constexpr int L = lanes<T>, W = 2 * PANELS;
    Vec<T> sum[ROWS][W];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < W; v++) sum[r][v] = Vec<T>{};
    for (int64_t k = 0; k < depth; k++) {
        Vec<T> w[W];
        for (int v = 0; v < W; v++) w[v] = load(p + (v / 2) * next_panel + k * stride + (v % 2) * L);
        for (int r = 0; r < ROWS; r++) {
            const T a = x[r * row + k * step];
            for (int v = 0; v < W; v++) sum[r][v] += w[v] * a;
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < W; v++) {
            int64_t at = v * L, left = columns - at;
            T *to = y + r * ldy + at;
            if (left >= L)
                store(to, load(to) + sum[r][v]);
            else if (left > 0) {
                Tail tail{int(left)};
                tail.put(to, tail.get(to) + sum[r][v]);
            }
        }
}

template <class T, int ROWS>
inline void tile_of_rows(int rows, int64_t depth, const T *x, int64_t row, int64_t step, const T *p, int64_t stride, T *y,
                         int64_t ldy, int64_t columns) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS)
            tile<T, ROWS, 1>(depth, x, row, step, p, stride, 0, y, ldy, columns);
        else
            tile_of_rows<T, ROWS - 1>(rows, depth, x, row, step, p, stride, y, ldy, columns);
    }
}

// A (depth x columns) matrix as consecutive panels of full vectors, the last filled up with zeros.
template <class T> struct Packed {
    int64_t depth = 0, columns = 0;
    T *data = nullptr;
    int64_t panels() const { return round_up(columns, panel<T>) / panel<T>; }
    int64_t size() const { return depth * panels() * panel<T>; }
    template <class Get> void pack(Get get) {
        T *to = data;
        for (int64_t first = 0; first < columns; first += panel<T>)
            for (int64_t k = 0; k < depth; k++)
                for (int64_t j = first; j < first + panel<T>; j++) *to++ = j < columns ? get(k, j) : T(0);
    }
};

// y (rows, columns) += x (rows, depth) · w[from:from+depth]
template <class T>
void multiply(int64_t rows, const T *x, int64_t ldx, const Packed<T> &w, int64_t from, int64_t depth, T *y, int64_t ldy) {
    const int64_t next = w.depth * panel<T>;
    const T *base = w.data + from * panel<T>;
    if (rows == 1) {  // one row has few sums: four panels at a time keep the multipliers busy
        int64_t n = 0, count = w.panels();
        for (; n + 4 <= count; n += 4)
            tile<T, 1, 4>(depth, x, 0, 1, base + n * next, panel<T>, next, y + n * panel<T>, ldy,
                          w.columns - n * panel<T>);
        for (; n < count; n++)
            tile<T, 1, 1>(depth, x, 0, 1, base + n * next, panel<T>, 0, y + n * panel<T>, ldy, w.columns - n * panel<T>);
        return;
    }
    const int64_t tiles = (rows + SLIMRNN_TILE_ROWS - 1) / SLIMRNN_TILE_ROWS;
    for (int64_t n = 0; n < w.panels(); n++) {
        int64_t r = 0;
        for (int64_t i = 0; i < tiles; i++) {
            int64_t until = rows * (i + 1) / tiles;
            tile_of_rows<T, SLIMRNN_TILE_ROWS>(int(until - r), depth, x + r * ldx, ldx, 1, base + n * next, panel<T>,
                                               y + r * ldy + n * panel<T>, ldy, w.columns - n * panel<T>);
            r = until;
        }
    }
}
template <class T> void multiply(int64_t rows, const T *x, int64_t ldx, const Packed<T> &w, T *y, int64_t ldy) {
    multiply(rows, x, ldx, w, 0, w.depth, y, ldy);
}

// sums (p, q) += aᵀ b, summed over `rows` rows. Whole vectors of b are read: its rows must be followed by memory.
template <class T>
void correlate(int64_t rows, int64_t p, int64_t q, const T *a, int64_t lda, const T *b, int64_t ldb, T *sums,
               int64_t lds) {
    for (int64_t j = 0; j < q; j += panel<T>) {
        const int64_t tiles = (p + SLIMRNN_TILE_ROWS - 1) / SLIMRNN_TILE_ROWS;
        int64_t i = 0;
        for (int64_t k = 0; k < tiles; k++) {
            int64_t until = p * (k + 1) / tiles;
            tile_of_rows<T, SLIMRNN_TILE_ROWS>(int(until - i), rows, a + i, 1, lda, b + j, ldb, sums + i * lds + j, lds,
                                               q - j);
            i = until;
        }
    }
}

// A complex matrix acting on (re, im) pairs is a real one of twice the size; its transpose is the adjoint's.
template <class T> struct Matrix {
    const T *data;
    int64_t columns;  // of the real or complex matrix
    bool is_complex;
    T operator()(int64_t i, int64_t k) const {
        if (!is_complex) return data[i * columns + k];
        const T *z = data + 2 * ((i / 2) * columns + k / 2);
        if (i % 2 == k % 2) return z[0];
        return i % 2 ? z[1] : -z[1];
    }
};

// The other way: real sums of y xᵀ over pairs, to the gradient y x^H of the complex (or real) matrix.
template <class T>
void add_gradient(const T *sums, int64_t rows, int64_t columns, bool is_complex, T *to) {
    if (!is_complex) {
        for (int64_t i = 0; i < rows * columns; i++) to[i] += sums[i];
        return;
    }
    for (int64_t i = 0; i < rows; i += 2)
        for (int64_t k = 0; k < columns; k += 2, to += 2) {
            const T *re = sums + i * columns + k, *im = re + columns;
            to[0] += re[0] + im[1];
            to[1] += im[0] - re[1];
        }
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
