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
    // Every operand: the registers, then the places, which move from chunk to chunk.
    T **at = nullptr;
    int64_t *apart = nullptr;  // from a row to the next
    T **start = nullptr;       // where it is for the first chunk of this step

    // What the instructions run on: `units` from `unit` on, in each of so many rows.
    struct Chunk {
        int64_t row, unit, units, rows;
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
        start = take<T *>(memory, registers + cell.place_count);
        apart = take<int64_t>(memory, registers + cell.place_count);
        if (!file) return;
        memset(file, 0, sizeof(T) * registers * size);
        for (int64_t r = 0; r < registers; r++) at[r] = file + r * size, apart[r] = chunks.piece;
        for (int r = 0; r < cell.constant_count; r++)
            for (int64_t i = 0; i < size; i++) at[r][i] = T(cell.constants[r]);
    }

    void run(const Ready<T> &program, Step<T> &s) {
        find_places(program, s);
        for (int k = 0; k < program.count; k++) {
            const slimrnn_instruction &i = program.code[k];
            if (i.op == SLIMRNN_APPLY) {
                s.apply(start[i.a], start[i.to], apart[i.to], i.b, i.c);
            } else if (i.op == SLIMRNN_ADJOINT) {
                const slimrnn_product_spec &p = cell->products[i.b];
                s.adjoint(i.b, start[i.a], apart[i.a], start[i.to], p.first, p.last);
            } else {
                loop(s, &i + 1, i.to, program.place_count);
                k += i.to;
            }
        }
    }

  private:
    void find_places(const Ready<T> &program, const Step<T> &s) {
        for (int k = 0; k < program.place_count; k++) {
            const slimrnn_place &place = program.places[k];
            const int64_t within = place.index * width;
            T *&from = start[cell->register_count + k];
            int64_t &next = apart[cell->register_count + k];
            next = width;
            switch (place.kind) {
                case SLIMRNN_SLOT: from = s.slots + within, next = cell->slots * width; break;
                case SLIMRNN_BEFORE: from = const_cast<T *>(s.before[place.index]); break;
                case SLIMRNN_AFTER: from = s.after[place.index]; break;
                case SLIMRNN_OWN: from = const_cast<T *>(s.own) + within, next = 0; break;
                case SLIMRNN_D_GATE: from = s.d_gates + within, next = s.ldd; break;
                case SLIMRNN_D_BEFORE: from = s.d_before[place.index]; break;
                case SLIMRNN_D_AFTER: from = const_cast<T *>(s.d_after[place.index]); break;
                case SLIMRNN_X: from = s.products[place.index].x, next = s.ldx; break;
                case SLIMRNN_Y:
                    from = s.products[place.index].y + place.part * width, next = place.parts * width;
                    break;
                default:  // SPARE
                    from = s.spare + s.rows * within + place.part * width, next = place.parts * width;
            }
        }
    }
    void loop(Step<T> &s, const slimrnn_instruction *code, int count, int places) {
        const int first = cell->register_count;
        for (int64_t row = 0; row < s.rows; row += chunks.rows)
            for (int64_t unit = 0; unit < width; unit += chunks.piece) {
                for (int p = first; p < first + places; p++) at[p] = start[p] + row * apart[p] + unit;
                const Chunk chunk{row, unit, std::min(chunks.piece, width - unit), std::min(chunks.rows, s.rows - row)};
                // Without places among the operands the rows are one, in whole vectors.
                const int64_t rows = chunks.direct ? chunk.rows : 1;
                const int64_t numbers = chunks.direct ? chunk.units : round_up(chunk.units * chunk.rows, lanes<T>);
                for (int k = 0; k < count; k++)
                    if (code[k].op < SLIMRNN_ADD)
                        move(s, code[k], chunk);
                    else
                        compute(code[k], rows, numbers);
            }
    }

    // Between chunks and the rest of the world.
    void move(Step<T> &s, const slimrnn_instruction &i, const Chunk &c) {
        switch (i.op) {
            case SLIMRNN_LOAD:
            case SLIMRNN_STORE:
                for (int64_t r = 0; r < c.rows; r++)
                    memcpy(at[i.to] + r * apart[i.to], at[i.a] + r * apart[i.a], sizeof(T) * c.units);
                break;
            case SLIMRNN_SUM: add_rows(c, at[i.a], apart[i.a], s.d_own + i.to * width + c.unit); break;
            case SLIMRNN_TOTAL: add_units(c, at[i.a], apart[i.a], s.row_sums + i.to * s.rows + c.row); break;
            case SLIMRNN_PER_ROW: spread(c, s.row_sums + i.a * s.rows + c.row, at[i.to], apart[i.to]); break;
            default:  // NOISE
                for (int64_t r = 0; r < c.rows; r++) {
                    const uint32_t key = noise_key(s, i.a, c.row + r);
                    T *const to = at[i.to] + r * apart[i.to];
                    for (int64_t j = 0; j < c.units; j++) to[j] = uniform<T>(key, c.unit + j);
                }
        }
    }
    static void add_rows(const Chunk &c, const T *from, int64_t next, T *sum) {
        for (int64_t r = 0; r < c.rows; r++, from += next)
            each_vector<T>(c.units, [&](int64_t j, auto n) { n.put(sum + j, n.get(sum + j) + n.get(from + j)); });
    }
    // In an order that depends on the width alone, so that it does not matter how rows are shared out.
    static void add_units(const Chunk &c, const T *from, int64_t next, T *sum) {
        for (int64_t r = 0; r < c.rows; r++, from += next) {
            Vec<T> some{};
            each_vector<T>(c.units, [&](int64_t j, auto n) { some += n.get(from + j); });
            sum[r] = (c.unit ? sum[r] : T(0)) + sum_of<T>(some);
        }
    }
    static void spread(const Chunk &c, const T *sum, T *to, int64_t next) {
        for (int64_t r = 0; r < c.rows; r++, to += next)
            for (int64_t j = 0; j < c.units; j++) to[j] = sum[r];
    }

    // to = f(a, ...) for so many numbers of each row; numbers are whole vectors.
    template <class F> void each(const slimrnn_instruction &i, int64_t rows, int64_t numbers, F f) {
        T *to = at[i.to];
        const T *a = at[i.a];
        for (int64_t r = 0; r < rows; r++, to += apart[i.to], a += apart[i.a])
            for (int64_t v = 0; v < numbers; v += lanes<T>) store<T>(to + v, f(load(a + v)));
    }
    template <class F> void both(const slimrnn_instruction &i, int64_t rows, int64_t numbers, F f) {
        T *to = at[i.to];
        const T *a = at[i.a], *b = at[i.b];
        for (int64_t r = 0; r < rows; r++, to += apart[i.to], a += apart[i.a], b += apart[i.b])
            for (int64_t v = 0; v < numbers; v += lanes<T>) store<T>(to + v, (Vec<T>)f(load(a + v), load(b + v)));
    }
    void choose(const slimrnn_instruction &i, int64_t rows, int64_t numbers) {
        for (int64_t r = 0; r < rows; r++) {
            T *to = at[i.to] + r * apart[i.to];
            const T *mask = at[i.a] + r * apart[i.a], *b = at[i.b] + r * apart[i.b], *c = at[i.c] + r * apart[i.c];
            for (int64_t v = 0; v < numbers; v += lanes<T>)
                store<T>(to + v, (Int<T>)load(mask + v) ? load(b + v) : load(c + v));
        }
    }
    void compute(const slimrnn_instruction &i, int64_t rows, int64_t n) {
        using V = Vec<T>;
        switch (i.op) {
            case SLIMRNN_ADD: return both(i, rows, n, [](V x, V y) { return x + y; });
            case SLIMRNN_SUB: return both(i, rows, n, [](V x, V y) { return x - y; });
            case SLIMRNN_MUL: return both(i, rows, n, [](V x, V y) { return x * y; });
            case SLIMRNN_DIV: return both(i, rows, n, [](V x, V y) { return x / y; });
            case SLIMRNN_NEG: return each(i, rows, n, [](V x) { return -x; });
            case SLIMRNN_SIGMOID: return each(i, rows, n, [](V x) { return sigmoid<T>(x); });
            case SLIMRNN_TANH: return each(i, rows, n, [](V x) { return hyperbolic_tangent<T>(x); });
            case SLIMRNN_EXP: return each(i, rows, n, [](V x) { return exponential<T>(x); });
            case SLIMRNN_LOG: return each(i, rows, n, [](V x) { return logarithm<T>(x); });
            case SLIMRNN_SOFTPLUS: return each(i, rows, n, [](V x) { return softplus<T>(x); });
            case SLIMRNN_SQRT: return each(i, rows, n, [](V x) { return square_root<T>(x); });
            case SLIMRNN_ABS: return each(i, rows, n, [](V x) { return magnitude<T>(x); });
            case SLIMRNN_SIGN: return each(i, rows, n, [](V x) { return sign<T>(x); });
            case SLIMRNN_RELU: return each(i, rows, n, [](V x) { return relu<T>(x); });
            case SLIMRNN_MAXIMUM: return both(i, rows, n, [](V x, V y) { return maximum<T>(x, y); });
            case SLIMRNN_MINIMUM: return both(i, rows, n, [](V x, V y) { return minimum<T>(x, y); });
            case SLIMRNN_GT: return both(i, rows, n, [](V x, V y) { return x > y; });
            case SLIMRNN_LT: return both(i, rows, n, [](V x, V y) { return x < y; });
            case SLIMRNN_GE: return both(i, rows, n, [](V x, V y) { return x >= y; });
            case SLIMRNN_LE: return both(i, rows, n, [](V x, V y) { return x <= y; });
            case SLIMRNN_EQ: return both(i, rows, n, [](V x, V y) { return x == y; });
            default: return choose(i, rows, n);  // WHERE
        }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
