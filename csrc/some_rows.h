// Some rows of a batch, one next to the other: those whose sequences go on where others have ended.
#pragma once
#include "gradients.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct SomeRows {
    int64_t count = 0, *row = nullptr, *number = nullptr;         // row of the thread's, number in the whole batch
    T *slots, *input, *mask;                                      // (rows, ...): slots, an input and masks
    T *before[SLIMRNN_MOST_STATES], *after[SLIMRNN_MOST_STATES];  // (rows, width) each
    T *d_before[SLIMRNN_MOST_STATES], *d_after[SLIMRNN_MOST_STATES];

    SomeRows() = default;
    SomeRows(const slimrnn_scan &s, int64_t rows, Arena<T> &memory) {
        row = reinterpret_cast<int64_t *>(memory.take(rows * per_index));
        number = reinterpret_cast<int64_t *>(memory.take(rows * per_index));
        slots = memory.take(rows * s.cell->slots * s.width);
        input = memory.take(rows * input_size(s));
        mask = memory.take(rows * masks_of(s) * s.width);
        for (int i = 0; i < s.cell->states; i++)
            for (T **part : {&before[i], &after[i], &d_before[i], &d_after[i]}) *part = memory.take(rows * s.width);
    }

    T *gather(const T *from, int64_t length, T *to) const {
        for (int64_t i = 0; i < count; i++) memcpy(to + i * length, from + row[i] * length, sizeof(T) * length);
        return to;
    }
    // Back to where they were, from rows `apart` numbers apart; of `all` rows, where that is given, the others become zero.
    void scatter(const T *from, int64_t apart, int64_t length, T *to, int64_t all = 0) const {
        for (int64_t r = 0, i = 0; r < all; r++)
            if (i < count && row[i] == r)
                i++;
            else
                memset(to + r * length, 0, sizeof(T) * length);
        for (int64_t i = 0; i < count; i++) memcpy(to + row[i] * length, from + i * apart, sizeof(T) * length);
    }

  private:
    static constexpr int64_t per_index = sizeof(int64_t) / sizeof(T);
    static int64_t input_size(const slimrnn_scan &s) { return std::max(s.input_size, s.cell->gates * s.width); }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
