// The discrete Fourier transform of a group of rows, X_k = Σ_j x_j e^{−2πi jk/n}, for any n: one pass from memory to
// memory for every factor of n, with results in order. Factors are 8, 4, 2 and odd primes p, which cost p² / 4 each.
#pragma once
#include "groups.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Fourier {
    struct Stage {
        int64_t radix, inner, outer;  // (outer, radix, inner) -> (radix, outer, inner) numbers
        int64_t twiddles, table;      // where they lie in the memory
    };
    int64_t n, size = 0, largest = 1;
    int count = 0;
    Stage stage[64];
    T *memory = nullptr;

    explicit Fourier(int64_t n) : n(n) {
        int64_t rest = n;
        while (rest % 8 == 0 && rest != 16) add(8, rest);
        while (rest % 4 == 0) add(4, rest);
        while (rest % 2 == 0) add(2, rest);
        for (int64_t p = 3; p * p <= rest; p += 2)
            while (rest % p == 0) add(p, rest);
        if (rest > 1) add(rest, rest);
    }
    void add(int64_t radix, int64_t &rest) {
        const int64_t half = radix / 2, inner = rest / radix;
        stage[count++] = {radix, inner, n / rest, size, size + 2 * inner * (radix - 1)};
        size += 2 * inner * (radix - 1) + (radix % 2 ? 2 * half * half : 0);
        largest = std::max(largest, radix);
        rest = inner;
    }
    void pack(T *at) {
        memory = at;
        const double turn = 6.283185307179586476925286766559;
        for (int k = 0; k < count; k++) {
            const Stage &s = stage[k];
            T *to = memory + s.twiddles;
            for (int64_t i = 0; i < s.inner; i++)
                for (int64_t j = 1; j < s.radix; j++, to += 2) {
                    const double angle = turn * double(i * j * s.outer % n) / double(n);
                    to[0] = T(std::cos(angle)), to[1] = T(-std::sin(angle));
                }
            if (s.radix % 2) fill_table(memory + s.table, s.radix, turn);
        }
    }
    // (cos, sin) of 2π jk/p for j, k = 1 … (p−1)/2; those of j > 1 stand already in the first row, up to a sign.
    static void fill_table(T *table, int64_t p, double turn) {
        const int64_t half = p / 2;
        for (int64_t k = 0; k < half; k++) {
            table[2 * k] = T(std::cos(turn * double(k + 1) / double(p)));
            table[2 * k + 1] = T(std::sin(turn * double(k + 1) / double(p)));
        }
        for (int64_t j = 1; j < half; j++)
            for (int64_t k = 0; k < half; k++) {
                const int64_t m = (j + 1) * (k + 1) % p, at = std::min(m, p - m) - 1;
                T *to = table + 2 * (j * half + k);
                to[0] = table[2 * at], to[1] = m > half ? -table[2 * at + 1] : table[2 * at + 1];
            }
    }

    // Numbers of T that a transform of a group of W rows needs beside its two arrays.
    int64_t scratch_size(int W) const { return 4 * W * (largest / 2); }

    // Transforms what is at x, with `other` as a second array; returns the one that holds the result. The inverse (times
    // n) is the same with real and imaginary parts exchanged.
    template <int W> T *transform(T *x, T *other, T *scratch, bool inverse) const {
        const int64_t real = inverse ? W : 0;
        for (int k = 0; k < count; k++) {
            const Stage &s = stage[k];
            switch (s.radix) {
                case 2: even<W, 2>(s, x, other, real); break;
                case 4: even<W, 4>(s, x, other, real); break;
                case 8: even<W, 8>(s, x, other, real); break;
                default: odd<W>(s, x, other, scratch, real);
            }
            std::swap(x, other);
        }
        return x;
    }

  private:
    template <int W, int R> void even(const Stage &s, const T *from, T *to, int64_t real) const {
        const int64_t step = s.inner * 2 * W;
        for (int64_t o = 0; o < s.outer; o++)
            for (int64_t i = 0; i < s.inner; i++) {
                const T *x = from + (o * R * s.inner + i) * 2 * W, *w = memory + s.twiddles + 2 * i * (R - 1);
                T *y = to + (o * s.inner + i) * 2 * W;
                Point<T, W> z[R];
                for (int j = 0; j < R; j++) z[j] = Point<T, W>::get(x + j * step, real);
                butterfly(z);
                z[0].put(y, real);
                for (int j = 1; j < R; j++) (i ? z[j].times(w + 2 * (j - 1)) : z[j]).put(y + j * s.outer * step, real);
            }
    }
    template <int W> static void butterfly(Point<T, W> (&z)[2]) {
        const Point<T, W> a = z[0];
        z[0] = a + z[1], z[1] = a - z[1];
    }
    template <int W> static void butterfly(Point<T, W> (&z)[4]) {
        const Point<T, W> a = z[0] + z[2], b = z[0] - z[2], c = z[1] + z[3], d = (z[1] - z[3]).turned();
        z[0] = a + c, z[1] = b + d, z[2] = a - c, z[3] = b - d;
    }
    template <int W> static void butterfly(Point<T, W> (&z)[8]) {
        const T root = T(0.70710678118654752440);
        Point<T, W> a[4] = {z[0], z[2], z[4], z[6]}, b[4] = {z[1], z[3], z[5], z[7]};
        butterfly(a), butterfly(b);
        b[1] = (b[1] + b[1].turned()) * root;
        b[2] = b[2].turned();
        b[3] = (b[3].turned() - b[3]) * root;
        for (int k = 0; k < 4; k++) z[k] = a[k] + b[k], z[k + 4] = a[k] - b[k];
    }

    // x_j and x_{p−j} meet the same cosine and opposite sines, so their sums and differences are taken first. What goes to
    // k and to p − k differs in a sign only.
    template <int W> void odd(const Stage &s, const T *from, T *to, T *folded, int64_t real) const {
        const int64_t p = s.radix, half = p / 2, step = s.inner * 2 * W;
        for (int64_t o = 0; o < s.outer; o++)
            for (int64_t i = 0; i < s.inner; i++) {
                const T *x = from + (o * p * s.inner + i) * 2 * W, *w = memory + s.twiddles + 2 * i * (p - 1);
                const Outputs y{to + (o * s.inner + i) * 2 * W, s.outer * step, real, p, i ? w : nullptr};
                const Point<T, W> first = Point<T, W>::get(x, real);
                Point<T, W> sum = first;
                for (int64_t j = 1; j <= half; j++) {
                    const Point<T, W> a = Point<T, W>::get(x + j * step, real),
                                      b = Point<T, W>::get(x + (p - j) * step, real);
                    sum = sum + (a + b);
                    (a + b).put(folded + (j - 1) * 4 * W);
                    (a - b).put(folded + (j - 1) * 4 * W + 2 * W);
                }
                y.template put<W>(0, sum);
                outputs<W, SLIMRNN_TILE_ROWS / 2>(1, half, first, folded, memory + s.table, y);
            }
    }
    struct Outputs {
        T *at;
        int64_t apart, real, p;
        const T *twiddles;  // or null: they are one
        template <int W> void put(int64_t k, Point<T, W> z) const {
            (k && twiddles ? z.times(twiddles + 2 * (k - 1)) : z).put(at + k * apart, real);
        }
    };
    // The outputs k … half, K at a time.
    template <int W, int K>
    static void outputs(int64_t k, int64_t half, Point<T, W> first, const T *folded, const T *table, const Outputs &y) {
        for (; k + K - 1 <= half; k += K) {
            Point<T, W> cosines[K], sines[K] = {};
            for (int m = 0; m < K; m++) cosines[m] = first;
            for (int64_t j = 0; j < half; j++) {
                const Point<T, W> sum = Point<T, W>::get(folded + j * 4 * W),
                                  difference = Point<T, W>::get(folded + j * 4 * W + 2 * W);
                const T *at = table + 2 * (j * half + k - 1);
                for (int m = 0; m < K; m++) {
                    cosines[m].re += sum.re * at[2 * m], cosines[m].im += sum.im * at[2 * m];
                    sines[m].re += difference.re * at[2 * m + 1], sines[m].im += difference.im * at[2 * m + 1];
                }
            }
            for (int m = 0; m < K; m++) {
                y.template put<W>(k + m, cosines[m] + sines[m].turned());
                y.template put<W>(y.p - k - m, cosines[m] - sines[m].turned());
            }
        }
        if constexpr (K > 1)
            if (k <= half) outputs<W, K - 1>(k, half, first, folded, table, y);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
