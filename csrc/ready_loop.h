// Time loops with their memory: for one call, or kept for single steps.
#pragma once
#include "time_loop.h"

#include <new>

namespace slimrnn {
namespace SLIMRNN_ISA {

inline void *aligned(int64_t bytes) {
    return operator new(size_t(bytes > 0 ? bytes : 64), std::align_val_t{64}, std::nothrow);  // a line of the cache
}
inline void give_back(void *memory) { operator delete(memory, std::align_val_t{64}); }

// Memory that is freed at the end, however that comes.
template <class T> struct Memory {
    const int64_t count;
    T *data;
    explicit Memory(int64_t count) : count(count), data(static_cast<T *>(aligned(count * int64_t(sizeof(T))))) {}
    ~Memory() { give_back(data); }
    Memory(const Memory &) = delete;
};

// What was made ready for any number of threads.
template <class T, class Input = InputProduct<T>> struct Parts {
    using Loop = TimeLoop<T, Input>;
    Term<T> *const *terms;
    const Ready<T> &program;
    const Input &input;

    Loop loop(const slimrnn_scan &s, int64_t first, int64_t rows, Arena<T> &memory, T *sums) const {
        return Loop(s, terms, program, input, first, rows, memory, sums);
    }
    int64_t size(const slimrnn_scan &s, int64_t first, int64_t rows, T *sums) const {
        Arena<T> counted;
        loop(s, first, rows, counted, sums);
        return counted.taken();
    }
};

// work(loop) for some rows; with sums it is a loop back.
template <class T, class Input, class Work>
int with_loop(const slimrnn_scan &s, Parts<T, Input> parts, int64_t first, int64_t rows, Crew *crew, T *sums,
              Work work) {
    const Memory<T> memory(parts.size(s, first, rows, sums));
    if (!memory.data) return SLIMRNN_NO_MEMORY;
    Arena<T> arena(memory.data, memory.count);
    arena.crew = crew;
    TimeLoop<T, Input> loop = parts.loop(s, first, rows, arena, sums);
    work(loop);
    return SLIMRNN_OK;
}
template <class T, class Input>
int run_forward(const slimrnn_scan &s, Parts<T, Input> parts, int64_t first, int64_t rows, Crew *crew) {
    return with_loop<T>(s, parts, first, rows, crew, nullptr, [](auto &loop) { loop.forward(); });
}
template <class T, class Input>
int run_backward(const slimrnn_scan &s, Parts<T, Input> parts, int64_t first, int64_t rows, Crew *crew, T *sums) {
    return with_loop<T>(s, parts, first, rows, crew, sums, [](auto &loop) { loop.backward(); });
}

// A loop of one step, with its memory: for any number of steps, one at a time.
template <class T, class Input = InputProduct<T>> struct ReadyLoop : ReadyStep {
    slimrnn_scan scan;
    const int64_t row;  // numbers of x
    Memory<T> memory, gathered;
    Arena<T> arena;
    TimeLoop<T, Input> loop;

    ReadyLoop(const slimrnn_scan &s, Parts<T, Input> parts)
        : ReadyStep{s.dtype, s.batch}, scan(s), row(s.u ? s.input_size : s.cell->gates * s.width),
          memory(parts.size(s, 0, s.batch, nullptr)), gathered(s.batch * row),
          arena(checked(memory.data), memory.count), loop(parts.loop(scan, 0, s.batch, arena, nullptr)) {
        checked(gathered.data);
    }
    static T *checked(T *data) {
        if (!data) throw std::bad_alloc();
        return data;
    }
    void run(const slimrnn_places &places) {
        scan.x = contiguous(places), scan.out = places.out;
        loop.use(places.states, places.states + scan.cell->states);
        loop.forward();
    }
    const void *contiguous(const slimrnn_places &places) {
        if (places.x_column == 1 && (places.x_row == row || batch == 1)) return places.x;
        const T *x = static_cast<const T *>(places.x);
        for (int64_t r = 0; r < batch; r++)
            for (int64_t k = 0; k < row; k++) gathered.data[r * row + k] = x[r * places.x_row + k * places.x_column];
        return gathered.data;
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
