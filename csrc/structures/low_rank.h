// W_g = L_g R_g: down to `rank` numbers and up again.
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct LowRank : Term<T> {
    int gates;
    int64_t width, rank;  // real numbers
    bool is_complex, tied;
    const T *left, *right;
    T *const *target;
    T *memory = nullptr;

    explicit LowRank(const slimrnn_term &t)
        : gates(t.gates), width(int64_t(t.size) * (t.is_complex ? 2 : 1)),
          rank(int64_t(t.count) * (t.is_complex ? 2 : 1)), is_complex(t.is_complex), tied(t.shared),
          left(static_cast<const T *>(t.data[0])), right(static_cast<const T *>(t.data[1])),
          target(reinterpret_cast<T *const *>(t.gradient)) {}

    // down, up: the way there; up_back, down_back: the way back
    enum Way { DOWN, UP, UP_BACK, DOWN_BACK };
    Packed<T> piece(Way way, int gate) const {
        Packed<T> wide{width, rank, nullptr}, narrow{rank, width, nullptr};
        Packed<T> p = way == DOWN || way == UP_BACK ? wide : narrow;
        int64_t at = way >= UP ? gates * wide.size() : 0;
        if (way >= UP_BACK) at += gates * narrow.size();
        if (way == DOWN_BACK) at += gates * wide.size();
        p.data = memory + at + gate * p.size();
        return p;
    }
    int64_t packed_size() const override {
        Packed<T> wide{width, rank, nullptr}, narrow{rank, width, nullptr};
        return 2 * gates * (wide.size() + narrow.size());
    }
    void pack(T *at, bool backward) override {
        memory = at;
        int64_t n = is_complex ? width / 2 : width, r = is_complex ? rank / 2 : rank;
        for (int g = 0; g < gates; g++) {
            int64_t step = n * r * (is_complex ? 2 : 1);
            Matrix<T> up{left + g * step, r, is_complex}, down{right + (tied ? 0 : g) * step, n, is_complex};
            if (!backward) piece(UP, g).pack([&](int64_t k, int64_t j) { return up(j, k); });
            if (backward) piece(UP_BACK, g).pack([&](int64_t k, int64_t j) { return up(k, j); });
            if (tied && g) continue;
            piece(DOWN, g).pack([&](int64_t k, int64_t j) { return down(j, k); });
            if (backward) piece(DOWN_BACK, g).pack([&](int64_t k, int64_t j) { return down(k, j); });
        }
    }
    int64_t scratch_size(int64_t rows) const override {
        return rows * round_up(rank, panel<T>) + panel<T>;
    }

    void matvec(T *scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        for (int g = first; g < last; g++) {
            if (!tied || g == first) {
                memset(scratch, 0, sizeof(T) * rows * rank);
                multiply(rows, x, ldx, piece(DOWN, tied ? 0 : g), scratch, rank);
            }
            multiply(rows, scratch, rank, piece(UP, g), y + (g - first) * width, ldy);
        }
    }
    void rmatvec(T *, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *kept,
                 int64_t ldk) const override {
        for (int g = first; g < last; g++) {
            T *back = kept + (tied ? first : g) * rank;
            if (!tied || g == first)
                for (int64_t r = 0; r < rows; r++) memset(back + r * ldk, 0, sizeof(T) * rank);
            multiply(rows, y + (g - first) * width, ldy, piece(UP_BACK, g), back, ldk);
            if (!tied || g == last - 1) multiply(rows, back, ldk, piece(DOWN_BACK, tied ? 0 : g), x, ldx);
        }
    }
    int64_t kept_size() const override { return rank; }  // L_g^H y_g, or where R is shared, their sum

    // dL_g = y_g (R_g x)^H and dR_g = (L_g^H y_g) x^H; tied: the sum over g of the latter
    int64_t gradient_size() const override { return 2 * gates * rank * width; }
    void gradient(T *scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last, const T *kept, int64_t ldk, T *sums) const override {
        const int64_t narrow = round_up(rank, panel<T>), size = rank * width;
        T *down = scratch;
        for (int g = first; g < last; g++) {
            const T *d = y + (g - first) * width;
            if (!tied || g == first) {
                memset(down, 0, sizeof(T) * rows * narrow);
                multiply(rows, x, ldx, piece(DOWN, tied ? 0 : g), down, narrow);
            }
            correlate(rows, rank, width, down, narrow, d, ldy, sums + g * size, width);  // L's transposed: no column idle
            if (!tied || g == last - 1)
                correlate(rows, rank, width, kept + (tied ? first : g) * rank, ldk, x, ldx,
                          sums + (gates + (tied ? 0 : g)) * size, width);
        }
    }
    void deliver(const T *sums, int first, int last) const override {
        const int64_t size = rank * width, step = is_complex ? size / 2 : size;
        for (int g = first; g < last; g++) {
            add_transposed(sums + g * size, rank, width, is_complex, target[0] + g * step);
            if (!tied) add_gradient(sums + (gates + g) * size, rank, width, is_complex, target[1] + g * step);
        }
        if (tied) add_gradient(sums + gates * size, rank, width, is_complex, target[1]);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
