// Several rows side by side: element j of a group of W rows is two vectors of W lanes, all real parts, then all imaginary
// parts. Every operation is then a plain one on vectors, and a row's results do not depend on which rows stand beside it.
#pragma once
#include "term.h"

#include <type_traits>

namespace slimrnn {
namespace SLIMRNN_ISA {

// A complex number for every row of a group.
template <class T, int W> struct Point {
    typedef typename GroupTypes<T, W>::V V;
    V re, im;

    static Point get(const T *p, int64_t real = 0) {  // real = W: the parts change places
        Point z;
        memcpy(&z.re, p + real, sizeof(V));
        memcpy(&z.im, p + W - real, sizeof(V));
        return z;
    }
    void put(T *p, int64_t real = 0) const {
        memcpy(p + real, &re, sizeof(V));
        memcpy(p + W - real, &im, sizeof(V));
    }
    Point operator+(Point z) const { return {re + z.re, im + z.im}; }
    Point operator-(Point z) const { return {re - z.re, im - z.im}; }
    Point operator*(T a) const { return {re * a, im * a}; }
    Point times(const T *w) const { return {re * w[0] - im * w[1], re * w[1] + im * w[0]}; }
    Point turned() const { return {im, -re}; }  // times −i
};

// Σ w_j z_j in two halves, for even and odd j, each of four sums that wait for nothing but themselves.
template <class T, int W> struct Dot {
    typedef typename GroupTypes<T, W>::V V;
    V sum[2][4] = {};
    void add(int half, const T *w, Point<T, W> z) {
        sum[half][0] += z.re * w[0];
        sum[half][1] += z.im * w[1];
        sum[half][2] += z.re * w[1];
        sum[half][3] += z.im * w[0];
    }
    Point<T, W> total() const {
        return {(sum[0][0] + sum[1][0]) - (sum[0][1] + sum[1][1]), (sum[0][2] + sum[1][2]) + (sum[0][3] + sum[1][3])};
    }
};

// Calls take(j, half, z) for every element j of `count` rows of n pairs; lanes without a row are zero.
template <class T, int W, class Take>
inline void from_rows(int count, int64_t n, const T *x, int64_t ldx, Take take) {
    typename GroupTypes<T, W>::V v[W] = {};
    int64_t j = 0;
    for (; j + W / 2 <= n; j += W / 2) {
        for (int r = 0; r < count; r++) memcpy(&v[r], x + r * ldx + 2 * j, sizeof v[r]);
        for (int r = count; r < W; r++) v[r] = Point<T, W>{}.re;
        transpose<T, W>(v);
        for (int e = 0; e < W / 2; e++) take(j + e, W > 2 ? e % 2 : int(j % 2), Point<T, W>{v[2 * e], v[2 * e + 1]});
    }
    for (; j < n; j++) {
        T z[2 * W] = {};
        for (int r = 0; r < count; r++) z[r] = x[r * ldx + 2 * j], z[W + r] = x[r * ldx + 2 * j + 1];
        take(j, int(j % 2), Point<T, W>::get(z));
    }
}
// The way back: row r of the elements get(j) is written to `copy` and added to y, where they are.
template <class T, int W, class Get>
inline void to_rows(int count, int64_t n, Get get, T *copy, int64_t ldc, T *y, int64_t ldy) {
    typedef typename GroupTypes<T, W>::V V;
    int64_t j = 0;
    for (; j + W / 2 <= n; j += W / 2) {
        V v[W];
        for (int e = 0; e < W / 2; e++) {
            const Point<T, W> z = get(j + e);
            v[2 * e] = z.re, v[2 * e + 1] = z.im;
        }
        transpose<T, W>(v);
        for (int r = 0; copy && r < count; r++) memcpy(copy + r * ldc + 2 * j, &v[r], sizeof(V));
        for (int r = 0; y && r < count; r++) {
            V sum;
            memcpy(&sum, y + r * ldy + 2 * j, sizeof(V));
            sum += v[r];
            memcpy(y + r * ldy + 2 * j, &sum, sizeof(V));
        }
    }
    for (; j < n; j++) {
        T z[2 * W];
        get(j).put(z);
        for (int r = 0; r < count; r++)
            for (int part = 0; part < 2; part++) {
                if (copy) copy[r * ldc + 2 * j + part] = z[part * W + r];
                if (y) y[r * ldy + 2 * j + part] += z[part * W + r];
            }
    }
}

// Calls f(width, first, count) for the rows in groups, the last of them narrow where that is enough.
template <class T, class F> inline void groups(int64_t rows, F f) {
    for (int64_t first = 0; first < rows; first += widest<T>) {
        const int count = int(std::min<int64_t>(widest<T>, rows - first));
        if (count > narrowest<T>)
            f(std::integral_constant<int, widest<T>>{}, first, count);
        else
            f(std::integral_constant<int, narrowest<T>>{}, first, count);
    }
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
