// W = W_1 ⊗ … ⊗ W_k of square factors whose sizes are 2, 4 and 8. The place of a number is then a row of binary digits, of
// which every factor changes its own: the last ones tell the lanes of a chunk apart, the others the chunks. A row stays
// in the nearest cache while the factors pass over it, one after the other.
#pragma once
#include "../chunk.h"
#include "kronecker.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

// Binary digits of a place: `low` lane digits from digit `first` on, and `high` digits of the chunk's number from there on.
struct Digits {
    int first = 0, low = 0, high = 0;
    int64_t right = 1;  // chunks apart

    Digits() = default;
    Digits(int first, int count, int inside)
        : first(first), low(std::max(0, std::min(count, inside - first))), high(count - low),
          right(int64_t(1) << std::max(0, first - inside)) {}
    // The value of the low digits at a place of a chunk.
    int low_value(int place) const { return low ? (place >> first) % (1 << low) : 0; }
};

template <class T, int FIELD> struct KroneckerDigits : Kronecker<T> {
    using Base = Kronecker<T>;
    using Base::factors;
    using Base::gates;
    using Base::width;
    using C = Chunk<T, FIELD>;
    static constexpr int at_most = 3;  // digits of a factor

    // Neighbouring factors of two as one of four: as much arithmetic, half the passes.
    struct Stage : Digits {
        typedef void (*Run)(const T *coefficients, int64_t width, int64_t right, T *v);
        int from = 0, until = 0;      // factors
        int64_t there = 0, back = 0;  // coefficients of a gate
        Run run = nullptr;
    };

    int stage_count = 0;
    int64_t coefficients_per_gate = 0;
    int first_digit[Base::most];  // of every factor
    Stage stages[Base::most];     // the last factors first
    T *coefficients = nullptr;

    static bool fits(const Operands &o) {
        int count = 0;
        for (int i = 0; i < o.count(); i++) {
            const int64_t p = o.extent(i, 1);
            if (p != o.extent(i, 2) || (p != 2 && p != 4 && p != 8)) return false;
            count += log_two(int(p));
        }
        return o.is_complex() == (FIELD == 2) && count >= C::digits;
    }
    explicit KroneckerDigits(const Operands &o) : Base(o) {
        for (int i = factors - 1, digit = 0; i >= 0; digit += digits_of(i--)) first_digit[i] = digit;
        for (int i = factors; i > 0; i = stages[stage_count++].from) plan_stage(i);
    }
    int digits_of(int i) const { return log_two(int(this->p[i])); }

    // --- the factors as coefficients of chunks ---

    void plan_stage(int until) {
        Stage s;
        s.until = until, s.from = until - 1;
        const int first = first_digit[s.from];
        int count = digits_of(s.from);
        if (s.from > 0 && count == 1 && digits_of(s.from - 1) == 1 && first + 1 != C::digits) s.from--, count++;
        static_cast<Digits &>(s) = Digits(first, count, C::digits);
        s.there = coefficients_per_gate;
        s.back = s.there + (int64_t(C::size) << (count + s.high));
        coefficients_per_gate = s.back + (s.back - s.there);
        s.run = find<0, 0>(s);
        stages[stage_count] = s;
    }
    int64_t packed_size() const override { return round_up(Base::packed_size(), C::L) + gates * coefficients_per_gate; }
    void pack(T *at, bool backward) override {
        Base::pack(at, backward);
        coefficients = at + round_up(Base::packed_size(), C::L);
        for (int gate = 0; gate < gates; gate++)
            for (int k = 0; k < stage_count; k++)
                for (bool back : {false, true}) pack_stage(gate, stages[k], back);
    }
    const T *coefficient(int gate, const Stage &s, bool back) const {
        return coefficients + gate * coefficients_per_gate + (back ? s.back : s.there);
    }
    // For every value of the high digits, there and here, and every change of the low ones: in each lane the entry for
    // the value that its low digits have here and had there.
    void pack_stage(int gate, const Stage &s, bool back) {
        typename Base::Group merged;
        merged.first = s.from, merged.last = s.until;
        T *to = const_cast<T *>(coefficient(gate, s, back));
        for (int here = 0; here < 1 << s.high; here++)
            for (int there = 0; there < 1 << s.high; there++)
                for (int change = 0; change < 1 << s.low; change++, to += C::size)
                    for (int place = 0; place < C::L; place++) {
                        const int value = s.low_value(place), j = C::lane(place);
                        const int row = here << s.low | value, column = there << s.low | (value ^ change);
                        T z[2] = {};
                        this->entry(merged, gate, back ? column : row, back ? row : column, z);
                        to[j] = z[0];
                        if (FIELD == 2) to[C::L + j] = back ? -z[1] : z[1];
                    }
    }

    // --- products ---

    int64_t scratch_size(int64_t rows) const override { return std::max(Base::scratch_size(rows), width); }

    template <int FIRST, int CHANGE> static constexpr int flip() {
        int lanes = 0;
        for (int b = 0; b < at_most; b++)
            if (CHANGE >> b & 1) lanes |= 1 << C::lane_bit(FIRST + b);
        return lanes;
    }
    template <int FIRST, int LOW, int CHANGE = 1> static void change_lanes(C *v) {
        if constexpr (CHANGE < 1 << LOW) {
            v[CHANGE] = v[0].template exchanged<flip<FIRST, CHANGE>()>();
            change_lanes<FIRST, LOW, CHANGE + 1>(v);
        }
    }
    // v (…, H, right) = w v
    template <int FIRST, int LOW, int HIGH>
    static void stage(const T *w, int64_t width, int64_t right, T *v) {
        constexpr int H = 1 << HIGH, P = 1 << LOW;
        const int64_t step = right * C::size;
        for (int64_t block = 0; block < width; block += step * H)
            for (int64_t at = block; at < block + step; at += C::size) {
                C from[H * P];
                for (int k = 0; k < H; k++) {
                    from[k * P] = C::get(v + at + k * step);
                    change_lanes<FIRST, LOW>(from + k * P);
                }
                for (int i = 0; i < H; i++) {
                    const T *c = w + i * H * P * C::size;
                    C sum = C::product(from[0], C::get(c));
                    for (int k = 1; k < H * P; k++) sum.add(from[k], C::get(c + k * C::size));
                    sum.put(v + at + i * step);
                }
            }
    }
    template <int FIRST, int LOW> static typename Stage::Run find(const Digits &d) {
        constexpr int rest = LOW == 0 || FIRST + LOW == C::digits ? at_most - LOW : 0;
        if (d.low == LOW && (LOW == 0 || d.first == FIRST)) {
            if constexpr (LOW > 0)
                if (d.high == 0) return stage<FIRST, LOW, 0>;
            if constexpr (rest > 0)
                if (d.high == 1) return stage<FIRST, LOW, 1>;
            if constexpr (rest > 1)
                if (d.high == 2) return stage<FIRST, LOW, 2>;
            if constexpr (rest > 2)
                if (d.high == 3) return stage<FIRST, LOW, 3>;
        }
        if constexpr (LOW < at_most && FIRST + LOW < C::digits)
            return find<FIRST, LOW + 1>(d);
        else if constexpr (FIRST + 1 < C::digits)
            return find<FIRST + 1, 1>(d);
        else
            return nullptr;
    }
    void into_chunks(const T *row, T *chunks) const {
        for (int64_t i = 0; i < width; i += C::size) C::from_row(row + i).put(chunks + i);
    }
    void add_chunks(const T *chunks, T *row) const {
        for (int64_t i = 0; i < width; i += C::size) C::get(chunks + i).add_to_row(row + i);
    }
    // chunks = W row, or W^H row
    void product(int gate, bool back, const T *row, T *chunks) const {
        into_chunks(row, chunks);
        for (int k = 0; k < stage_count; k++)
            stages[k].run(coefficient(gate, stages[k], back), width, stages[k].right, chunks);
    }
    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        T *chunks = scratch.take(width);
        for (int64_t r = 0; r < rows; r++)
            for (int gate = first; gate < last; gate++) {
                product(gate, false, x + r * ldx, chunks);
                add_chunks(chunks, y + r * ldy + (gate - first) * width);
            }
    }
    // kept: W^H y in chunks
    int64_t kept_size() const override { return width; }
    void rmatvec(Arena<T>, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *kept,
                 int64_t ldk) const override {
        for (int64_t r = 0; r < rows; r++)
            for (int gate = first; gate < last; gate++) {
                T *chunks = kept + r * ldk + gate * width;
                product(gate, true, y + r * ldy + (gate - first) * width, chunks);
                add_chunks(chunks, x + r * ldx);
            }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
