// U x + b, for the time loop.
#pragma once
#include "arena.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> class InputProduct {
    Packed<T> u;  // transposed
    const T *bias = nullptr;

  public:
    InputProduct() = default;
    explicit InputProduct(const slimrnn_scan &s)
        : u{s.input_size, s.cell->gates * s.width, nullptr}, bias(static_cast<const T *>(s.bias)) {}

    int64_t packed_size() const { return u.size(); }
    void pack(T *memory, const slimrnn_scan &s) {
        u.data = memory;
        u.pack_turned(static_cast<const T *>(s.u));
    }
    int64_t scratch_size(int64_t) const { return 0; }
    // to (rows, G, width), rows `apart` numbers apart
    void multiply(Arena<T>, Crew *crew, int64_t rows, const T *x, T *to, int64_t apart) const {
        if (u.depth < 8) {
            multiply_by_rows(rows, x, u.depth, u, to, apart, bias);
            return;
        }
        for (int64_t r = 0; r < rows && !bias; r++) memset(to + r * apart, 0, sizeof(T) * u.columns);
        in_pieces(crew, u.panels(), [&](int64_t from, int64_t until) {
            slimrnn::SLIMRNN_ISA::multiply(rows, x, u.depth, u, Panels{from, until}, to, apart, bias);
        });
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
