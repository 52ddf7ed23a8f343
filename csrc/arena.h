// A piece of memory, handed out in parts that are whole vectors. Without memory an arena only counts: the code that takes
// the parts runs once to count them and once to take them, so no formula beside it can be wrong. Taking more than there is
// ends the call with SLIMRNN_INTERNAL.
#pragma once
#include "crew.h"
#include "include/slimrnn.h"
#include "product.h"

namespace slimrnn {

struct ArenaOverflow {};

namespace SLIMRNN_ISA {

template <class T> class Arena {
    T *start = nullptr;
    int64_t size = 0, used = 0;

  public:
    Crew *crew = nullptr;  // whom the thread that works here may share its work with

    Arena() = default;
    Arena(T *start, int64_t size) : start(start), size(size) {}

    int64_t taken() const { return used; }
    T *take(int64_t count) {
        const int64_t from = used;
        used += round_up(count, lanes<T>);
        if (!start) return nullptr;
        if (used > size) throw ArenaOverflow();
        return start + from;
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
