// Gradients of the parameters, summed on the way back every few steps, while what they are made of is at hand.
#pragma once
#include "cells/step.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

inline int64_t rows_at_once(int64_t rows) { return std::max<int64_t>(rows, 96 / rows * rows); }

template <class T> class Gradients {
    const slimrnn_scan &s;
    const slimrnn_cell &cell;
    const Recurrence<T> &map;
    const int64_t width, row_gates;

    // Where a thread's sums lie: every term's, own, and the input's: its matrix transposed with the bias as its last
    // row, or the products of all tokens.
    struct Sums {
        T *term[SLIMRNN_MOST_TERMS], *input, *own;
        int64_t size;
    };
    const Sums sums;

    // The last few steps, row by row.
    int64_t rows = 0;
    const int64_t most, ldd, ldx, ldu;
    T *d;  // (rows, G, width), rows ldd apart: gradients of the gates
    T *u;  // (rows, ldu) the input and a one
    // What each product was of, (masks, rows, ldx), and its gradient where that is not the gates'. Products of the same
    // state share x; products that have no gate in common share what the terms keep, (rows, matrices, kept_size) each.
    ProductSpace<T> products[SLIMRNN_MOST_PRODUCTS];

    // Rows a multiple of a page apart would compete for the same few lines of the cache.
    static int64_t apart(int64_t length) { return length % (1024 / sizeof(T)) ? length : length + lanes<T>; }

    static Sums split(const slimrnn_scan &s, Term<T> *const *terms, T *at) {
        Sums sums{};
        int64_t size = 0;
        for (int k = 0; k < terms_per_phase(s); k++) {
            sums.term[k] = at + size;
            size += round_up(terms[k]->gradient_size(), lanes<T>);
        }
        sums.input = at + size;
        size += round_up(s.cell->gates * s.width * input_rows(s), lanes<T>);
        sums.own = at + size;
        size += round_up(s.cell->own_rows * s.width, lanes<T>);
        sums.size = size;
        return sums;
    }

    static int64_t input_rows(const slimrnn_scan &s) {
        return s.u ? s.input_size + 1 : s.tokens && s.d_wx ? s.vocabulary : 0;
    }
    int64_t ldy(int p) const { return (cell.products[p].last - cell.products[p].first) * width; }
    int64_t ldk(int k) const { return cell.matrices * map.terms[k]->kept_size(); }
    int64_t all_rows() const { return round_up(most * ldx + panel<T>, lanes<T>); }  // numbers of x, for one mask
    T *x_of(int p, int gate) const { return products[p].x + (map.masks > 1 ? gate : 0) * all_rows(); }
    // An earlier product of the same state, or p itself.
    int same_x(int p) const {
        for (int q = 0; q < p; q++)
            if (cell.products[q].x >= 0 && cell.products[q].x == cell.products[p].x) return q;
        return p;
    }
    // The first memory of kept values that none of the products before p uses for a gate of p's.
    int kept_group(int p, const int *groups) const {
        for (int group = 0;; group++) {
            bool taken = false;
            for (int q = 0; q < p; q++)
                taken |= groups[q] == group && cell.products[q].first < cell.products[p].last &&
                         cell.products[p].first < cell.products[q].last;
            if (!taken) return group;
        }
    }
    void take_kept(Arena<T> &memory) {
        int groups[SLIMRNN_MOST_PRODUCTS], made = 0, first[SLIMRNN_MOST_PRODUCTS];
        for (int p = 0; p < cell.product_count; p++) {
            const int group = groups[p] = kept_group(p, groups);
            const bool fresh = group == made;
            if (fresh) first[made++] = p;
            for (int k = 0; k < map.count; k++)
                products[p].kept[k] = fresh ? memory.take(most * ldk(k)) : products[first[group]].kept[k];
        }
    }

  public:
    Gradients(const slimrnn_scan &s, const Recurrence<T> &map, Arena<T> &memory, T *at)
        : s(s), cell(*s.cell), map(map), width(s.width), row_gates(cell.gates * s.width), sums(split(s, map.terms, at)),
          most(rows_at_once(map.rows)), ldd(apart(row_gates)), ldx(apart(round_up(width, panel<T>))),
          ldu(round_up(s.input_size + 1, panel<T>)) {
        d = memory.take(most * ldd + panel<T>);
        if (s.u) u = memory.take(most * ldu + panel<T>);
        for (int p = 0; p < cell.product_count; p++) {
            products[p].x = same_x(p) < p ? products[same_x(p)].x : memory.take(map.masks * all_rows());
            if (!cell.products[p].of_gates) products[p].y = memory.take(most * ldy(p) + panel<T>);
        }
        take_kept(memory);
    }
    static int64_t size(const slimrnn_scan &s, Term<T> *const *terms) { return split(s, terms, nullptr).size; }

    T *own() const { return sums.own; }

    // Where the next step's gradients go.
    void make_room(Step<T> &step) const {
        step.d_gates = d + rows * ldd;
        step.ldd = ldd, step.ldx = ldx;
        for (int p = 0; p < cell.product_count; p++) {
            ProductSpace<T> &room = step.products[p];
            room.x = x_of(p, cell.products[p].first) + rows * ldx;
            room.y = cell.products[p].of_gates ? nullptr : products[p].y + rows * ldy(p);
            for (int k = 0; k < map.count; k++) room.kept[k] = products[p].kept[k] + rows * ldk(k);
        }
    }
    // The step has been taken back; `input` is what it saw, where that is multiplied here.
    void remember(const Step<T> &step, const T *input) {
        for (int p = 0; p < cell.product_count; p++)
            if (same_x(p) == p || map.masks > 1) remember_x(step, p);
        for (int64_t r = rows; input && r < rows + step.rows; r++, input += s.input_size) {
            memcpy(u + r * ldu, input, sizeof(T) * s.input_size);
            u[r * ldu + s.input_size] = T(1);
        }
        rows += step.rows;
    }
    // A gradient of U x + b, where that was looked up.
    void add_token(int64_t token, const T *d) const {
        T *sum = sums.input + token * row_gates;
        for (int64_t i = 0; i < row_gates; i++) sum[i] += d[i];
    }
    bool is_full() const { return rows + map.rows > most; }

    void sum_up() {
        if (!rows) return;
        for (int k = 0; k < map.count; k++)
            for (int p = 0; p < cell.product_count; p++) {
                const auto &product = cell.products[p];
                const T *y = product.of_gates ? d + product.first * width : products[p].y;
                const int64_t apart = product.of_gates ? ldd : ldy(p);
                map.by_mask(product.first, product.last, [&](int from, int until) {
                    map.terms[k]->gradient(map.scratch, rows, x_of(p, from), ldx, y + (from - product.first) * width,
                                           apart, from, until, products[p].kept[k], ldk(k), sums.term[k]);
                });
            }
        if (s.u)  // some panels of gates for each of the crew
            in_pieces(map.scratch.crew, (row_gates + panel<T> - 1) / panel<T>, [&](int64_t from, int64_t to) {
                const int64_t first = from * panel<T>, last = std::min(to * panel<T>, row_gates);
                correlate(rows, s.input_size + 1, last - first, u, ldu, d + first, ldd, sums.input + first, row_gates);
            });
        rows = 0;
    }

    // Adds a thread's sums of a phase to the caller's tensors; returns where those of the next phase lie.
    static const T *deliver(const slimrnn_scan &s, Term<T> *const *terms, const T *at, int phase) {
        const Sums sums = split(s, terms, const_cast<T *>(at));
        for (int k = 0; k < terms_per_phase(s); k++) terms[k]->deliver(sums.term[k], 0, s.cell->matrices);
        const int64_t own = s.cell->own_rows * s.width, m = s.input_size;
        T *d_own = static_cast<T *>(s.d_own) + phase * own;
        for (int64_t i = 0; i < own; i++) d_own[i] += sums.own[i];
        if (s.u) deliver_input(s, sums.input, m);
        const int64_t table = s.u ? 0 : input_rows(s) * s.cell->gates * s.width;
        for (int64_t i = 0; i < table; i++) static_cast<T *>(s.d_wx)[i] += sums.input[i];
        return at + sums.size;
    }
    static void deliver_input(const slimrnn_scan &s, const T *sums, int64_t m) {
        const int64_t n = s.cell->gates * s.width;
        turn<T, true>(m, n, sums, n, static_cast<T *>(s.d_u), m);
        for (int64_t i = 0; i < n && s.bias; i++) static_cast<T *>(s.d_bias)[i] += sums[m * n + i];
    }

  private:
    // What product p was of, masked: a state, or what the way back wrote where the first gate's is kept.
    void remember_x(const Step<T> &step, int p) {
        const int of = cell.products[p].x;
        const T *from = of < 0                     ? nullptr
                        : of < SLIMRNN_MOST_STATES ? step.before[of]
                                                   : step.after[of - SLIMRNN_MOST_STATES];
        const int first = cell.products[p].first;
        for (int gate = map.masks > 1 ? cell.products[p].last - 1 : first; gate >= first; gate--)
            for (int64_t r = 0; r < step.rows; r++) {
                T *to = x_of(p, gate) + (rows + r) * ldx;
                const T *x = from ? from + r * width : x_of(p, first) + (rows + r) * ldx;
                const T *factors = step.map->mask ? step.map->mask_of(r, gate) : nullptr;
                if (factors)
                    for (int64_t i = 0; i < width; i++) to[i] = x[i] * factors[i];
                else if (from)
                    memcpy(to, x, sizeof(T) * width);
            }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
