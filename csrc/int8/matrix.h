// Matrices in int8 and their products. A row of weights is q s with one scale s; a vector v is rounded with the scale
// max|v| / 127, each time anew, so that it cannot saturate:
//     y = start + float(Σ q_w q_v) · (s_w · s_v)
// in exactly these operations, whose bits are those of src/slimrnn/exporting/int8/rows.py.
#pragma once
#include "../arena.h"
#include "../processor.h"
#include "dot.h"

#include <cstdlib>

namespace slimrnn {
namespace SLIMRNN_ISA {

#if defined(__AVX512F__)
inline bool has_vnni() {
    static const bool found = processor_has_vnni() && !getenv("SLIMRNN_NO_VNNI");  // for tests of the other way
    return found;
}
#endif
inline int bits_to_flip() {
#if defined(__AVX512F__)
    if (has_vnni()) return VnniDot::flip;
#endif
    return Dot::flip;
}

// Vectors in int8.
struct Rounded {
    uint8_t *q;
    int64_t apart;  // bytes from a vector to the next: some follow the last, since four are read at a time
    float *scale;

    static int64_t distance(int64_t length) { return round_up(length, 16) + 16; }
    static int64_t size(int64_t count, int64_t length) {  // numbers of an arena
        return round_up(count * distance(length) / 4, lanes<float>) + round_up(count, lanes<float>);
    }
    Rounded(Arena<float> &memory, int64_t count, int64_t length)
        : q(reinterpret_cast<uint8_t *>(memory.take(count * distance(length) / 4))), apart(distance(length)),
          scale(memory.take(count)) {}

    void round(int64_t count, const float *x, int64_t ldx, int64_t length) const {
        for (int64_t r = 0; r < count; r++) round_one(q + r * apart, scale[r], x + r * ldx, length);
    }

  private:
    static constexpr float least = 0x1p-100f;  // of max|v|: below it, v counts as zero

    static float largest(const float *v, int64_t length) {  // by its bits: NaN is above infinity
        Int<float> most{};
        each_vector<float>(length, [&](int64_t j, auto n) {
            const Int<float> size = (Int<float>)n.get(v + j) & 0x7fffffff;
            most = size > most ? size : most;
        });
        int32_t found = 0;
        for (int j = 0; j < lanes<float>; j++) found = std::max(found, int32_t(most[j]));
        float value;
        memcpy(&value, &found, sizeof value);
        return value;
    }
    static void round_one(uint8_t *to, float &scale, const float *v, int64_t length) {
        const float most = largest(v, length);
        const bool is_finite = most < INFINITY, counts = most >= least && is_finite;
        scale = counts ? most / 127.0f : is_finite ? 0.0f : NAN;
        const int flip = bits_to_flip();
        if (!counts) {
            memset(to, flip, size_t(length));
            return;
        }
        const float inverse = 127.0f / most;
        typedef int8_t Bytes __attribute__((vector_size(lanes<float>)));
        each_vector<float>(length, [&](int64_t j, auto n) {
            const Vec<float> shifted = n.get(v + j) * inverse + magic<float>;
            const Int<float> whole = ((Int<float>)shifted - 0x4b400000) ^ flip;
            const Bytes bytes = __builtin_convertvector(whole, Bytes);
            put(to + j, bytes, n);
        });
    }
    template <class B> static void put(uint8_t *to, B bytes, Full) { memcpy(to, &bytes, sizeof bytes); }
    template <class B> static void put(uint8_t *to, B bytes, Tail n) { memcpy(to, &bytes, size_t(n.count)); }
};

// A matrix (rows x columns) in panels of vectors of rows: the weights of a panel by fours of columns, see dot.h, in the
// order in which they are read. Then of every row −128 Σ w and the scale.
struct Int8Matrix {
    static constexpr int64_t widest = 8;  // vectors of a panel
    int64_t rows = 0, columns = 0;
    float *memory = nullptr;

    int64_t vectors() const { return round_up(rows, lanes<float>) / lanes<float>; }
    int64_t fours() const { return round_up(columns, 4) / 4; }
    int64_t padded() const { return vectors() * lanes<float>; }
    int64_t size() const { return padded() * (fours() + 2); }
    int64_t panel_of(int64_t vector) const { return vector / widest * widest; }  // its first vector
    int64_t panel_end(int64_t vector) const { return std::min(panel_of(vector) + widest, vectors()); }
    // From a four of columns to the next, in bytes.
    int64_t next(int64_t vector) const { return (panel_end(vector) - panel_of(vector)) * SLIMRNN_BYTES; }
    int8_t *weights(int64_t vector) const {
        const int64_t first = panel_of(vector);
        return reinterpret_cast<int8_t *>(memory) + (first * fours() + vector - first) * SLIMRNN_BYTES;
    }
    uint32_t *corrections() const { return reinterpret_cast<uint32_t *>(memory + padded() * fours()); }
    float *scales() const { return memory + padded() * (fours() + 1); }

    void pack(const int8_t *from, const float *scale) const {
        memset(memory, 0, sizeof(float) * size_t(size()));
        for (int64_t i = 0; i < rows; i++) {
            const int64_t vector = i / lanes<float>, step = next(vector);
            int8_t *const to = weights(vector) + i % lanes<float> * 4;
            int64_t sum = 0;
            for (int64_t k = 0; k < columns; k++) {
                to[k / 4 * step + k % 4] = from[i * columns + k];
                sum += from[i * columns + k];
            }
            corrections()[i] = uint32_t(-128 * sum);  // modulo 2^32, as the sums that it corrects
            scales()[i] = scale[i];
        }
    }
};

// A function of its own with its loops unrolled: else the compiler keeps the sums in memory.
template <class D, int ROWS, int VECTORS>
__attribute__((noinline)) void int8_tile(const Int8Matrix &w, int64_t vector, const Rounded &x, int64_t row,
                                         int64_t skip, float *y, int64_t ldy, const float *start) {
    constexpr int L = lanes<float>;
    typename D::Total total[ROWS][VECTORS] = {};
    const int64_t fours = w.fours(), next = w.next(vector);
    const int8_t *p = w.weights(vector);
    const uint8_t *q = x.q + row * x.apart + skip;
    for (int64_t k = 0; k < fours; k++, p += next, q += 4) {
        typename D::Four a[ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) a[r] = D::four(q + r * x.apart);
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; r++) D::add(total[r][v], a[r], p + v * SLIMRNN_BYTES);
    }
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) {
        const int64_t at = (vector + v) * L, left = w.rows - at;
        const Vec<float> scale = load(w.scales() + at);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            Int<float> sum = D::total(total[r][v]);
            if (D::flip) {
                typedef uint32_t Unsigned __attribute__((vector_size(SLIMRNN_BYTES)));
                Unsigned correction;
                memcpy(&correction, w.corrections() + at, sizeof correction);
                sum = (Int<float>)((Unsigned)sum + correction);
            }
            const Vec<float> term = __builtin_convertvector(sum, Vec<float>) * (scale * x.scale[row + r]);
            float *const to = y + r * ldy + at;
            const float *const from = start ? start + at : to;
            if (left >= L)
                store(to, load(from) + term);
            else
                add_some(to, from, term, int(left));
        }
    }
}

template <class D, int VECTORS>
void int8_rows(int64_t rows, const Int8Matrix &w, int64_t vector, const Rounded &x, int64_t skip, float *y, int64_t ldy,
               const float *start) {
    int64_t r = 0;
    for (; r + D::rows <= rows; r += D::rows)
        int8_tile<D, D::rows, VECTORS>(w, vector, x, r, skip, y + r * ldy, ldy, start);
    for (; r < rows; r++) int8_tile<D, 1, VECTORS>(w, vector, x, r, skip, y + r * ldy, ldy, start);
}
template <class D>
void multiply_with(int64_t rows, const Int8Matrix &w, Panels some, const Rounded &x, int64_t skip, float *y,
                   int64_t ldy, const float *start) {
    for (int64_t v = some.first, taken; v < some.last; v += taken) {
        const int64_t left = std::min(some.last, w.panel_end(v)) - v;
        taken = rows == 1 && left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (taken == 8)
            int8_tile<D, 1, 8>(w, v, x, 0, skip, y, ldy, start);
        else if (taken == 4)
            int8_rows<D, 4>(rows, w, v, x, skip, y, ldy, start);
        else if (taken == 2)
            int8_rows<D, 2>(rows, w, v, x, skip, y, ldy, start);
        else
            int8_rows<D, 1>(rows, w, v, x, skip, y, ldy, start);
    }
}
// y (rows, w.rows) += W x, or with a start, y = start + W x, for some vectors of rows of W. x begins `skip` numbers after
// the beginning of the rounded vectors.
inline void multiply(int64_t rows, const Int8Matrix &w, Panels some, const Rounded &x, int64_t skip, float *y,
                     int64_t ldy, const float *start = nullptr) {
#if defined(__AVX512F__)
    if (has_vnni()) return multiply_with<VnniDot>(rows, w, some, x, skip, y, ldy, start);
#endif
    multiply_with<Dot>(rows, w, some, x, skip, y, ldy, start);
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
