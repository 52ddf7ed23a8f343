// What the instructions of a program are, for those who check them and those who run them. Static: this is compiled for
// several instruction sets, and no linker may mix them.
#pragma once
#include "../include/slimrnn.h"

namespace slimrnn {

// How many registers an instruction in a loop reads: a, or a and b, or all three.
static constexpr int registers_read(int op) {
    switch (op) {
        case SLIMRNN_LOAD:
        case SLIMRNN_PER_ROW:
        case SLIMRNN_NOISE: return 0;
        case SLIMRNN_ADD:
        case SLIMRNN_SUB:
        case SLIMRNN_MUL:
        case SLIMRNN_DIV:
        case SLIMRNN_MAXIMUM:
        case SLIMRNN_MINIMUM:
        case SLIMRNN_GT:
        case SLIMRNN_LT:
        case SLIMRNN_GE:
        case SLIMRNN_LE:
        case SLIMRNN_EQ: return 2;
        case SLIMRNN_WHERE: return 3;
        default: return 1;
    }
}
static constexpr bool writes_register(int op) {
    return op != SLIMRNN_STORE && op != SLIMRNN_SUM && op != SLIMRNN_TOTAL;
}

// Whether the next `to` instructions belong to it.
static constexpr bool has_body(int op) { return op == SLIMRNN_LOOP || op == SLIMRNN_ROWS; }

// Whether two places can share memory. Spares may be cut in parts in more than one way.
static inline bool overlap(const slimrnn_place &p, const slimrnn_place &q) {
    if (p.kind != q.kind) return false;
    if (p.kind != SLIMRNN_SPARE) return p.index == q.index && p.part == q.part;
    if (p.index == q.index && p.parts == q.parts) return p.part == q.part;
    return p.index < q.index + q.parts && q.index < p.index + p.parts;
}

}  // namespace slimrnn
