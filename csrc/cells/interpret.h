// Runs a cell's programs. Every instruction acts on a chunk of numbers that stays in the first-level cache, so what it
// costs to look at an instruction is shared by many numbers.
#pragma once
#include "noise.h"
#include "ready.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> class Interpreter {
    const slimrnn_cell *cell = nullptr;
    int64_t width = 0;
    Chunks<T> chunks{1};
    // Every operand: the registers' memory, then the places, which move from chunk to chunk.
    T **at = nullptr;
    T **start = nullptr;       // of the places, in this step
    int64_t *apart = nullptr;  // from a row of a place to the next

    // What the instructions run on.
    struct Chunk {
        int64_t row, unit, units, rows;  // `units` from `unit` on, in each of so many rows
        int64_t numbers() const { return (units * rows + lanes<T> - 1) / lanes<T> * lanes<T>; }
    };

    template <class U> static U *take(Arena<T> &memory, int64_t count) {
        return reinterpret_cast<U *>(memory.take((count * int64_t(sizeof(U)) + sizeof(T) - 1) / sizeof(T)));
    }

  public:
    Interpreter() = default;
    Interpreter(const slimrnn_cell &cell, int64_t width, Arena<T> &memory) : cell(&cell), width(width), chunks(width) {
        const int64_t size = Chunks<T>::longest, registers = cell.register_count;
        T *const file = memory.take(registers * size);
        at = take<T *>(memory, registers + cell.place_count);
        start = take<T *>(memory, cell.place_count);
        apart = take<int64_t>(memory, cell.place_count);
        if (!file) return;
        memset(file, 0, sizeof(T) * registers * size);
        for (int64_t r = 0; r < registers; r++) at[r] = file + r * size;
        for (int r = 0; r < cell.constant_count; r++)
            for (int64_t i = 0; i < size; i++) at[r][i] = T(cell.constants[r]);
    }

    void run(const Ready<T> &program, Step<T> &s) {
        find_places(program, s);
        const int first = cell->register_count;
        for (int k = 0; k < program.count; k++) {
            const slimrnn_instruction &i = program.code[k];
            if (i.op == SLIMRNN_APPLY) {
                s.apply(start[i.a - first], start[i.to - first], apart[i.to - first], i.b, i.c);
            } else if (i.op == SLIMRNN_ADJOINT) {
                const slimrnn_product_spec &p = cell->products[i.b];
                s.adjoint(i.b, start[i.a - first], apart[i.a - first], start[i.to - first], p.first, p.last);
            } else {
                loop(s, &i + 1, i.to, program.place_count);
                k += i.to;
            }
        }
    }

  private:
    void find_places(const Ready<T> &program, const Step<T> &s) {
        for (int p = 0; p < program.place_count; p++) {
            const slimrnn_place &place = program.places[p];
            const int64_t within = place.index * width;
            apart[p] = width;
            switch (place.kind) {
                case SLIMRNN_SLOT: start[p] = s.slots + within, apart[p] = cell->slots * width; break;
                case SLIMRNN_BEFORE: start[p] = const_cast<T *>(s.before[place.index]); break;
                case SLIMRNN_AFTER: start[p] = s.after[place.index]; break;
                case SLIMRNN_OWN: start[p] = const_cast<T *>(s.own) + within, apart[p] = 0; break;
                case SLIMRNN_D_GATE: start[p] = s.d_gates + within, apart[p] = s.ldd; break;
                case SLIMRNN_D_BEFORE: start[p] = s.d_before[place.index]; break;
                case SLIMRNN_D_AFTER: start[p] = const_cast<T *>(s.d_after[place.index]); break;
                case SLIMRNN_X: start[p] = s.products[place.index].x, apart[p] = s.ldx; break;
                case SLIMRNN_Y:
                    start[p] = s.products[place.index].y + place.part * width, apart[p] = place.parts * width;
                    break;
                default:  // SPARE
                    start[p] = s.spare + s.rows * within + place.part * width, apart[p] = place.parts * width;
            }
        }
    }
    void loop(Step<T> &s, const slimrnn_instruction *code, int count, int places) {
        T **const place = at + cell->register_count;
        for (int64_t row = 0; row < s.rows; row += chunks.rows)
            for (int64_t unit = 0; unit < width; unit += chunks.piece) {
                for (int p = 0; p < places; p++) place[p] = start[p] + row * apart[p] + unit;
                const Chunk chunk{row, unit, std::min(chunks.piece, width - unit), std::min(chunks.rows, s.rows - row)};
                for (int k = 0; k < count; k++)
                    if (code[k].op < SLIMRNN_ADD)
                        move(s, code[k], chunk);
                    else
                        compute(code[k], chunk.numbers());
            }
    }

    // Between chunks and the rest of the world.
    void move(Step<T> &s, const slimrnn_instruction &i, const Chunk &c) {
        switch (i.op) {
            case SLIMRNN_LOAD: copy(c, at[i.a], apart[i.a - cell->register_count], at[i.to], c.units); break;
            case SLIMRNN_STORE: copy(c, at[i.a], c.units, at[i.to], apart[i.to - cell->register_count]); break;
            case SLIMRNN_SUM: add_rows(c, at[i.a], s.d_own + i.to * width + c.unit); break;
            case SLIMRNN_TOTAL: add_units(c, at[i.a], s.row_sums + i.to * s.rows + c.row); break;
            case SLIMRNN_PER_ROW: spread(c, s.row_sums + i.a * s.rows + c.row, at[i.to]); break;
            default:  // NOISE
                for (int64_t r = 0; r < c.rows; r++) {
                    const uint32_t key = noise_key(s, i.a, c.row + r);
                    T *const to = at[i.to] + r * c.units;
                    for (int64_t j = 0; j < c.units; j++) to[j] = uniform<T>(key, c.unit + j);
                }
        }
    }
    static void copy(const Chunk &c, const T *from, int64_t from_apart, T *to, int64_t to_apart) {
        for (int64_t r = 0; r < c.rows; r++) memcpy(to + r * to_apart, from + r * from_apart, sizeof(T) * c.units);
    }
    static void add_rows(const Chunk &c, const T *from, T *sum) {
        for (int64_t r = 0; r < c.rows; r++, from += c.units)
            each_vector<T>(c.units, [&](int64_t j, auto n) { n.put(sum + j, n.get(sum + j) + n.get(from + j)); });
    }
    // In an order that depends on the width alone, so that it does not matter how rows are shared out.
    static void add_units(const Chunk &c, const T *from, T *sum) {
        for (int64_t r = 0; r < c.rows; r++, from += c.units) {
            Vec<T> some{};
            each_vector<T>(c.units, [&](int64_t j, auto n) { some += n.get(from + j); });
            sum[r] = (c.unit ? sum[r] : T(0)) + sum_of<T>(some);
        }
    }
    static void spread(const Chunk &c, const T *sum, T *to) {
        for (int64_t r = 0; r < c.rows; r++)
            for (int64_t j = 0; j < c.units; j++) *to++ = sum[r];
    }

    template <class F> static void each(int64_t numbers, T *to, const T *a, F f) {
        for (int64_t v = 0; v < numbers; v += lanes<T>) store<T>(to + v, f(load(a + v)));
    }
    template <class F> static void each(int64_t numbers, T *to, const T *a, const T *b, F f) {
        for (int64_t v = 0; v < numbers; v += lanes<T>) store<T>(to + v, (Vec<T>)f(load(a + v), load(b + v)));
    }
    static void choose(int64_t numbers, T *to, const T *mask, const T *a, const T *b) {
        for (int64_t v = 0; v < numbers; v += lanes<T>)
            store<T>(to + v, (Int<T>)load(mask + v) ? load(a + v) : load(b + v));
    }
    void compute(const slimrnn_instruction &i, int64_t n) {
        using V = Vec<T>;
        T *const to = at[i.to];
        const T *const a = at[i.a], *const b = at[i.b];
        switch (i.op) {
            case SLIMRNN_ADD: return each(n, to, a, b, [](V x, V y) { return x + y; });
            case SLIMRNN_SUB: return each(n, to, a, b, [](V x, V y) { return x - y; });
            case SLIMRNN_MUL: return each(n, to, a, b, [](V x, V y) { return x * y; });
            case SLIMRNN_DIV: return each(n, to, a, b, [](V x, V y) { return x / y; });
            case SLIMRNN_NEG: return each(n, to, a, [](V x) { return -x; });
            case SLIMRNN_SIGMOID: return each(n, to, a, [](V x) { return sigmoid<T>(x); });
            case SLIMRNN_TANH: return each(n, to, a, [](V x) { return hyperbolic_tangent<T>(x); });
            case SLIMRNN_EXP: return each(n, to, a, [](V x) { return exponential<T>(x); });
            case SLIMRNN_LOG: return each(n, to, a, [](V x) { return logarithm<T>(x); });
            case SLIMRNN_SOFTPLUS: return each(n, to, a, [](V x) { return softplus<T>(x); });
            case SLIMRNN_SQRT: return each(n, to, a, [](V x) { return square_root<T>(x); });
            case SLIMRNN_ABS: return each(n, to, a, [](V x) { return magnitude<T>(x); });
            case SLIMRNN_SIGN: return each(n, to, a, [](V x) { return sign<T>(x); });
            case SLIMRNN_RELU: return each(n, to, a, [](V x) { return relu<T>(x); });
            case SLIMRNN_MAXIMUM: return each(n, to, a, b, [](V x, V y) { return maximum<T>(x, y); });
            case SLIMRNN_MINIMUM: return each(n, to, a, b, [](V x, V y) { return minimum<T>(x, y); });
            case SLIMRNN_GT: return each(n, to, a, b, [](V x, V y) { return x > y; });
            case SLIMRNN_LT: return each(n, to, a, b, [](V x, V y) { return x < y; });
            case SLIMRNN_GE: return each(n, to, a, b, [](V x, V y) { return x >= y; });
            case SLIMRNN_LE: return each(n, to, a, b, [](V x, V y) { return x <= y; });
            case SLIMRNN_EQ: return each(n, to, a, b, [](V x, V y) { return x == y; });
            default: return choose(n, to, a, b, at[i.c]);  // WHERE
        }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
