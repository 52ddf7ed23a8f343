// Blocks on the diagonal. Takes a tensor (gates, blocks, size/blocks, size/blocks), or (gates, size, size): one block.
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct BlockDiagonal : Term<T> {
    static constexpr const char *name = "block_diagonal";
    static bool is_sound(const Operands &o, bool backward) {
        const int64_t count = blocks_of(o);
        if (o.count() != 1 || count < 1 || o.size() % count || (backward && !o.have_gradients(1))) return false;
        const int64_t block = o.size() / count;
        return o.has(0, o.gates(), o.size(), o.size()) || o.has(0, o.gates(), count, block, block);
    }
    static Term<T> *make(const Operands &o) { return new (std::nothrow) BlockDiagonal(o); }
    static int64_t blocks_of(const Operands &o) { return o.dims(0) == 4 ? o.extent(0, 1) : 1; }

    int gates, blocks;
    int64_t block;  // real numbers per block
    bool is_complex;
    const T *weight;
    T *target;
    T *memory = nullptr;

    explicit BlockDiagonal(const Operands &o)
        : gates(o.gates()), blocks(int(blocks_of(o))), block(o.width() / blocks), is_complex(o.is_complex()),
          weight(o.data<T>(0)), target(o.gradient<T>(0)) {}

    // Blocks no wider than a vector: two gates share a panel, since they see the same x.
    bool narrow() const { return block <= lanes<T>; }
    bool paired(int gate) const { return narrow() && (gate ^ 1) < gates; }  // an even gate with the next
    Packed<T> forth(int gate,
                    int b) const {  // x -> y of one gate, or of an even gate and the next where they are paired
        const int64_t one = Packed<T>{block, block, nullptr}.size();
        Packed<T> p{block, paired(gate) ? panel<T> : block, nullptr};
        p.data = memory + (int64_t(b) * gates + gate) * one;
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
        for (int b = 0; b < blocks; b++)
            for (int g = 0; g < gates; g += !backward && paired(g) ? 2 : 1)
                if (backward)
                    pack_back(g, b);
                else
                    pack_forth(g, b);
    }
    void pack_forth(int g, int b) const {
        if (!is_complex && !paired(g)) {
            forth(g, b).pack_turned(matrix(g, b).data);
            return;
        }
        forth(g, b).pack([&](int64_t k, int64_t j) {
            const int64_t column = paired(g) ? j % lanes<T> : j;
            return column < block ? matrix(g + (column < j), b)(column, k) : T(0);
        });
    }
    void pack_back(int g, int b) const {
        if (!is_complex)
            back(b).pack_rows(g * block, block, matrix(g, b).data);
        else if (g == 0)
            back(b).pack([&](int64_t k, int64_t j) { return matrix(int(k / block), b)(k % block, j); });
    }
    int64_t scratch_size(int64_t) const override { return 0; }
    int64_t shared_weights() const override { return gates * blocks * block * block; }

    // work(b, panels) for all panels of all blocks; they are as many in the product of a gate as in the adjoint of all.
    template <class Work> void each_block(Crew *crew, const Work &work) const {
        const int64_t count = Packed<T>{block, block, nullptr}.panels();
        in_pieces(crew, blocks * count, [&](int64_t from, int64_t to) {
            for (int64_t b = from / count; b * count < to; b++)
                work(int(b), Panels{std::max(from - b * count, int64_t(0)), std::min(to - b * count, count)});
        });
    }
    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        const int64_t width = block * blocks;
        each_block(scratch.crew, [&](int b, Panels some) {
            for (int g = first, taken; g < last; g += taken) {
                T *to = y + (g - first) * width + b * block;
                taken = paired(g) && g % 2 == 0 && g + 1 < last ? 2 : 1;  // the range may split a pair
                if (paired(g))
                    tiles<T, false>(rows, taken, Sum<T>{block, panel<T>, 1, 0, width, 0}, x + b * block, ldx,
                                    forth(g / 2 * 2, b).data + g % 2 * lanes<T>, to, ldy, block);
                else
                    multiply(rows, x + b * block, ldx, forth(g, b), some, to, ldy);
            }
        });
    }
    // A sum over the gates, which lie a width apart.
    void rmatvec(Arena<T> scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *,
                 int64_t) const override {
        const Sum<T> over{block, 0, last - first, block * blocks};
        each_block(scratch.crew, [&](int b, Panels some) {
            multiply(rows, over, y + b * block, ldy, back(b), first * block, some, x + b * block, ldx);
        });
    }

    int64_t gradient_size() const override { return gates * blocks * block * block; }
    // Rows of the matrices' gradients are shared out. Those of a block are summed for all gates in turn, while its x is
    // at hand.
    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *, int64_t, T *sums) const override {
        const int64_t per_block = (last - first) * block;
        in_pieces(scratch.crew, blocks * per_block, [&](int64_t from, int64_t to) {
            for (int64_t b = from / per_block; b * per_block < to; b++)
                for (int g = first; g < last; g++) {
                    const int64_t at = b * per_block + (g - first) * block;
                    const int64_t skip = std::max(from - at, int64_t(0)), until = std::min(to - at, block);
                    if (skip >= until) continue;
                    correlate(rows, until - skip, block, y + ((g - first) * blocks + b) * block + skip, ldy,
                              x + b * block, ldx, sums + ((int64_t(g) * blocks + b) * block + skip) * block, block);
                }
        });
    }
    void deliver(const T *sums, int first, int last) const override {
        const int64_t size = block * block;
        for (int64_t i = int64_t(first) * blocks; i < int64_t(last) * blocks; i++)
            add_gradient(sums + i * size, block, block, is_complex, target + i * (is_complex ? size / 2 : size));
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
