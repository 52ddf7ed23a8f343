// (W x)_i = Σ_j c_{i−j} x_j, indices around the end: the Fourier transform makes it a product of every number by itself,
// with the transform of c. Takes c (gates, size). A real row is transformed as a complex one.
#pragma once
#include "fourier.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Circulant : Term<T> {
    static constexpr const char *name = "circulant";
    static bool is_sound(const Operands &o, bool backward) {
        return o.count() == 1 && o.has(0, o.gates(), o.size()) && (!backward || o.have_gradients(1));
    }
    static Term<T> *make(const Operands &o) { return new (std::nothrow) Circulant(o); }

    int gates;
    int64_t n, width;
    bool is_complex;
    const T *given;
    T *target;
    Fourier<T> fourier;
    T *spectra = nullptr, *adjoint = nullptr, *spare = nullptr;  // (gates, n) pairs; of the adjoint: conjugated

    explicit Circulant(const Operands &o)
        : gates(o.gates()), n(o.size()), width(o.width()), is_complex(o.is_complex()), given(o.data<T>(0)),
          target(o.gradient<T>(0)), fourier(n) {}

    // Four arrays of a group of rows, and what the transform needs.
    template <int W> struct Arrays {
        T *at[4], *folded;
        Arrays(T *memory, int64_t n) : at{}, folded(memory + 8 * W * n) {
            for (int k = 0; k < 4; k++) at[k] = memory + 2 * W * n * k;
        }
    };
    int64_t buffers(int W) const { return 8 * W * n + fourier.scratch_size(W); }
    int64_t packed_size() const override { return fourier.size + 4 * gates * n + buffers(narrowest<T>); }
    int64_t scratch_size(int64_t) const override { return round_up(buffers(widest<T>), lanes<T>); }
    void pack(T *at, bool) override {
        constexpr int W = narrowest<T>;
        fourier.pack(at);
        spectra = at + fourier.size, adjoint = spectra + 2 * gates * n, spare = adjoint + 2 * gates * n;
        const Arrays<W> a(spare, n);
        for (int g = 0; g < gates; g++) {
            read<W>(1, given + g * width, width, a.at[0]);
            const T *found = fourier.template transform<W>(a.at[0], a.at[1], a.folded, false);
            for (int64_t j = 0; j < n; j++)
                for (int part = 0; part < 2; part++) {
                    const int64_t i = 2 * (g * n + j) + part;
                    spectra[i] = found[2 * W * j + part * W] / T(n);  // the inverse transform is times n
                    adjoint[i] = part ? -spectra[i] : spectra[i];
                }
        }
    }

    template <int W> void read(int count, const T *x, int64_t ldx, T *to) const {
        if (is_complex) {
            from_rows<T, W>(count, n, x, ldx, [&](int64_t j, int, Point<T, W> z) { z.put(to + 2 * W * j); });
            return;
        }
        memset(to, 0, sizeof(T) * size_t(2 * W * n));
        for (int r = 0; r < count; r++)
            for (int64_t j = 0; j < n; j++) to[2 * W * j + r] = x[r * ldx + j];
    }
    template <int W> void add(int count, const T *from, T *y, int64_t ldy) const {
        if (is_complex) {
            auto get = [&](int64_t j) { return Point<T, W>::get(from + 2 * W * j); };
            to_rows<T, W>(count, n, get, nullptr, 0, y, ldy);
            return;
        }
        for (int r = 0; r < count; r++)
            for (int64_t j = 0; j < n; j++) y[r * ldy + j] += from[2 * W * j + r];
    }
    template <int W> T *transformed(int count, const T *x, int64_t ldx, const Arrays<W> &a, int from) const {
        read<W>(count, x, ldx, a.at[from]);
        return fourier.template transform<W>(a.at[from], a.at[from + 1], a.folded, false);
    }

    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        T *memory = scratch.take(buffers(widest<T>));
        groups<T>(rows, [&](auto W, int64_t at, int count) {
            typedef Point<T, W> P;
            const Arrays<W> a(memory, n);
            const T *seen = transformed<W>(count, x + at * ldx, ldx, a, 0);
            for (int g = first; g < last; g++) {
                for (int64_t j = 0; j < n; j++)
                    P::get(seen + 2 * W * j).times(spectra + 2 * (g * n + j)).put(a.at[2] + 2 * W * j);
                const T *found = fourier.template transform<W>(a.at[2], a.at[3], a.folded, true);
                add<W>(count, found, y + at * ldy + (g - first) * width, ldy);
            }
        });
    }
    // The sum over the gates is taken before the way back.
    void rmatvec(Arena<T> scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *,
                 int64_t) const override {
        T *memory = scratch.take(buffers(widest<T>));
        groups<T>(rows, [&](auto W, int64_t at, int count) {
            typedef Point<T, W> P;
            const Arrays<W> a(memory, n);
            memset(a.at[0], 0, sizeof(T) * size_t(2 * W * n));
            for (int g = first; g < last; g++) {
                const T *seen = transformed<W>(count, y + at * ldy + (g - first) * width, ldy, a, 2);
                for (int64_t j = 0; j < n; j++) {
                    T *to = a.at[0] + 2 * W * j;
                    (P::get(to) + P::get(seen + 2 * W * j).times(adjoint + 2 * (g * n + j))).put(to);
                }
            }
            add<W>(count, fourier.template transform<W>(a.at[0], a.at[1], a.folded, true), x + at * ldx, ldx);
        });
    }

    // The transform of c's gradient is Σ F(y) conj(F(x)).
    int64_t gradient_size() const override { return 2 * gates * n; }
    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *, int64_t, T *sums) const override {
        T *memory = scratch.take(buffers(widest<T>));
        groups<T>(rows, [&](auto W, int64_t at, int count) {
            typedef Point<T, W> P;
            const Arrays<W> a(memory, n);
            const T *seen = transformed<W>(count, x + at * ldx, ldx, a, 0);
            for (int g = first; g < last; g++) {
                const T *back = transformed<W>(count, y + at * ldy + (g - first) * width, ldy, a, 2);
                for (int64_t j = 0; j < n; j++) {
                    const P u = P::get(seen + 2 * W * j), v = P::get(back + 2 * W * j);
                    const auto re = v.re * u.re + v.im * u.im, im = v.im * u.re - v.re * u.im;
                    for (int r = 0; r < count; r++) {
                        sums[2 * (g * n + j)] += re[r];
                        sums[2 * (g * n + j) + 1] += im[r];
                    }
                }
            }
        });
    }
    void deliver(const T *sums, int first, int last) const override {
        constexpr int W = narrowest<T>;
        const Arrays<W> a(spare, n);
        for (int g = first; g < last; g++) {
            memset(a.at[0], 0, sizeof(T) * size_t(2 * W * n));
            for (int64_t j = 0; j < n; j++)
                for (int part = 0; part < 2; part++)
                    a.at[0][2 * W * j + part * W] = sums[2 * (g * n + j) + part] / T(n);
            add<W>(1, fourier.template transform<W>(a.at[0], a.at[1], a.folded, true), target + g * width, width);
        }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
