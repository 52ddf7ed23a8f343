// W = W_1 ⊗ … ⊗ W_k, one factor after the other, last first. Neighbouring small factors are merged beforehand: the last
// ones until they fill a panel, so that they become one ordinary product, the others up to 4 x 4, which costs no more
// arithmetic than two 2 x 2 stages and saves a pass. Takes the factors, (gates, p, q) each.
#pragma once
#include "term.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Kronecker : Term<T> {
    static constexpr int most = 64;         // factors
    static constexpr int64_t together = 4;  // rows whose gradients are summed in one product

    static constexpr const char *name = "kronecker";
    static bool is_sound(const Operands &o, bool backward) {
        int64_t rows = 1, columns = 1;
        if (o.count() < 1 || o.count() > most || (backward && !o.have_gradients(o.count()))) return false;
        for (int i = 0; i < o.count(); i++) {
            const int64_t p = o.extent(i, 1), q = o.extent(i, 2);
            if (!o.has(i, o.gates(), p, q) || p > o.size() / rows || q > o.size() / columns) return false;
            rows *= p, columns *= q;
        }
        return rows == o.size() && columns == o.size();
    }
    static Term<T> *make(const Operands &o);  // see kronecker_traces.h

    struct Group {
        int first = 0, last = 0;      // factors first ... last-1
        int64_t p = 1, q = 1;         // size of the merged factor
        int64_t left = 1, right = 1;  // (left, q, right) -> (left, p, right) in numbers of the field
        int64_t forth = 0, back = 0;  // where its matrices lie in a gate's packed memory
        int64_t sums = 0;             // where its gradient lies in a gate's sums
    };

    int gates, factors, group_count = 0;
    int64_t width, field, largest = 0, packed_per_gate = 0, sums_per_gate = 0;
    int64_t p[most], q[most];
    const T *data[most];
    T *target[most];
    Group group[most];  // in the order in which they are applied: the last factors first
    T *memory = nullptr;

    explicit Kronecker(const Operands &o)
        : gates(o.gates()), factors(o.count()), width(o.width()), field(o.is_complex() ? 2 : 1) {
        for (int i = 0; i < factors; i++) {
            p[i] = o.extent(i, 1), q[i] = o.extent(i, 2);
            data[i] = o.data<T>(i), target[i] = o.gradient<T>(i);
        }
        merge();
        place();
    }

    void merge() {
        for (int i = factors; i > 0;) {
            Group g;
            g.last = i;
            const bool trailing = group_count == 0;
            const int64_t limit = trailing ? 32 : 4;
            do {
                i--;
                g.p *= p[i], g.q *= q[i];
            } while (i > 0 && g.p * p[i - 1] <= limit && g.q * q[i - 1] <= limit &&
                     !(trailing && g.q * field >= lanes<T>));
            g.first = i;
            group[group_count++] = g;
        }
    }
    void place() {
        int64_t right = 1, size = width / field;
        largest = size;
        for (int k = 0; k < group_count; k++) {
            Group &g = group[k];
            g.right = right;
            g.left = size / (g.q * right);
            size = g.left * g.p * right;
            right *= g.p;
            largest = std::max(largest, size);
            Packed<T> f{g.q * field, g.p * field, nullptr}, b{g.p * field, g.q * field, nullptr};
            g.forth = packed_per_gate;
            packed_per_gate += k == 0 ? f.size() : g.p * g.q * field;
            g.back = packed_per_gate;
            packed_per_gate += k == 0 ? b.size() : g.p * g.q * field;
            g.sums = sums_per_gate;
            sums_per_gate += g.p * g.q * (k == 0 ? field * field : field * lanes<T>);
        }
        largest = round_up(largest * field, lanes<T>);
    }

    // Entry (row, column) of a merged factor: the product of its factors' entries, re and im.
    void entry(const Group &g, int gate, int64_t row, int64_t column, T *out, int without = -1) const {
        T re = 1, im = 0;
        for (int i = g.last - 1; i >= g.first; i--) {
            int64_t at = (int64_t(gate) * p[i] + row % p[i]) * q[i] + column % q[i];
            row /= p[i], column /= q[i];
            if (i == without) continue;
            const T *z = data[i] + at * field;
            const T a = z[0], b = field == 2 ? z[1] : T(0), old = re;
            re = re * a - im * b;
            im = old * b + im * a;
        }
        out[0] = re;
        if (field == 2) out[1] = im;
    }
    int64_t packed_size() const override {
        int64_t merged = 0;
        for (int k = 0; k < group_count; k++) merged = std::max(merged, group[k].p * group[k].q * field);
        return gates * packed_per_gate + merged;
    }
    void pack(T *at, bool) override {
        memory = at;
        T *merged = at + gates * packed_per_gate;
        for (int gate = 0; gate < gates; gate++)
            for (int k = 0; k < group_count; k++) {
                const Group &g = group[k];
                for (int64_t i = 0; i < g.p; i++)
                    for (int64_t j = 0; j < g.q; j++) entry(g, gate, i, j, merged + (i * g.q + j) * field);
                if (k == 0) {
                    Matrix<T> w{merged, g.q, field == 2};
                    forth(gate).pack([&](int64_t a, int64_t b) { return w(b, a); });
                    back(gate).pack([&](int64_t a, int64_t b) { return w(a, b); });
                    continue;
                }
                T *there = factor(gate, g.forth), *adjoint = factor(gate, g.back);
                memcpy(there, merged, sizeof(T) * g.p * g.q * field);
                for (int64_t i = 0; i < g.p; i++)
                    for (int64_t j = 0; j < g.q; j++) {
                        T *to = adjoint + (j * g.p + i) * field;
                        to[0] = merged[(i * g.q + j) * field];
                        if (field == 2) to[1] = -merged[(i * g.q + j) * field + 1];
                    }
            }
    }
    T *factor(int gate, int64_t at) const { return memory + gate * packed_per_gate + at; }
    Packed<T> forth(int gate) const { return {group[0].q * field, group[0].p * field, factor(gate, group[0].forth)}; }
    Packed<T> back(int gate) const { return {group[0].p * field, group[0].q * field, factor(gate, group[0].back)}; }

    int64_t scratch_size(int64_t) const override { return (group_count + 2) * (together * largest + panel<T>); }

    // to (left, p, right) (+)= w (p, q) from (left, q, right), vectors along `right`
    template <int BLOCK, bool ADD>
    static void outputs(int64_t inputs, int64_t length, int64_t field, const T *w, int64_t ldw, const T *from, T *to) {
        Vec<T> sign;
        for (int j = 0; j < lanes<T>; j++) sign[j] = j % 2 ? T(1) : T(-1);
        each_vector<T>(length, [&](int64_t r, auto n) {
            Vec<T> sum[BLOCK];
            for (int i = 0; i < BLOCK; i++) sum[i] = ADD ? n.get(to + i * length + r) : Vec<T>{};
            for (int64_t k = 0; k < inputs; k++) {
                Vec<T> v = n.get(from + k * length + r);
                if (field == 1) {
                    for (int i = 0; i < BLOCK; i++) sum[i] += v * w[i * ldw + k];
                } else {
                    Vec<T> s = swap_pairs<T>(v) * sign;
                    for (int i = 0; i < BLOCK; i++) {
                        sum[i] += v * w[i * ldw + 2 * k];
                        sum[i] += s * w[i * ldw + 2 * k + 1];
                    }
                }
            }
            for (int i = 0; i < BLOCK; i++) n.put(to + i * length + r, sum[i]);
        });
    }
    template <bool ADD>
    void stage(int64_t left, int64_t out, int64_t in, int64_t right, const T *w, const T *from, T *to) const {
        const int64_t length = right * field, ldw = in * field;
        for (int64_t l = 0; l < left; l++, from += in * length, to += out * length) {
            int64_t i = 0;
            for (; i + 4 <= out; i += 4) outputs<4, ADD>(in, length, field, w + i * ldw, ldw, from, to + i * length);
            for (; i + 2 <= out; i += 2) outputs<2, ADD>(in, length, field, w + i * ldw, ldw, from, to + i * length);
            for (; i < out; i++) outputs<1, ADD>(in, length, field, w + i * ldw, ldw, from, to + i * length);
        }
    }

    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                int last) const override {
        T *buffer[2] = {scratch.take(largest), scratch.take(largest)};
        const Group &g0 = group[0];
        for (int64_t r = 0; r < rows; r++)
            for (int gate = first; gate < last; gate++) {
                T *result = y + r * ldy + (gate - first) * width;
                T *now = group_count == 1 ? result : buffer[0];
                if (group_count > 1) memset(now, 0, sizeof(T) * g0.left * g0.p * field);
                multiply(g0.left, x + r * ldx, g0.q * field, forth(gate), now, g0.p * field);
                for (int k = 1; k < group_count; k++) {
                    const Group &g = group[k];
                    const T *w = factor(gate, g.forth);
                    if (k + 1 == group_count) {
                        stage<true>(g.left, g.p, g.q, g.right, w, now, result);
                    } else {
                        T *next = buffer[k % 2];
                        stage<false>(g.left, g.p, g.q, g.right, w, now, next);
                        now = next;
                    }
                }
            }
    }
    void rmatvec(Arena<T> scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last, T *,
                 int64_t) const override {
        T *buffer[2] = {scratch.take(largest), scratch.take(largest)};
        const Group &g0 = group[0];
        for (int64_t r = 0; r < rows; r++)
            for (int gate = first; gate < last; gate++) {
                const T *now = y + r * ldy + (gate - first) * width;
                for (int k = group_count - 1; k > 0; k--) {
                    const Group &g = group[k];
                    stage<false>(g.left, g.q, g.p, g.right, factor(gate, g.back), now, buffer[k % 2]);
                    now = buffer[k % 2];
                }
                multiply(g0.left, now, g0.p * field, back(gate), x + r * ldx, g0.q * field);
            }
    }

    // --- gradients of the merged factors, and from them those of the factors ---

    int64_t gradient_size() const override { return gates * sums_per_gate; }

    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                  const T *, int64_t, T *sums) const override {
        for (int64_t r = 0; r < rows; r += together) {
            const int64_t count = std::min(together, rows - r);
            for (int gate = first; gate < last; gate++)
                few_rows(scratch, count, x + r * ldx, ldx, y + r * ldy + (gate - first) * width, ldy, gate,
                         sums + gate * sums_per_gate);
        }
    }
    void few_rows(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int gate,
                  T *sums) const {
        // Inputs of every stage; the first one is copied, since the product below reads whole vectors past a row's end.
        T *inputs[most + 1];
        for (int k = 0; k < group_count; k++) inputs[k] = scratch.take(together * largest + panel<T>);
        T *way_back[2] = {scratch.take(together * largest), scratch.take(together * largest)};
        const Group &g0 = group[0];
        const int64_t in0 = g0.left * g0.q * field, out0 = g0.left * g0.p * field;
        for (int64_t r = 0; r < rows; r++) {
            memcpy(inputs[0] + r * in0, x + r * ldx, sizeof(T) * in0);
            if (group_count > 1) {
                memset(inputs[1] + r * out0, 0, sizeof(T) * out0);
                multiply(g0.left, x + r * ldx, g0.q * field, forth(gate), inputs[1] + r * out0, g0.p * field);
            }
            for (int k = 1; k + 1 < group_count; k++) {
                const Group &g = group[k];
                stage<false>(g.left, g.p, g.q, g.right, factor(gate, g.forth),
                             inputs[k] + r * g.left * g.q * g.right * field,
                             inputs[k + 1] + r * g.left * g.p * g.right * field);
            }
        }
        int64_t size = width;  // of a row of the gradient on its way back
        for (int64_t r = 0; r < rows; r++) memcpy(way_back[0] + r * size, y + r * ldy, sizeof(T) * size);
        T *now = way_back[0], *next = way_back[1];
        for (int k = group_count - 1; k > 0; k--) {
            const Group &g = group[k];
            const int64_t before = g.left * g.q * g.right * field;
            for (int64_t r = 0; r < rows; r++) {
                lane_sums(g, inputs[k] + r * before, now + r * size, sums + g.sums);
                stage<false>(g.left, g.q, g.p, g.right, factor(gate, g.back), now + r * size, next + r * before);
            }
            std::swap(now, next);
            size = before;
        }
        const int64_t p0 = g0.p * field, q0 = g0.q * field;
        correlate(rows * g0.left, p0, q0, now, p0, inputs[0], q0, sums + g0.sums, q0);
    }
    // sums (p, q, field, lanes) += y x and swapped y times x, lane by lane, for one row of (left, ·, right)
    void lane_sums(const Group &g, const T *x, const T *y, T *sums) const {
        for (int64_t i = 0; i < g.p; i++) {
            int64_t j = 0;
            for (; j + 4 <= g.q; j += 4) lane_sums<4>(g, x, y, i, j, sums);
            for (; j + 2 <= g.q; j += 2) lane_sums<2>(g, x, y, i, j, sums);
            for (; j < g.q; j++) lane_sums<1>(g, x, y, i, j, sums);
        }
    }
    template <int MANY> void lane_sums(const Group &g, const T *x, const T *y, int64_t i, int64_t j, T *sums) const {
        const int64_t length = g.right * field;
        T *to = sums + (i * g.q + j) * field * lanes<T>;
        Vec<T> same[MANY], cross[MANY];
        for (int m = 0; m < MANY; m++) same[m] = cross[m] = Vec<T>{};
        for (int64_t l = 0; l < g.left; l++) {
            const T *a = y + (l * g.p + i) * length, *b = x + (l * g.q + j) * length;
            each_vector<T>(length, [&](int64_t r, auto n) {
                const Vec<T> u = n.get(a + r), turned = swap_pairs<T>(u);
                for (int m = 0; m < MANY; m++) {
                    const Vec<T> v = n.get(b + m * length + r);
                    same[m] += u * v;
                    if (field == 2) cross[m] += turned * v;
                }
            });
        }
        for (int m = 0; m < MANY; m++) {
            T *at = to + m * field * lanes<T>;
            store(at, load(at) + same[m]);
            if (field == 2) store(at + lanes<T>, load(at + lanes<T>) + cross[m]);
        }
    }
    // Gradient of one entry of a merged factor: Σ y conj(x).
    void collapse(int k, const T *sums, int64_t i, int64_t j, T *out) const {
        const Group &g = group[k];
        out[0] = out[1] = 0;
        if (k == 0 && field == 1) {
            out[0] = sums[i * g.q + j];
        } else if (k == 0) {
            const T *a = sums + 2 * i * 2 * g.q + 2 * j, *b = a + 2 * g.q;
            out[0] = a[0] + b[1];
            out[1] = b[0] - a[1];
        } else {
            const T *same = sums + (i * g.q + j) * field * lanes<T>, *cross = same + lanes<T>;
            for (int n = 0; n < lanes<T>; n++) {
                out[0] += same[n];
                if (field == 2) out[1] += n % 2 ? -cross[n] : cross[n];
            }
        }
    }
    void deliver(const T *sums, int first, int last) const override {
        for (int gate = first; gate < last; gate++)
            for (int k = 0; k < group_count; k++) {
                const Group &g = group[k];
                for (int64_t i = 0; i < g.p; i++)
                    for (int64_t j = 0; j < g.q; j++) {
                        T d[2];
                        collapse(k, sums + gate * sums_per_gate + g.sums, i, j, d);
                        int64_t row = i, column = j;
                        for (int f = g.last - 1; f >= g.first; f--) {
                            T others[2] = {1, 0};
                            entry(g, gate, i, j, others, f);
                            int64_t at = (int64_t(gate) * p[f] + row % p[f]) * q[f] + column % q[f];
                            row /= p[f], column /= q[f];
                            T *to = target[f] + at * field;
                            to[0] += d[0] * others[0] + d[1] * others[1];
                            if (field == 2) to[1] += d[1] * others[0] - d[0] * others[1];
                        }
                    }
            }
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
