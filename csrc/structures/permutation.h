// The units change places: (W x)_i = x_{o_i}, the same for every gate. Takes o, int64 (size).
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

// Whether each of the numbers from 0 on is there once.
inline bool is_permutation(const int64_t *order, int64_t size) {
    char *seen = new (std::nothrow) char[size_t(size)]();
    bool sound = seen;
    for (int64_t j = 0; j < size && sound; j++) {
        sound = order[j] >= 0 && order[j] < size && !seen[order[j]];
        if (sound) seen[order[j]] = 1;
    }
    delete[] seen;
    return sound;
}

template <class T> struct Permutation : Term<T> {
    static constexpr const char *name = "permutation";
    static bool is_sound(const Operands &o, bool) {
        return o.count() == 1 && o.has(0, o.size()) && is_permutation(o.data<int64_t>(0), o.size());
    }
    static Term<T> *make(const Operands &o) { return new (std::nothrow) Permutation(o); }

    int64_t width, parts;  // parts: real numbers of a unit
    const int64_t *given;
    int32_t *order = nullptr;  // where every real number comes from

    explicit Permutation(const Operands &o)
        : width(o.width()), parts(o.is_complex() ? 2 : 1), given(o.data<int64_t>(0)) {}

    int64_t packed_size() const override { return width; }
    void pack(T *at, bool) override {
        order = reinterpret_cast<int32_t *>(at);
        for (int64_t i = 0; i < width; i++) order[i] = int32_t(given[i / parts] * parts + i % parts);
    }
    int64_t scratch_size(int64_t) const override { return 0; }

    void matvec(Arena<T>, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        for (int64_t r = 0; r < rows; r++)
            for (int g = first; g < last; g++) {
                const T *from = x + r * ldx;
                T *to = y + r * ldy + (g - first) * width;
                for (int64_t i = 0; i < width; i++) to[i] += from[order[i]];
            }
    }
    void rmatvec(Arena<T>, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *,
                 int64_t) const override {
        for (int64_t r = 0; r < rows; r++)
            for (int g = first; g < last; g++) {
                const T *from = y + r * ldy + (g - first) * width;
                T *to = x + r * ldx;
                for (int64_t i = 0; i < width; i++) to[order[i]] += from[i];
            }
    }
    int64_t gradient_size() const override { return 0; }
    void gradient(Arena<T>, int64_t, const T *, int64_t, const T *, int64_t, int, int, const T *, int64_t,
                  T *) const override {}
    void deliver(const T *, int, int) const override {}
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
