// A cell's program made ready for rows of a given width. Registers come first among the operands, then the places: where
// rows are whole vectors, instructions read and write memory themselves, and most LOADs and STOREs go. Last are the row
// sums. Pairs of simple instructions become one.
#pragma once
#include "../product.h"
#include "fused.h"

#include <new>

namespace slimrnn {
namespace SLIMRNN_ISA {

// How the rows are cut into chunks: several whole rows while they are short, else pieces of one row.
template <class T> struct Chunks {
    static constexpr int64_t longest = 512 * sizeof(float) / sizeof(T);  // numbers; the registers stay in the cache
    int64_t piece, rows;
    bool direct;  // places are operands: rows are whole vectors
    explicit Chunks(int64_t width) {
        direct = width % lanes<T> == 0;
        const int64_t pieces = (width + longest - 1) / longest;
        piece = width <= longest ? width : round_up((width + pieces - 1) / pieces, lanes<T>);
        rows = width <= longest ? longest / width : 1;
    }
};

inline int first_row_sum(const slimrnn_cell &cell) { return cell.register_count + cell.place_count; }  // operand

template <class T> class Ready {
    const slimrnn_cell *cell = nullptr;
    slimrnn_instruction *body = nullptr;  // of a loop
    int length = 0;

  public:
    slimrnn_instruction *code = nullptr;
    slimrnn_place *places = nullptr;  // those of the cell that this program names
    bool *shared = nullptr;           // which of them all chunks of rows may have at the same address
    int count = 0, place_count = 0;

    Ready() = default;
    Ready(const Ready &) = delete;
    ~Ready() {
        delete[] code;
        delete[] places;
        delete[] shared;
    }

    // False when memory is short.
    bool make(const slimrnn_cell &of, const slimrnn_program &program, int64_t width) {
        cell = &of;
        code = new (std::nothrow) slimrnn_instruction[size_t(program.count)];
        places = new (std::nothrow) slimrnn_place[size_t(of.place_count)];
        shared = new (std::nothrow) bool[size_t(of.place_count)];
        if (!code || !places || !shared) return false;
        const bool direct = Chunks<T>(width).direct;
        for (int k = 0; k < program.count; k++) {
            const slimrnn_instruction i = code[count++] = with_operands(program.code[k]);
            if (!has_body(i.op)) continue;
            body = code + count, length = i.to;
            for (int j = 0; j < length; j++) {
                const slimrnn_instruction &inside = program.code[++k];
                body[j] = i.op == SLIMRNN_ROWS ? with_row_sums(inside) : with_operands(inside);
            }
            for (int j = 0; j < length && direct; j++) skip_load(j);
            for (int j = 0; j < length && direct; j++) skip_store(j);
            for (int j = 0; j < length && i.op == SLIMRNN_LOOP; j++) fuse(j);
            remove_skipped();
            body[-1].to = length;
            count += length;
        }
        for (int p = 0; p < place_count; p++) shared[p] = is_used_between_two_products(places[p]);
        return true;
    }

  private:
    static constexpr int skipped = END_OF_FUSED;

    int place_operand(int place) {
        const slimrnn_place &wanted = cell->places[place];
        int p = 0;
        while (p < place_count && memcmp(&places[p], &wanted, sizeof wanted)) p++;
        if (p == place_count) places[place_count++] = wanted;
        return cell->register_count + p;
    }
    // Numbers of places become operands; what an instruction does not look at is zero.
    slimrnn_instruction with_operands(slimrnn_instruction i) {
        const bool is_product = i.op == SLIMRNN_APPLY || i.op == SLIMRNN_ADJOINT;
        if (is_product || i.op == SLIMRNN_LOAD) i.a = place_operand(i.a);
        if (is_product || i.op == SLIMRNN_STORE) i.to = place_operand(i.to);
        if (is_product || has_body(i.op)) return i;
        if (registers_read(i.op) < 2) i.b = 0;
        if (registers_read(i.op) < 3) i.c = 0;
        return i;
    }
    slimrnn_instruction with_row_sums(slimrnn_instruction i) {
        for (int32_t *operand : {&i.to, &i.a, &i.b, &i.c})
            if (*operand >= cell->constant_count) *operand += first_row_sum(*cell) - cell->constant_count;
        return i;
    }
    // A spare that is: what some rows leave there, others do not look for.
    bool is_used_between_two_products(const slimrnn_place &place) const {
        int stretch = 0, used_in = -1;  // between products
        for (int k = 0; k < count && place.kind == SLIMRNN_SPARE; k++) {
            const slimrnn_instruction &i = code[k];
            const bool is_product = i.op == SLIMRNN_APPLY || i.op == SLIMRNN_ADJOINT;
            stretch += is_product;
            if (has_body(i.op) || !names(i, place)) continue;
            if (is_product || (used_in >= 0 && used_in != stretch)) return false;
            used_in = stretch;
        }
        return place.kind == SLIMRNN_SPARE;
    }
    bool names(const slimrnn_instruction &i, const slimrnn_place &place) const {
        const auto is = [&](int operand) {
            const int p = operand - cell->register_count;
            return p >= 0 && p < place_count && overlap(places[p], place);
        };
        for (int k = 0; k < reads(i); k++)
            if (is(operand(i, k))) return true;
        return writes(i) && is(i.to);
    }
    bool is_place(int operand) const { return operand >= cell->register_count; }
    bool touches(int operand, int place) const {
        return is_place(operand) &&
               overlap(places[operand - cell->register_count], places[place - cell->register_count]);
    }
    // Operands of an instruction, as against numbers of streams, row sums and rows.
    static int reads(const slimrnn_instruction &i) {
        if (i.op >= first_fused) return i.op < PRODUCT_SUM ? 3 : i.op < END_OF_FUSED ? 2 : 0;
        return i.op == SLIMRNN_LOAD ? 1 : registers_read(i.op);
    }
    static int operand(const slimrnn_instruction &i, int k) { return k == 0 ? i.a : k == 1 ? i.b : i.c; }
    static bool writes(const slimrnn_instruction &i) {
        return i.op < PRODUCT_SUM && i.op != SLIMRNN_SUM && i.op != SLIMRNN_TOTAL;
    }
    bool writes_to(int j, int operand) const { return writes(body[j]) && body[j].to == operand; }
    bool reads_operand(int j, int wanted) const {
        for (int k = 0; k < reads(body[j]); k++)
            if (operand(body[j], k) == wanted) return true;
        return false;
    }
    bool reads_memory_of(int j, int place) const {
        for (int k = 0; k < reads(body[j]); k++)
            if (touches(operand(body[j], k), place)) return true;
        return false;
    }
    // From instruction j on until it is written again, the register is read only while the place still holds the same.
    bool stays(int from, int in_register, int place) const {
        bool changed = false;
        for (int j = from; j < length; j++) {
            if (changed && reads_operand(j, in_register)) return false;
            if (writes_to(j, in_register)) return true;
            changed |= writes(body[j]) && touches(body[j].to, place);
        }
        return true;
    }
    void rename(int from, int in_register, int place) {
        for (int j = from; j < length; j++) {
            slimrnn_instruction &i = body[j];
            int32_t *const operands[] = {&i.a, &i.b, &i.c};
            for (int k = 0; k < reads(i); k++)
                if (*operands[k] == in_register) *operands[k] = place;
            if (writes_to(j, in_register)) return;
        }
    }
    void skip_load(int j) {
        const slimrnn_instruction load = body[j];
        if (load.op != SLIMRNN_LOAD || !stays(j + 1, load.to, load.a)) return;
        body[j].op = skipped;
        rename(j + 1, load.to, load.a);
    }
    // What makes the register writes the place instead, unless the place is in use in between.
    void skip_store(int j) {
        const slimrnn_instruction store = body[j];
        if (store.op != SLIMRNN_STORE || is_place(store.a) || store.a < cell->constant_count) return;
        int maker = j - 1;
        for (; maker >= 0 && !writes_to(maker, store.a); maker--)
            if (reads_memory_of(maker, store.to) || (writes(body[maker]) && touches(body[maker].to, store.to))) return;
        if (maker < 0 || !stays(j + 1, store.a, store.to)) return;
        body[j].op = skipped;
        rename(maker + 1, store.a, store.to);
        body[maker].to = store.to;
    }
    bool changes(int j, int operand) const {
        return writes_to(j, operand) || (is_place(operand) && writes(body[j]) && touches(body[j].to, operand));
    }
    bool is_read(int from, int in_register) const {
        for (int j = from; j < length; j++) {
            if (reads_operand(j, in_register)) return true;
            if (writes_to(j, in_register)) return false;
        }
        return false;
    }
    // Instruction j goes into the only one that reads what it makes, if that finds the same operands.
    void fuse(int j) {
        const slimrnn_instruction first = body[j];
        if (!is_simple(first.op) || is_place(first.to)) return;
        int k = j + 1;
        for (; k < length && !reads_operand(k, first.to); k++)
            if (changes(k, first.to) || changes(k, first.a) || changes(k, first.b)) return;
        if (k == length) return;
        const slimrnn_instruction second = body[k];
        if (!writes_to(k, first.to) && is_read(k + 1, first.to)) return;
        if (is_simple(second.op) && second.a != second.b) {
            const bool is_right = second.b == first.to;
            const int op = fused(first.op, second.op, is_right);
            body[k] = {op, second.to, first.a, first.b, is_right ? second.a : second.b};
        } else if (first.op == SLIMRNN_MUL && (second.op == SLIMRNN_SUM || second.op == SLIMRNN_TOTAL)) {
            body[k] = {second.op == SLIMRNN_SUM ? PRODUCT_SUM : PRODUCT_TOTAL, second.to, first.a, first.b, 0};
        } else {
            return;
        }
        body[j].op = skipped;
    }
    void remove_skipped() {
        int left = 0;
        for (int j = 0; j < length; j++)
            if (body[j].op != skipped) body[left++] = body[j];
        length = left;
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
