// Runs a cell's programs. Every instruction acts on a chunk of numbers that stays in the cache, so what it costs to look
// at an instruction is shared by many numbers. All loops between two products run for some rows before they do for others.
#pragma once
#include "noise.h"
#include "ready.h"

#include <utility>

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> class Interpreter {
    const slimrnn_cell *cell = nullptr;
    int64_t width = 0;
    Chunks<T> chunks{1};
    // Every operand: the registers, then the places and row sums, which move from chunk to chunk.
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
        const int64_t operands = first_row_sum(cell) + cell.row_sums;
        at = take<T *>(memory, operands), start = take<T *>(memory, operands);
        apart = take<int64_t>(memory, operands);
        if (!file) return;
        memset(file, 0, sizeof(T) * registers * size);
        memset(apart, 0, sizeof(int64_t) * operands);  // of row sums: they have no rows
        for (int64_t r = 0; r < registers; r++) at[r] = file + r * size, apart[r] = chunks.piece;
        for (int r = 0; r < cell.constant_count; r++)
            for (int64_t i = 0; i < size; i++) at[r][i] = T(cell.constants[r]);
    }

    void run(const Ready<T> &program, Step<T> &s) {
        find_places(program, s);
        for (int k = 0; k < program.count;) {
            const slimrnn_instruction &i = program.code[k];
            int end = k;
            while (end < program.count && has_body(program.code[end].op)) end += 1 + program.code[end].to;
            if (end > k) {
                for (int64_t row = 0; row < s.rows; row += chunks.rows) loops(s, program, k, end, row);
            } else if (i.op == SLIMRNN_APPLY) {
                s.apply(start[i.a], start[i.to], apart[i.to], i.b, i.c);
            } else {
                const slimrnn_product_spec &p = cell->products[i.b];
                s.adjoint(i.b, start[i.a], apart[i.a], start[i.to], p.first, p.last);
            }
            k = std::max(end, k + 1);
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
    // The instructions from k to `end` for the rows from `row` on.
    void loops(Step<T> &s, const Ready<T> &program, int k, int end, int64_t row) {
        const int64_t rows = std::min(chunks.rows, s.rows - row);
        for (int i = 0; i < cell->row_sums; i++) at[first_row_sum(*cell) + i] = s.row_sum(i) + row;
        for (; k < end; k += 1 + program.code[k].to) {
            const slimrnn_instruction *const body = program.code + k + 1;
            const int count = body[-1].to;
            if (body[-1].op == SLIMRNN_ROWS)
                for (int j = 0; j < count; j++) compute(body[j], 1, round_up(rows, lanes<T>));
            else
                for (int64_t unit = 0; unit < width; unit += chunks.piece) {
                    for (int p = cell->register_count; p < cell->register_count + program.place_count; p++)
                        at[p] = start[p] + (program.shared[p - cell->register_count] ? 0 : row * apart[p]) + unit;
                    loop(s, body, count, Chunk{row, unit, std::min(chunks.piece, width - unit), rows});
                }
        }
    }
    void loop(Step<T> &s, const slimrnn_instruction *body, int count, const Chunk &chunk) {
        // Without places among the operands the rows are one, in whole vectors.
        const int64_t rows = chunks.direct ? chunk.rows : 1;
        const int64_t numbers = chunks.direct ? chunk.units : round_up(chunk.units * chunk.rows, lanes<T>);
        for (int k = 0; k < count; k++)
            if (body[k].op < SLIMRNN_ADD || body[k].op >= PRODUCT_SUM)
                move(s, body[k], chunk);
            else
                compute(body[k], rows, numbers);
    }

    // Between chunks and the rest of the world.
    void move(Step<T> &s, const slimrnn_instruction &i, const Chunk &c) {
        switch (i.op) {
            case SLIMRNN_LOAD:
            case SLIMRNN_STORE:
                for (int64_t r = 0; r < c.rows; r++)
                    memcpy(at[i.to] + r * apart[i.to], at[i.a] + r * apart[i.a], sizeof(T) * c.units);
                break;
            case SLIMRNN_SUM: add_rows(c, s.d_own + i.to * width + c.unit, one(i)); break;
            case SLIMRNN_TOTAL: add_units(c, s.row_sum(i.to) + c.row, one(i)); break;
            case PRODUCT_SUM: add_rows(c, s.d_own + i.to * width + c.unit, product(i)); break;
            case PRODUCT_TOTAL: add_units(c, s.row_sum(i.to) + c.row, product(i)); break;
            case SLIMRNN_PER_ROW: spread(c, s.row_sum(i.a) + c.row, at[i.to], apart[i.to]); break;
            default:  // NOISE
                for (int64_t r = 0; r < c.rows; r++) {
                    const uint32_t key = noise_key(s, i.a, c.row + r);
                    T *const to = at[i.to] + r * apart[i.to];
                    for (int64_t j = 0; j < c.units; j++) to[j] = uniform<T>(key, c.unit + j);
                }
        }
    }
    // What is summed, for unit j of row r.
    auto one(const slimrnn_instruction &i) const {
        return [a = at[i.a], next = apart[i.a]](auto n, int64_t r, int64_t j) { return n.get(a + r * next + j); };
    }
    auto product(const slimrnn_instruction &i) const {
        return [a = at[i.a], b = at[i.b], next_a = apart[i.a], next_b = apart[i.b]](auto n, int64_t r, int64_t j) {
            return n.get(a + r * next_a + j) * n.get(b + r * next_b + j);
        };
    }
    template <class F> static void add_rows(const Chunk &c, T *sum, F f) {
        each_vector<T>(c.units, [&](int64_t j, auto n) {
            Vec<T> some = n.get(sum + j);
            for (int64_t r = 0; r < c.rows; r++) some += f(n, r, j);
            n.put(sum + j, some);
        });
    }
    // In an order that depends on the width alone, so that it does not matter how rows are shared out.
    template <class F> static void add_units(const Chunk &c, T *sum, F f) {
        const int64_t half = c.units / lanes<T> / 2 * lanes<T>;
        for (int64_t r = 0; r < c.rows; r++) {
            Vec<T> some{}, others{};
            for (int64_t j = 0; j < half; j += lanes<T>) some += f(Full{}, r, j), others += f(Full{}, r, half + j);
            each_vector<T>(c.units - 2 * half, [&](int64_t j, auto n) { some += f(n, r, 2 * half + j); });
            sum[r] = (c.unit ? sum[r] : T(0)) + sum_of<T>(some + others);
        }
    }
    static void spread(const Chunk &c, const T *sum, T *to, int64_t next) {
        for (int64_t r = 0; r < c.rows; r++, to += next)
            each_vector<T>(c.units, [&](int64_t j, auto n) { n.put(to + j, fill(sum[r])); });
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
    template <class F> void all(const slimrnn_instruction &i, int64_t rows, int64_t numbers, F f) {
        T *to = at[i.to];
        const T *a = at[i.a], *b = at[i.b], *c = at[i.c];
        for (int64_t r = 0; r < rows; r++, to += apart[i.to], a += apart[i.a], b += apart[i.b], c += apart[i.c])
            for (int64_t v = 0; v < numbers; v += lanes<T>) store<T>(to + v, f(load(a + v), load(b + v), load(c + v)));
    }
    template <int FIRST, int SECOND> void pair(const slimrnn_instruction &i, int64_t rows, int64_t numbers) {
        using V = Vec<T>;
        all(i, rows, numbers, [](V x, V y, V z) { return simply<SECOND>(simply<FIRST>(x, y), z); });
    }
    template <int... K>
    void one_of(std::integer_sequence<int, K...>, const slimrnn_instruction &i, int64_t rows, int64_t numbers) {
        using Pair = void (Interpreter::*)(const slimrnn_instruction &, int64_t, int64_t);
        static constexpr Pair pairs[] = {&Interpreter::pair<K / SIMPLE_SECOND, K % SIMPLE_SECOND>...};
        (this->*pairs[i.op - first_fused])(i, rows, numbers);
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
            case SLIMRNN_WHERE: return all(i, rows, n, [](V mask, V x, V y) { return (Int<T>)mask ? x : y; });
            default: return one_of(std::make_integer_sequence<int, fused_ops>(), i, rows, n);
        }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
