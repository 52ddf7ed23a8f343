// The structures of int8 layers. Block diagonal takes int8 weights (gates, blocks, m, m) or (gates, size, size) and their
// scales (gates, size); low rank L (gates, size, rank), scales (gates, size), R (gates, rank, size) or, tied, (rank, size)
// and scales (gates, rank) or (rank). Diagonals and permutations are those of float32.
#pragma once
#include "../structures/diagonal.h"
#include "../structures/permutation.h"
#include "matrix.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

// For inference alone.
struct Int8Term : Term<float> {
    void rmatvec(Arena<float>, int64_t, const float *, int64_t, float *, int64_t, int, int, float *,
                 int64_t) const override {}
    int64_t gradient_size() const override { return 0; }
    void gradient(Arena<float>, int64_t, const float *, int64_t, const float *, int64_t, int, int, const float *,
                  int64_t, float *) const override {}
    void deliver(const float *, int, int) const override {}
};

struct Int8Blocks : Int8Term {
    static constexpr const char *name = "block_diagonal";
    static int64_t blocks_of(const Operands &o) { return o.dims(0) == 4 ? o.extent(0, 1) : 1; }
    static bool is_sound(const Operands &o, bool) {
        const int64_t count = blocks_of(o);
        if (o.count() != 2 || count < 1 || o.size() % count) return false;
        const int64_t block = o.size() / count;
        return (o.has(0, o.gates(), o.size(), o.size()) || o.has(0, o.gates(), count, block, block)) &&
               o.has(1, o.gates(), o.size());
    }
    static Term<float> *make(const Operands &o) { return new (std::nothrow) Int8Blocks(o); }

    int gates;
    int64_t blocks, block;
    const int8_t *weight;
    const float *scale;
    float *memory = nullptr;

    explicit Int8Blocks(const Operands &o)
        : gates(o.gates()), blocks(blocks_of(o)), block(o.size() / blocks), weight(o.data<int8_t>(0)),
          scale(o.data<float>(1)) {}

    Int8Matrix matrix(int gate, int64_t b) const {
        Int8Matrix m{block, block, nullptr};
        m.memory = memory + (gate * blocks + b) * m.size();
        return m;
    }
    int64_t packed_size() const override { return gates * blocks * Int8Matrix{block, block, nullptr}.size(); }
    void pack(float *at, bool) override {
        memory = at;
        for (int g = 0; g < gates; g++)
            for (int64_t b = 0; b < blocks; b++)
                matrix(g, b).pack(weight + (g * blocks + b) * block * block, scale + (g * blocks + b) * block);
    }
    int64_t scratch_size(int64_t rows) const override { return Rounded::size(rows, block * blocks); }
    int64_t shared_weights() const override {
        return gates * blocks * block * block / 4;
    }  // they take as long as these
    void matvec(Arena<float> scratch, int64_t rows, const float *x, int64_t ldx, float *y, int64_t ldy, int first,
                int last) const override {
        const int64_t width = block * blocks, vectors = Int8Matrix{block, block, nullptr}.vectors();
        const Rounded rounded(scratch, rows, width);
        rounded.round(rows, x, ldx, width);
        in_pieces(scratch.crew, blocks * vectors, [&](int64_t from, int64_t to) {
            for (int64_t b = from / vectors; b * vectors < to; b++) {
                const Panels some{std::max(from - b * vectors, int64_t(0)), std::min(to - b * vectors, vectors)};
                for (int g = first; g < last; g++)
                    multiply(rows, matrix(g, b), some, rounded, b * block, y + (g - first) * width + b * block, ldy);
            }
        });
    }
};

struct Int8LowRank : Int8Term {
    static constexpr const char *name = "low_rank";
    static bool is_sound(const Operands &o, bool) {
        const int64_t rank = o.extent(0, 2);
        return o.count() == 4 && o.has(0, o.gates(), o.size(), rank) && o.has(1, o.gates(), o.size()) &&
               ((o.has(2, o.gates(), rank, o.size()) && o.has(3, o.gates(), rank)) ||
                (o.has(2, rank, o.size()) && o.has(3, rank)));
    }
    static Term<float> *make(const Operands &o) { return new (std::nothrow) Int8LowRank(o); }

    int gates;
    int64_t width, rank;
    bool tied;
    const int8_t *left, *right;
    const float *left_scale, *right_scale;
    float *memory = nullptr;

    explicit Int8LowRank(const Operands &o)
        : gates(o.gates()), width(o.size()), rank(o.extent(0, 2)), tied(o.dims(2) == 2), left(o.data<int8_t>(0)),
          right(o.data<int8_t>(2)), left_scale(o.data<float>(1)), right_scale(o.data<float>(3)) {}

    int downs() const { return tied ? 1 : gates; }
    Int8Matrix up(int gate) const {
        Int8Matrix m{width, rank, nullptr};
        m.memory = memory + gate * m.size();
        return m;
    }
    Int8Matrix down(int gate) const {
        Int8Matrix m{rank, width, nullptr};
        m.memory = memory + gates * up(0).size() + (tied ? 0 : gate) * m.size();
        return m;
    }
    int64_t packed_size() const override {
        return gates * Int8Matrix{width, rank, nullptr}.size() + downs() * Int8Matrix{rank, width, nullptr}.size();
    }
    void pack(float *at, bool) override {
        memory = at;
        for (int g = 0; g < gates; g++) up(g).pack(left + g * width * rank, left_scale + g * width);
        for (int g = 0; g < downs(); g++) down(g).pack(right + g * rank * width, right_scale + g * rank);
    }
    int64_t scratch_size(int64_t rows) const override {
        return Rounded::size(rows, width) + Rounded::size(rows, rank) + round_up(rows * rank, lanes<float>);
    }
    void matvec(Arena<float> scratch, int64_t rows, const float *x, int64_t ldx, float *y, int64_t ldy, int first,
                int last) const override {
        const Rounded wide(scratch, rows, width), narrow(scratch, rows, rank);
        float *const low = scratch.take(rows * rank);
        wide.round(rows, x, ldx, width);
        for (int g = first; g < last; g++) {
            if (!tied || g == first) {
                const Int8Matrix r = down(g);
                memset(low, 0, sizeof(float) * size_t(rows * rank));
                multiply(rows, r, Panels{0, r.vectors()}, wide, 0, low, rank);
                narrow.round(rows, low, rank, rank);
            }
            const Int8Matrix l = up(g);
            multiply(rows, l, Panels{0, l.vectors()}, narrow, 0, y + (g - first) * width, ldy);
        }
    }
};

struct Int8Structure {
    const char *name;
    bool (*is_sound)(const Operands &, bool backward);
    Term<float> *(*make)(const Operands &);
};
template <class S> constexpr Int8Structure describe_int8() { return {S::name, S::is_sound, S::make}; }
constexpr Int8Structure int8_structures[] = {describe_int8<Int8Blocks>(), describe_int8<Int8LowRank>(),
                                             describe_int8<Diagonal<float>>(), describe_int8<Permutation<float>>()};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
