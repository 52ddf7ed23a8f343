// A diagonal: every unit by itself. Takes a tensor (gates, size).
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Diagonal : Term<T> {
    static constexpr const char *name = "diagonal";
    static bool is_sound(const Operands &o, bool backward) {
        return o.count() == 1 && o.has(0, o.gates(), o.size()) && (!backward || o.have_gradients(1));
    }
    static Term<T> *make(const Operands &o) { return new (std::nothrow) Diagonal(o); }

    int gates;
    int64_t width;
    bool is_complex;
    const T *diagonal;
    T *target;

    explicit Diagonal(const Operands &o)
        : gates(o.gates()), width(o.width()), is_complex(o.is_complex()), diagonal(o.data<T>(0)),
          target(o.gradient<T>(0)) {}

    // Complex: d x = (a, a) x + (−b, b) swapped x, so each gate has two rows of factors.
    T *memory = nullptr;
    int64_t packed_size() const override { return 2 * gates * width; }
    void pack(T *at, bool) override {
        memory = at;
        for (int64_t i = 0; i < gates * width; i++) {
            int64_t g = i / width, j = i % width;
            T *same = at + 2 * g * width + j;
            same[0] = is_complex ? diagonal[i - j % 2] : diagonal[i];
            same[width] = !is_complex ? T(0) : j % 2 ? diagonal[i] : -diagonal[i + 1];
        }
    }
    int64_t scratch_size(int64_t) const override { return 0; }

    template <bool ADJOINT> void apply(int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, const T *d) const {
        for (int64_t r = 0; r < rows; r++)
            each_vector<T>(width, [&](int64_t i, auto n) {
                Vec<T> v = n.get(x + r * ldx + i), sum = n.get(y + r * ldy + i) + n.get(d + i) * v;
                if (is_complex) {
                    Vec<T> cross = n.get(d + width + i) * swap_pairs<T>(v);
                    sum = ADJOINT ? sum - cross : sum + cross;
                }
                n.put(y + r * ldy + i, sum);
            });
    }
    void matvec(Arena<T>, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        for (int g = first; g < last; g++)
            apply<false>(rows, x, ldx, y + (g - first) * width, ldy, memory + 2 * g * width);
    }
    void rmatvec(Arena<T>, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *,
                 int64_t) const override {
        for (int g = first; g < last; g++)
            apply<true>(rows, y + (g - first) * width, ldy, x, ldx, memory + 2 * g * width);
    }

    // y conj(x): lanes hold y x, and y times swapped x
    int64_t gradient_size() const override { return 2 * gates * width; }
    void gradient(Arena<T>, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *, int64_t, T *sums) const override {
        for (int64_t r = 0; r < rows; r++)
            for (int g = first; g < last; g++) {
                const T *row = y + r * ldy + (g - first) * width;
                T *same = sums + 2 * g * width;
                each_vector<T>(width, [&](int64_t i, auto n) {
                    Vec<T> a = n.get(row + i), v = n.get(x + r * ldx + i);
                    n.put(same + i, n.get(same + i) + a * v);
                    if (is_complex) n.put(same + width + i, n.get(same + width + i) + a * swap_pairs<T>(v));
                });
            }
    }
    void deliver(const T *sums, int first, int last) const override {
        for (int g = first; g < last; g++) {
            const T *same = sums + 2 * g * width, *cross = same + width;
            T *to = target + g * width;
            if (!is_complex)
                for (int64_t i = 0; i < width; i++) to[i] += same[i];
            else
                for (int64_t i = 0; i < width; i += 2) {
                    to[i] += same[i] + same[i + 1];        // Re: yr xr + yi xi
                    to[i + 1] += cross[i + 1] - cross[i];  // Im: yi xr − yr xi
                }
        }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
