// Whether a cell's programs stay within their memory. A program comes from outside: nothing that it names is trusted.
#pragma once
#include "ops.h"

namespace slimrnn {

class ProgramCheck {
    const slimrnn_cell &cell;
    const bool backward;

    static bool below(int32_t i, int32_t count) { return i >= 0 && i < count; }
    static bool is_given_back(int kind) {  // on the way back only
        return kind == SLIMRNN_D_GATE || kind == SLIMRNN_D_BEFORE || kind == SLIMRNN_D_AFTER || kind == SLIMRNN_X ||
               kind == SLIMRNN_Y;
    }
    // The vectors of a row from this place on that lie next to each other, each of a number of its own.
    int vectors_from(const slimrnn_place &p) const {
        switch (p.kind) {
            case SLIMRNN_SLOT: return cell.slots - p.index;
            case SLIMRNN_D_GATE: return cell.gates - p.index;
            case SLIMRNN_SPARE:
            case SLIMRNN_Y: return p.parts - p.part;
            default: return 1;
        }
    }
    bool has(int32_t place) const { return below(place, cell.place_count) && place_is_sound(cell.places[place]); }
    // On the way back slots and states are history, which another way back may want to read again.
    bool may_write(int32_t place) const {
        const int kind = cell.places[place].kind;
        if (kind == SLIMRNN_BEFORE || kind == SLIMRNN_D_AFTER || kind == SLIMRNN_OWN) return false;
        return !backward || (kind != SLIMRNN_SLOT && kind != SLIMRNN_AFTER);
    }
    // Rows that follow one another, as the products take them.
    bool is_dense(int32_t place) const {
        const slimrnn_place &p = cell.places[place];
        switch (p.kind) {
            case SLIMRNN_BEFORE:
            case SLIMRNN_AFTER:
            case SLIMRNN_D_BEFORE:
            case SLIMRNN_D_AFTER: return true;
            case SLIMRNN_SLOT: return cell.slots == 1;
            case SLIMRNN_SPARE: return p.parts == 1;
            default: return false;
        }
    }
    bool place_is_sound(const slimrnn_place &p) const {
        if (is_given_back(p.kind) && !backward) return false;
        const bool whole = p.part == 0 && p.parts == 1;
        switch (p.kind) {
            case SLIMRNN_SLOT: return whole && below(p.index, cell.slots) && (!backward || cell.kept > 0);
            case SLIMRNN_BEFORE:
            case SLIMRNN_AFTER:
            case SLIMRNN_D_BEFORE:
            case SLIMRNN_D_AFTER: return whole && below(p.index, cell.states);
            case SLIMRNN_OWN: return whole && below(p.index, cell.own_rows);
            case SLIMRNN_D_GATE: return whole && below(p.index, cell.gates);
            case SLIMRNN_SPARE:
                return below(p.index, cell.spares) && p.parts >= 1 && p.parts <= cell.spares - p.index &&
                       below(p.part, p.parts);
            case SLIMRNN_X: return whole && below(p.index, cell.product_count) && cell.products[p.index].x < 0;
            case SLIMRNN_Y:
                return below(p.index, cell.product_count) && !cell.products[p.index].of_gates &&
                       p.parts == cell.products[p.index].last - cell.products[p.index].first && below(p.part, p.parts);
            default: return false;
        }
    }
    bool product_is_sound(const slimrnn_instruction &i) const {
        if (!has(i.to) || !has(i.a) || !may_write(i.to) || overlap(cell.places[i.to], cell.places[i.a])) return false;
        const slimrnn_place &to = cell.places[i.to], &from = cell.places[i.a];
        if (i.op == SLIMRNN_APPLY)
            return !backward && is_dense(i.a) && i.b >= 0 && i.b < i.c && i.c <= cell.matrices &&
                   i.c - i.b <= vectors_from(to);
        if (!backward || !is_dense(i.to) || !below(i.b, cell.product_count) || from.kind == SLIMRNN_OWN) return false;
        return cell.products[i.b].last - cell.products[i.b].first <= vectors_from(from);
    }
    // Registers from the constants on to `count`.
    bool registers_are_sound(const slimrnn_instruction &i, int32_t count) const {
        const int32_t read[] = {i.a, i.b, i.c};
        for (int k = 0; k < registers_read(i.op); k++)
            if (!below(read[k], count)) return false;
        return !writes_register(i.op) || (i.to >= cell.constant_count && i.to < count);
    }
    bool row_step_is_sound(const slimrnn_instruction &i) const {
        return i.op >= SLIMRNN_ADD && i.op < SLIMRNN_OPS && registers_are_sound(i, cell.constant_count + cell.row_sums);
    }
    bool step_is_sound(const slimrnn_instruction &i) const {  // in a loop
        if (i.op < SLIMRNN_LOAD || i.op >= SLIMRNN_OPS || !registers_are_sound(i, cell.register_count)) return false;
        switch (i.op) {
            case SLIMRNN_LOAD: return has(i.a);
            case SLIMRNN_STORE: return has(i.to) && may_write(i.to);
            case SLIMRNN_SUM: return backward && below(i.to, cell.own_rows);
            case SLIMRNN_TOTAL: return below(i.to, cell.row_sums);
            case SLIMRNN_PER_ROW: return below(i.a, cell.row_sums);
            default: return true;
        }
    }

  public:
    ProgramCheck(const slimrnn_cell &cell, bool backward) : cell(cell), backward(backward) {}

    bool passes(const slimrnn_program &program) const {
        if (program.count < 1 || !program.code) return false;
        for (int32_t k = 0, inside = 0, loop = 0; k < program.count; k++) {
            const slimrnn_instruction &i = program.code[k];
            if (inside > 0) {
                if (!(loop == SLIMRNN_LOOP ? step_is_sound(i) : row_step_is_sound(i))) return false;
                inside--;
            } else if (has_body(i.op)) {
                if (i.to < 1 || i.to > program.count - 1 - k) return false;
                inside = i.to, loop = i.op;
            } else if ((i.op != SLIMRNN_APPLY && i.op != SLIMRNN_ADJOINT) || !product_is_sound(i)) {
                return false;
            }
        }
        return true;
    }
};

inline bool program_is_sound(const slimrnn_cell &cell, const slimrnn_program &program, bool backward) {
    return ProgramCheck(cell, backward).passes(program);
}

// The sizes fit one another. No cell needs more than this of anything: sizes of memory cannot overflow.
inline bool cell_is_sound(const slimrnn_cell &c) {
    const int32_t most = 1 << 10;
    if (c.gates < 1 || c.gates > SLIMRNN_MOST_GATES || c.matrices < 0 || c.matrices > SLIMRNN_MOST_GATES ||
        c.states < 1 || c.states > SLIMRNN_MOST_STATES || c.own_rows < 0 || c.own_rows > most || c.slots < c.gates ||
        c.slots > most || c.kept < 0 || c.kept > c.slots || c.spares < 0 || c.spares > most || c.row_sums < 0 ||
        c.row_sums > most)
        return false;
    if (c.product_count < 0 || c.product_count > SLIMRNN_MOST_PRODUCTS || c.place_count < 0 || c.place_count > most ||
        (c.place_count && !c.places) || c.constant_count < 0 || c.constant_count > c.register_count ||
        (c.constant_count && !c.constants) || c.register_count > SLIMRNN_MOST_REGISTERS)
        return false;
    for (int k = 0; k < c.product_count; k++) {
        const slimrnn_product_spec &p = c.products[k];
        const bool has_x = p.x == -1 || (p.x >= 0 && p.x < c.states) ||
                           (p.x >= SLIMRNN_MOST_STATES && p.x < SLIMRNN_MOST_STATES + c.states);
        if (!has_x || p.first < 0 || p.first >= p.last || p.last > c.matrices || (p.of_gates && p.last > c.gates))
            return false;
    }
    return true;
}

}  // namespace slimrnn
