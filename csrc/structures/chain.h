// W = A B …: the state meets the last factor first. From there on every gate has a vector of its own, so the other factors
// are applied gate by gate. A factor is one term or, where it is a sum, several. Takes the tensors of all terms, one after
// the other, and then an int64 tensor: for every factor the number of its terms, and for every term the code of its
// structure (see `code_of`) and the number of its tensors. A term may be a chain itself.
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Structure;
template <class T> const Structure<T> *find_structure(int64_t code);  // null where there is none

// A structure's name as a number (FNV-1a, 32 bits).
inline int64_t code_of(const char *name) {
    uint32_t code = 2166136261u;
    for (; *name; name++) code = (code ^ uint8_t(*name)) * 16777619u;
    return int64_t(code);
}

template <class T> struct Chain : Term<T> {
    static constexpr const char *name = "chain";
    static constexpr int most_terms = 16, most_depth = 8;

    // Calls f(factor, structure, operands) for every term; false where the last tensor describes no such chain, or where
    // f says so.
    template <class F> static bool each_term(const Operands &o, F f) {
        const int last = o.count() - 1;
        if (last < 1 || o.dims(last) != 1 || !o.term.tensors[last].data) return false;
        const int64_t *at = o.data<int64_t>(last), *end = at + o.extent(last, 0);
        int used = 0, terms = 0;
        for (int factor = 0; at < end; factor++)
            for (int64_t left = *at++; left > 0; left--, at += 2) {
                if (left > most_terms || ++terms > most_terms || end - at < 2 * left) return false;
                const Structure<T> *structure = find_structure<T>(at[0]);
                if (!structure || at[1] < 1 || at[1] > last - used) return false;
                const slimrnn_term term{0, int32_t(at[1]), o.term.tensors + used};
                used += int(at[1]);
                if (!f(factor, *structure, Operands{o.scan, term})) return false;
            }
        return used == last;
    }
    static bool is_sound(const Operands &o, bool backward) { return is_sound(o, backward, 0); }
    static bool is_sound(const Operands &o, bool backward, int depth) {
        int factors = 0;
        const bool sound = each_term(o, [&](int factor, const Structure<T> &structure, const Operands &own) {
            const bool is_next = factor == factors || factor + 1 == factors;  // no factor is left out
            factors = factor + 1;
            if (structure.is_sound == static_cast<bool (*)(const Operands &, bool)>(is_sound))
                return is_next && depth < most_depth && is_sound(own, backward, depth + 1);
            return is_next && structure.is_sound(own, backward);
        });
        return sound && factors > 0;
    }
    static Term<T> *make(const Operands &o) {
        Chain *made = new (std::nothrow) Chain(o);
        if (!made) return nullptr;
        const bool done = each_term(o, [&](int factor, const Structure<T> &structure, const Operands &own) {
            Link &link = made->links[made->count++];
            link.factor = factor;
            made->factors = factor + 1;
            return (link.there = structure.make(own)) && (link.back = structure.make(own));
        });
        if (done) return made;
        delete made;
        return nullptr;
    }

    // A term is packed for one direction; on the way back the vectors between the factors are computed again.
    struct Link {
        int factor = 0;
        Term<T> *there = nullptr, *back = nullptr;
    };
    Link links[most_terms];
    int count = 0, factors = 0;
    const int gates;
    const int64_t width;

    explicit Chain(const Operands &o) : gates(o.gates()), width(o.width()) {}
    Chain(const Chain &) = delete;
    ~Chain() override {
        for (Link &link : links) {
            delete link.there;
            delete link.back;
        }
    }

    int64_t packed_size() const override {
        int64_t size = 0;
        for (int k = 0; k < count; k++) size += 2 * round_up(links[k].there->packed_size(), lanes<T>);
        return size;
    }
    void pack(T *at, bool backward) override {
        for (int k = 0; k < count; k++) {
            const int64_t size = round_up(links[k].there->packed_size(), lanes<T>);
            links[k].there->pack(at, false);
            if (backward) links[k].back->pack(at + size, true);
            at += 2 * size;
        }
    }

    int64_t between(int64_t rows) const { return rows * gates * width + panel<T>; }  // numbers between two factors
    int64_t scratch_size(int64_t rows) const override {
        int64_t most = 0;
        for (int k = 0; k < count; k++) most = std::max(most, links[k].there->scratch_size(rows));
        return 2 * round_up(between(rows), lanes<T>) + round_up(most, lanes<T>);
    }
    template <class F> void each_of(int factor, F f) const {
        for (int k = 0; k < count; k++)
            if (links[k].factor == factor) f(links[k], k);
    }

    // y += A x of one factor, for the gates first … last−1. The last factor has one x for all of them.
    void go(int factor, Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
            int last) const {
        each_of(factor, [&](const Link &link, int) {
            if (factor + 1 == factors) link.there->matvec(scratch, rows, x, ldx, y, ldy, first, last);
            for (int g = first; factor + 1 < factors && g < last; g++)
                link.there->matvec(scratch, rows, x + (g - first) * width, ldx, y + (g - first) * width, ldy, g, g + 1);
        });
    }
    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        T *buffer[2] = {scratch.take(between(rows)), scratch.take(between(rows))};
        const int64_t row = (last - first) * width;
        for (int factor = factors - 1; factor > 0; factor--) {
            T *to = buffer[factor % 2];
            memset(to, 0, sizeof(T) * size_t(rows * row));
            go(factor, scratch, rows, x, ldx, to, row, first, last);
            x = to, ldx = row;
        }
        go(0, scratch, rows, x, ldx, y, ldy, first, last);
    }

    // In `kept`, row by row: the gradients between the factors, (factors−1, gates, width), and what every term keeps.
    int64_t kept_size() const override {
        int64_t size = (factors - 1) * width + panel<T>;  // whole vectors are read
        for (int k = 0; k < count; k++) size += links[k].back->kept_size();
        return size;
    }
    int64_t kept_at(int term) const {
        int64_t at = (factors - 1) * width + panel<T>;
        for (int k = 0; k < term; k++) at += links[k].back->kept_size();
        return at * gates;
    }
    void rmatvec(Arena<T> scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last,
                 T *kept, int64_t ldk) const override {
        scratch.take(between(rows)), scratch.take(between(rows));
        const int64_t row = (last - first) * width;
        for (int factor = 0; factor + 1 < factors; factor++) {
            T *to = kept + (factor * gates + first) * width;
            for (int64_t r = 0; r < rows; r++) memset(to + r * ldk, 0, sizeof(T) * size_t(row));
            each_of(factor, [&](const Link &link, int k) {
                for (int g = first; g < last; g++)
                    link.back->rmatvec(scratch, rows, y + (g - first) * width, ldy, to + (g - first) * width, ldk, g,
                                       g + 1, kept + kept_at(k), ldk);
            });
            y = to, ldy = ldk;
        }
        each_of(factors - 1, [&](const Link &link, int k) {
            link.back->rmatvec(scratch, rows, y, ldy, x, ldx, first, last, kept + kept_at(k), ldk);
        });
    }

    int64_t gradient_size() const override {
        int64_t size = 0;
        for (int k = 0; k < count; k++) size += round_up(links[k].back->gradient_size(), lanes<T>);
        return size;
    }
    int64_t sums_at(int term) const {
        int64_t at = 0;
        for (int k = 0; k < term; k++) at += round_up(links[k].back->gradient_size(), lanes<T>);
        return at;
    }
    // Every factor with the x that it saw on the way there and the y that it saw on the way back.
    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *kept, int64_t ldk, T *sums) const override {
        T *buffer[2] = {scratch.take(between(rows)), scratch.take(between(rows))};
        const int64_t row = (last - first) * width;
        for (int factor = factors - 1; factor >= 0; factor--) {
            const bool shared = factor + 1 == factors;
            const T *d = factor ? kept + ((factor - 1) * gates + first) * width : y;
            const int64_t ldd = factor ? ldk : ldy;
            each_of(factor, [&](const Link &link, int k) {
                for (int g = first; g < last; g = shared ? last : g + 1)
                    link.back->gradient(scratch, rows, x + (shared ? 0 : g - first) * width, ldx,
                                        d + (g - first) * width, ldd, g, shared ? last : g + 1, kept + kept_at(k), ldk,
                                        sums + sums_at(k));
            });
            if (!factor) return;
            T *to = buffer[factor % 2];
            memset(to, 0, sizeof(T) * size_t(rows * row));
            go(factor, scratch, rows, x, ldx, to, row, first, last);
            x = to, ldx = row;
        }
    }
    void deliver(const T *sums, int first, int last) const override {
        for (int k = 0; k < count; k++) links[k].back->deliver(sums + sums_at(k), first, last);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
