// W_g = L_g R_g: down to `rank` numbers and up again. Takes L (gates, size, rank) and R (gates, rank, size), or, tied, R
// (rank, size), which all gates share.
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct LowRank : Term<T> {
    static constexpr const char *name = "low_rank";
    static bool is_sound(const Operands &o, bool backward) {
        const int64_t rank = o.extent(0, 2);
        return o.count() == 2 && o.has(0, o.gates(), o.size(), rank) &&
               (o.has(1, o.gates(), rank, o.size()) || o.has(1, rank, o.size())) && (!backward || o.have_gradients(2));
    }
    static Term<T> *make(const Operands &o) { return new (std::nothrow) LowRank(o); }

    int gates;
    int64_t width, rank;  // real numbers
    bool is_complex, tied;
    const T *left, *right;
    T *d_left, *d_right;
    // Two gates go down in one product, since both see the same x (a GRU's come as two and one); all gates come back in
    // one, since they are added up.
    Packed<T> down[SLIMRNN_MOST_GATES], up[SLIMRNN_MOST_GATES], up_back[SLIMRNN_MOST_GATES], down_back;
    int64_t size;

    explicit LowRank(const Operands &o)
        : gates(o.gates()), width(o.width()), rank(o.extent(0, 2) * (o.is_complex() ? 2 : 1)),
          is_complex(o.is_complex()), tied(o.dims(1) == 2), left(o.data<T>(0)), right(o.data<T>(1)),
          d_left(o.gradient<T>(0)), d_right(o.gradient<T>(1)) {
        size = lay_out(nullptr);
    }
    int together(int gate) const { return !tied && gate + 1 < gates ? 2 : 1; }  // from an even gate on
    int64_t lay_out(T *memory) {
        int64_t used = 0;
        auto place = [&](int64_t depth, int64_t columns) {
            Packed<T> p{depth, columns, memory ? memory + used : nullptr};
            used += p.size();
            return p;
        };
        for (int g = 0; g < (tied ? 1 : gates); g += together(g)) down[g] = place(width, together(g) * rank);
        for (int g = 0; g < gates; g++) up[g] = place(rank, width), up_back[g] = place(width, rank);
        down_back = place((tied ? 1 : gates) * rank, width);
        return used;
    }
    int64_t packed_size() const override { return size; }

    Matrix<T> left_of(int gate) const { return {left + gate * numbers(), columns(rank), is_complex}; }
    Matrix<T> right_of(int gate) const { return {right + gate * numbers(), columns(width), is_complex}; }
    int64_t columns(int64_t real) const { return is_complex ? real / 2 : real; }
    int64_t numbers() const { return columns(width) * rank; }
    void pack(T *memory, bool backward) override {
        lay_out(memory);
        if (!is_complex) {
            pack_real(backward);
            return;
        }
        for (int g = 0; g < gates; g++) {
            const Matrix<T> l = left_of(g);
            if (backward)
                up_back[g].pack([&](int64_t k, int64_t j) { return l(k, j); });
            else
                up[g].pack([&](int64_t k, int64_t j) { return l(j, k); });
        }
        for (int g = 0; g < (tied ? 1 : gates); g += together(g))
            down[g].pack([&](int64_t k, int64_t j) { return right_of(g + int(j / rank))(j % rank, k); });
        if (backward) down_back.pack([&](int64_t k, int64_t j) { return right_of(int(k / rank))(k % rank, j); });
    }
    void pack_real(bool backward) {
        for (int g = 0; g < gates; g++)
            if (backward)
                up_back[g].pack_rows(0, width, left_of(g).data);
            else
                up[g].pack_turned(left_of(g).data);
        for (int g = 0; g < (tied ? 1 : gates); g += together(g)) down[g].pack_turned(right_of(g).data);
        if (backward) down_back.pack_rows(0, down_back.depth, right);
    }
    int64_t scratch_size(int64_t rows) const override { return round_up(rows * 2 * rank, lanes<T>) + panel<T>; }
    T *low_numbers(Arena<T> &scratch, int64_t rows) const { return scratch.take(rows * 2 * rank + panel<T>); }

    // R x of the gates g, … that go down together, each next to the other
    void go_down(T *low, int64_t rows, const T *x, int64_t ldx, int g) const {
        memset(low, 0, sizeof(T) * rows * down[g].columns);
        multiply(rows, x, ldx, down[g], low, down[g].columns);
    }
    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        T *low = low_numbers(scratch, rows);
        for (int g = first; g < last; g++) {
            const int leader = tied ? 0 : g / 2 * 2;
            if (g == first || (!tied && g == leader)) go_down(low, rows, x, ldx, leader);
            multiply(rows, low + (tied ? 0 : g - leader) * rank, down[leader].columns, up[g], y + (g - first) * width,
                     ldy);
        }
    }
    void rmatvec(Arena<T>, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *kept,
                 int64_t ldk) const override {
        for (int64_t r = 0; r < rows; r++) memset(kept + r * ldk + first * rank, 0, sizeof(T) * (last - first) * rank);
        for (int g = first; g < last; g++)
            multiply(rows, y + (g - first) * width, ldy, up_back[g], kept + (tied ? first : g) * rank, ldk);
        const Sum<T> all{(tied ? 1 : last - first) * rank, 0};
        multiply(rows, all, kept + first * rank, ldk, down_back, tied ? 0 : first * rank, Panels{0, down_back.panels()},
                 x, ldx);
    }
    int64_t kept_size() const override { return rank; }  // L_g^H y_g, or where R is shared, their sum

    // dL_g = y_g (R_g x)^H and dR_g = (L_g^H y_g) x^H; tied: the sum over g of the latter
    int64_t gradient_size() const override { return 2 * gates * rank * width; }
    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *kept, int64_t ldk, T *sums) const override {
        const int64_t each = rank * width;
        T *low = low_numbers(scratch, rows);
        for (int g = first; g < last; g++) {
            const int leader = tied ? 0 : g / 2 * 2;
            if (g == first || (!tied && g == leader)) go_down(low, rows, x, ldx, leader);
            correlate(rows, rank, width, low + (tied ? 0 : g - leader) * rank, down[leader].columns,
                      y + (g - first) * width, ldy, sums + g * each, width);  // L's transposed: no column idle
            if (!tied || g == first)
                correlate(rows, rank, width, kept + g * rank, ldk, x, ldx, sums + (gates + (tied ? 0 : g)) * each,
                          width);
        }
    }
    void deliver(const T *sums, int first, int last) const override {
        const int64_t each = rank * width;
        for (int g = first; g < last; g++) {
            add_transposed(sums + g * each, rank, width, is_complex, d_left + g * numbers());
            if (!tied) add_gradient(sums + (gates + g) * each, rank, width, is_complex, d_right + g * numbers());
        }
        if (tied) add_gradient(sums + gates * each, rank, width, is_complex, d_right);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
