// Blocks on the diagonal; one block is the dense matrix.
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct BlockDiagonal : Term<T> {
    int gates, blocks;
    int64_t block;  // real numbers per block
    bool is_complex;
    const T *weight;
    T *const *target;
    T *memory = nullptr;

    explicit BlockDiagonal(const slimrnn_term &t)
        : gates(t.gates), blocks(t.count), block(int64_t(t.size) / t.count * (t.is_complex ? 2 : 1)),
          is_complex(t.is_complex), weight(static_cast<const T *>(t.data[0])),
          target(reinterpret_cast<T *const *>(t.gradient)) {}

    Packed<T> forth(int gate, int b) const {  // x -> y of one gate
        Packed<T> p{block, block, nullptr};
        p.data = memory + (int64_t(gate) * blocks + b) * p.size();
        return p;
    }
    Packed<T> back(int b) const {  // y of all gates -> x
        Packed<T> p{gates * block, block, nullptr}, f{block, block, nullptr};
        p.data = memory + int64_t(gates) * blocks * f.size() + b * p.size();
        return p;
    }
    int64_t packed_size() const override {
        Packed<T> f{block, block, nullptr}, r{gates * block, block, nullptr};
        return blocks * (gates * f.size() + r.size());
    }
    Matrix<T> matrix(int gate, int b) const {
        int64_t n = is_complex ? block / 2 : block;
        return {weight + (int64_t(gate) * blocks + b) * n * n * (is_complex ? 2 : 1), n, is_complex};
    }
    void pack(T *at, bool backward) override {
        memory = at;
        for (int b = 0; b < blocks; b++) {
            for (int g = 0; g < gates && !backward; g++) {
                Matrix<T> w = matrix(g, b);
                forth(g, b).pack([&](int64_t k, int64_t j) { return w(j, k); });
            }
            if (backward) back(b).pack([&](int64_t k, int64_t j) { return matrix(int(k / block), b)(k % block, j); });
        }
    }
    int64_t scratch_size(int64_t rows) const override { return blocks > 1 ? rows * gates * block : 0; }

    void matvec(T *, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first, int last) const override {
        const int64_t width = block * blocks;
        for (int b = 0; b < blocks; b++)
            for (int g = first; g < last; g++)
                multiply(rows, x + b * block, ldx, forth(g, b), y + (g - first) * width + b * block, ldy);
    }
    // A block's gates lie apart: they are gathered in `scratch`.
    void rmatvec(T *scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first,
                 int last) const override {
        const int64_t depth = (last - first) * block, width = block * blocks;
        for (int b = 0; b < blocks; b++) {
            const T *from = y;
            int64_t ld = ldy;
            if (blocks > 1) {
                for (int64_t r = 0; r < rows; r++)
                    for (int g = 0; g < last - first; g++)
                        memcpy(scratch + r * depth + g * block, y + r * ldy + g * width + b * block,
                               sizeof(T) * block);
                from = scratch;
                ld = depth;
            }
            multiply(rows, from, ld, back(b), first * block, depth, x + b * block, ldx);
        }
    }

    int64_t gradient_size() const override { return gates * blocks * block * block; }
    void gradient(T *, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  T *sums) const override {
        for (int b = 0; b < blocks; b++)
            for (int g = first; g < last; g++)
                correlate(rows, block, block, y + ((g - first) * blocks + b) * block, ldy, x + b * block, ldx,
                          sums + (int64_t(g) * blocks + b) * block * block, block);
    }
    void deliver(const T *sums, int first, int last) const override {
        const int64_t size = block * block;
        for (int64_t i = int64_t(first) * blocks; i < int64_t(last) * blocks; i++)
            add_gradient(sums + i * size, block, block, is_complex, target[0] + i * (is_complex ? size / 2 : size));
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
