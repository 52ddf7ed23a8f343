// Matrix products for few rows: the one tile that every structure is built from.
#pragma once
#include "simd.h"

#include <algorithm>

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> constexpr int panel = 2 * lanes<T>;  // columns of the widest panel

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// y[r][0 … columns) += Σ_k x(r, k) p[k·stride + …], where x(r, k) = x[r·ldx + k], or, TURNED, x[k·ldx + r]. Every row and column sums over k in the same order,
// whatever the tile, so that results do not depend on how rows are shared out.
template <class T, int ROWS, int VECTORS, bool TURNED>
inline void tile(int64_t depth, const T *x, int64_t ldx, const T *p, int64_t stride, T *y, int64_t ldy,
                 int64_t columns) {
    constexpr int L = lanes<T>;
    Vec<T> sum[ROWS][VECTORS];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++) sum[r][v] = Vec<T>{};
    for (int64_t k = 0; k < depth; k++) {
        Vec<T> w[VECTORS];
        for (int v = 0; v < VECTORS; v++) w[v] = load(p + k * stride + v * L);
        for (int r = 0; r < ROWS; r++) {
            const T a = TURNED ? x[k * ldx + r] : x[r * ldx + k];
            for (int v = 0; v < VECTORS; v++) sum[r][v] += w[v] * a;
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++) {
            const int64_t left = columns - v * L;
            T *to = y + r * ldy + v * L;
            if (left >= L)
                store(to, load(to) + sum[r][v]);
            else if (left > 0)
                Tail{int(left)}.put(to, Tail{int(left)}.get(to) + sum[r][v]);
        }
}

// One row has few sums: several panels at a time keep the multipliers busy.
template <class T>
void one_row(int64_t depth, const T *x, const T *base, int64_t next, int64_t panels, T *y, int64_t columns) {
    constexpr int L = lanes<T>, MANY = 4;
    int64_t n = 0;
    for (; n + MANY <= panels; n += MANY) {
        Vec<T> sum[2 * MANY];
        for (int v = 0; v < 2 * MANY; v++) sum[v] = Vec<T>{};
        for (int64_t k = 0; k < depth; k++)
            for (int v = 0; v < 2 * MANY; v++)
                sum[v] += load(base + (n + v / 2) * next + k * 2 * L + (v % 2) * L) * x[k];
        for (int v = 0; v < 2 * MANY; v++) {
            const int64_t at = n * 2 * L + v * L, left = columns - at;
            if (left >= L)
                store(y + at, load(y + at) + sum[v]);
            else if (left > 0)
                Tail{int(left)}.put(y + at, Tail{int(left)}.get(y + at) + sum[v]);
        }
    }
    for (; n < panels; n++) tile<T, 1, 2, false>(depth, x, 0, base + n * next, 2 * L, y + n * 2 * L, 0, columns - n * 2 * L);
}

template <class T, int ROWS, bool TURNED>
inline void tile_of_rows(int rows, int vectors, int64_t depth, const T *x, int64_t ldx, const T *p, int64_t stride, T *y,
                         int64_t ldy, int64_t columns) {
    if constexpr (ROWS > 0) {
        if (rows != ROWS)
            tile_of_rows<T, ROWS - 1, TURNED>(rows, vectors, depth, x, ldx, p, stride, y, ldy, columns);
        else if (vectors == 1)
            tile<T, ROWS, 1, TURNED>(depth, x, ldx, p, stride, y, ldy, columns);
        else
            tile<T, ROWS, 2, TURNED>(depth, x, ldx, p, stride, y, ldy, columns);
    }
}

// A (depth x columns) matrix as consecutive panels of whole vectors, the last filled up with zeros.
template <class T> struct Packed {
    int64_t depth = 0, columns = 0;
    T *data = nullptr;
    int vectors() const { return columns <= lanes<T> ? 1 : 2; }
    int64_t wide() const { return vectors() * lanes<T>; }
    int64_t panels() const { return round_up(columns, wide()) / wide(); }
    int64_t size() const { return depth * panels() * wide(); }
    template <class Get> void pack(Get get) {
        T *to = data;
        for (int64_t first = 0; first < columns; first += wide())
            for (int64_t k = 0; k < depth; k++)
                for (int64_t j = first; j < first + wide(); j++) *to++ = j < columns ? get(k, j) : T(0);
    }
};

// y (rows, columns) += x (rows, depth) · w[from:from+depth]
template <class T>
void multiply(int64_t rows, const T *x, int64_t ldx, const Packed<T> &w, int64_t from, int64_t depth, T *y, int64_t ldy) {
    const int64_t wide = w.wide(), next = w.depth * wide;
    const T *base = w.data + from * wide;
    if (rows == 1 && w.vectors() == 2) {
        one_row(depth, x, base, next, w.panels(), y, w.columns);
        return;
    }
    const int64_t tiles = (rows + SLIMRNN_TILE_ROWS - 1) / SLIMRNN_TILE_ROWS;
    for (int64_t n = 0; n < w.panels(); n++) {
        int64_t r = 0;
        for (int64_t i = 0; i < tiles; i++) {
            int64_t until = rows * (i + 1) / tiles;
            tile_of_rows<T, SLIMRNN_TILE_ROWS, false>(int(until - r), w.vectors(), depth, x + r * ldx, ldx,
                                                      base + n * next, wide, y + r * ldy + n * wide, ldy,
                                                      w.columns - n * wide);
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
    const int vectors = q <= lanes<T> ? 1 : 2;
    const int64_t wide = vectors * lanes<T>, tiles = (p + SLIMRNN_TILE_ROWS - 1) / SLIMRNN_TILE_ROWS;
    for (int64_t j = 0; j < q; j += wide) {
        int64_t i = 0;
        for (int64_t k = 0; k < tiles; k++) {
            int64_t until = p * (k + 1) / tiles;
            tile_of_rows<T, SLIMRNN_TILE_ROWS, true>(int(until - i), vectors, rows, a + i, lda, b + j, ldb,
                                                     sums + i * lds + j, lds, q - j);
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

// The same from the transposed sums x yᵀ, (columns, rows).
template <class T>
void add_transposed(const T *sums, int64_t columns, int64_t rows, bool is_complex, T *to) {
    const int64_t step = is_complex ? 2 : 1;
    for (int64_t i = 0; i < rows; i += step)
        for (int64_t k = 0; k < columns; k += step, to += step) {
            const T *re = sums + k * rows + i, *im = re + rows;  // im: the imaginary part of x
            if (!is_complex) {
                to[0] += re[0];
                continue;
            }
            to[0] += re[0] + im[1];
            to[1] += re[1] - im[0];
        }
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
