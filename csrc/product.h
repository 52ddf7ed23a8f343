// Matrix products for few rows: the one tile that every structure is built from.
#pragma once
#include "turn.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> constexpr int panel = 2 * lanes<T>;  // columns of the widest panel

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// What a tile sums over, and where its vectors go.
template <class T> struct Sum {
    int64_t depth;               // terms
    int64_t stride;              // from a row of the packed matrix to the next
    int64_t parts = 1;           // x is in that many parts of `depth` terms each, ...
    int64_t apart = 0;           // ... so far apart
    int64_t gap = lanes<T>;      // from a vector of y to the next, ...
    int64_t advance = lanes<T>;  // ... which holds so many columns fewer
    const T *start = nullptr;    // y starts here instead of at what it holds
};

// Out of the way of the tiles, which are whole but for the last.
template <class T> __attribute__((noinline)) void add_some(T *to, const T *from, Vec<T> sum, int count) {
    Tail{count}.put(to, Tail{count}.get(from) + sum);
}

// y[r][0 … columns) += Σ_k x(r, k) p[k·stride + …], where x(r, k) = x[r·ldx + k], or, TURNED, x[k·ldx + r]. Every row and
// column sums over k in the same order, whatever the tile, so that results do not depend on how rows are shared out. A
// function of its own with its loops unrolled: else the compiler may keep the sums in memory.
template <class T, int ROWS, int VECTORS, bool TURNED>
__attribute__((noinline)) void tile(const Sum<T> &over, const T *x, int64_t ldx, const T *p, T *y, int64_t ldy,
                                    int64_t columns) {
    constexpr int L = lanes<T>;
    const auto [depth, stride, parts, apart, gap, advance, start] = over;
    Vec<T> sum[ROWS][VECTORS] = {};
    for (int64_t part = 0; part < parts; part++, x += apart, p += depth * stride)
        for (int64_t k = 0; k < depth; k++) {
            Vec<T> w[VECTORS];
            for (int v = 0; v < VECTORS; v++) w[v] = load(p + k * stride + v * L);
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; r++) {
                const T a = TURNED ? x[k * ldx + r] : x[r * ldx + k];
                for (int v = 0; v < VECTORS; v++) sum[r][v] += w[v] * a;
            }
        }
    const bool whole = columns - (VECTORS - 1) * advance >= L;
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++, y += ldy) {
        const T *from = start ? start : y;
        for (int v = 0; v < VECTORS; v++) {
            const int64_t at = v * gap, left = columns - v * advance;
            if (whole)
                store(y + at, load(from + at) + sum[r][v]);
            else if (left > 0)
                add_some(y + at, from + at, sum[r][v], int(std::min<int64_t>(left, L)));
        }
    }
}

template <class T, int ROWS, bool TURNED>
inline void tile_of_rows(int rows, int vectors, const Sum<T> &over, const T *x, int64_t ldx, const T *p, T *y,
                         int64_t ldy, int64_t columns) {
    if constexpr (ROWS > 0) {
        if (rows != ROWS)
            tile_of_rows<T, ROWS - 1, TURNED>(rows, vectors, over, x, ldx, p, y, ldy, columns);
        else if (vectors == 1)
            tile<T, ROWS, 1, TURNED>(over, x, ldx, p, y, ldy, columns);
        else
            tile<T, ROWS, 2, TURNED>(over, x, ldx, p, y, ldy, columns);
    }
}
// The rows in tiles of about the same height.
template <class T, bool TURNED>
inline void tiles(int64_t rows, int vectors, const Sum<T> &over, const T *x, int64_t ldx, const T *p, T *y, int64_t ldy,
                  int64_t columns) {
    const int64_t count = (rows + SLIMRNN_TILE_ROWS - 1) / SLIMRNN_TILE_ROWS;
    for (int64_t i = 0, r = 0; i < count; i++) {
        const int64_t until = rows * (i + 1) / count;
        tile_of_rows<T, SLIMRNN_TILE_ROWS, TURNED>(int(until - r), vectors, over, x + r * (TURNED ? 1 : ldx), ldx, p,
                                                   y + r * ldy, ldy, columns);
        r = until;
    }
}

// A (depth x columns) matrix as consecutive panels of two vectors, the last of one where that is enough, filled up with
// zeros.
template <class T> struct Packed {
    int64_t depth = 0, columns = 0;
    T *data = nullptr;
    int64_t panels() const { return round_up(columns, panel<T>) / panel<T>; }
    int64_t size() const { return depth * round_up(columns, lanes<T>); }
    int vectors(int64_t n) const { return columns - n * panel<T> > lanes<T> ? 2 : 1; }
    T *at(int64_t n, int64_t row) const { return data + n * depth * panel<T> + row * vectors(n) * lanes<T>; }
    template <class Get> void pack(Get get) {
        T *to = data;
        for (int64_t n = 0; n < panels(); n++)
            for (int64_t k = 0; k < depth; k++)
                for (int64_t j = n * panel<T>; j < n * panel<T> + vectors(n) * lanes<T>; j++)
                    *to++ = j < columns ? get(k, j) : T(0);
    }
    // Some of its rows, as they stand in memory.
    void pack_rows(int64_t from, int64_t rows, const T *matrix) {
        for (int64_t k = 0; k < rows; k++)
            for (int64_t n = 0; n < panels(); n++) {
                const int64_t whole = vectors(n) * lanes<T>, here = std::min(columns - n * panel<T>, whole);
                T *to = at(n, from + k);
                memcpy(to, matrix + k * columns + n * panel<T>, sizeof(T) * here);
                std::fill(to + here, to + whole, T(0));
            }
    }
    // All of it, from its transpose.
    void pack_turned(const T *transpose) {
        for (int64_t n = 0; n < panels(); n++) {
            const int64_t whole = vectors(n) * lanes<T>, here = std::min(columns - n * panel<T>, whole);
            turn<T, false>(here, depth, transpose + n * panel<T> * depth, depth, at(n, 0), whole);
            for (int64_t k = 0; k < depth && here < whole; k++) std::fill(at(n, k) + here, at(n, k) + whole, T(0));
        }
    }
};

// Some panels of a packed matrix.
struct Panels {
    int64_t first, last;
};

// One row has few sums: several panels at a time keep the multipliers busy. Returns the first panel that is left.
template <class T>
int64_t one_row(const Sum<T> &over, const T *x, const Packed<T> &w, int64_t from, Panels some, T *y) {
    constexpr int L = lanes<T>, MANY = 2;
    const int64_t next = w.depth * 2 * L, whole = std::min(some.last, w.columns / (2 * L));
    int64_t n = some.first;
    for (; n + MANY <= whole; n += MANY) {
        Vec<T> sum[2 * MANY];
        for (int v = 0; v < 2 * MANY; v++) sum[v] = Vec<T>{};
        const T *p = w.at(n, from);
        for (int64_t part = 0; part < over.parts; part++)
            for (int64_t k = 0; k < over.depth; k++, p += 2 * L)
                for (int v = 0; v < 2 * MANY; v++)
                    sum[v] += load(p + v / 2 * next + v % 2 * L) * x[part * over.apart + k];
        for (int v = 0; v < 2 * MANY; v++) {
            T *to = y + n * 2 * L + v * L;
            store(to, load(to) + sum[v]);
        }
    }
    return n;
}

// y (rows, columns) += x w, from row `from` of w on, for some of its columns
template <class T>
void multiply(int64_t rows, Sum<T> over, const T *x, int64_t ldx, const Packed<T> &w, int64_t from, Panels some, T *y,
              int64_t ldy) {
    int64_t n = rows == 1 && !over.start ? one_row(over, x, w, from, some, y) : some.first;
    if (over.start) over.start += n * panel<T>;
    for (; n < some.last; n++) {
        over.stride = w.vectors(n) * lanes<T>;
        tiles<T, false>(rows, w.vectors(n), over, x, ldx, w.at(n, from), y + n * panel<T>, ldy,
                        w.columns - n * panel<T>);
        if (over.start) over.start += panel<T>;
    }
}
// y (rows, columns) += x (rows, depth) · w, or with a start, y = start + x w
template <class T>
void multiply(int64_t rows, const T *x, int64_t ldx, const Packed<T> &w, Panels some, T *y, int64_t ldy,
              const T *start = nullptr) {
    multiply(rows, Sum<T>{w.depth, 0, 1, 0, lanes<T>, lanes<T>, start}, x, ldx, w, 0, some, y, ldy);
}
template <class T>
void multiply(int64_t rows, const T *x, int64_t ldx, const Packed<T> &w, T *y, int64_t ldy, const T *start = nullptr) {
    multiply(rows, x, ldx, w, Panels{0, w.panels()}, y, ldy, start);
}

// y = start (or zero) + x w for small depths: where little is computed, what is written should come in order.
template <class T>
void multiply_by_rows(int64_t rows, const T *x, int64_t ldx, const Packed<T> &w, T *y, int64_t ldy, const T *start) {
    constexpr int L = lanes<T>;
    const int64_t whole = w.columns / panel<T> * panel<T>;
    for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
        const T *p = w.data;
        for (int64_t j = 0; j < whole; j += panel<T>) {
            Vec<T> low = start ? load(start + j) : Vec<T>{}, high = start ? load(start + j + L) : Vec<T>{};
            for (int64_t k = 0; k < w.depth; k++, p += panel<T>) low += load(p) * x[k], high += load(p + L) * x[k];
            store(y + j, low), store(y + j + L, high);
        }
        each_vector<T>(w.columns - whole, [&](int64_t j, auto n) {
            const int64_t last = w.panels() - 1, stride = w.vectors(last) * L;
            Vec<T> sum = start ? n.get(start + whole + j) : Vec<T>{};
            for (int64_t k = 0; k < w.depth; k++) sum += load(p + k * stride + j) * x[k];
            n.put(y + whole + j, sum);
        });
    }
}

// sums (p, q) += aᵀ b, summed over `rows` rows. Whole vectors of b are read: its rows must be followed by memory.
template <class T>
void correlate(int64_t rows, int64_t p, int64_t q, const T *a, int64_t lda, const T *b, int64_t ldb, T *sums,
               int64_t lds) {
    const Sum<T> over{rows, ldb};
    for (int64_t j = 0; j < q; j += panel<T>)
        tiles<T, true>(p, q - j > lanes<T> ? 2 : 1, over, a, lda, b + j, sums + j, lds, q - j);
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
    if (!is_complex) {
        turn<T, true>(columns, rows, sums, rows, to, columns);
        return;
    }
    for (int64_t i = 0; i < rows; i += 2)
        for (int64_t k = 0; k < columns; k += 2, to += 2) {
            const T *re = sums + k * rows + i, *im = re + rows;  // im: the imaginary part of x
            to[0] += re[0] + im[1];
            to[1] += re[1] - im[0];
        }
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
