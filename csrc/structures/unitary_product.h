// W = D₃ R₂ F⁻¹ D₂ Π R₁ F D₁: diagonals D of modulus one, reflections R = I − 2vvᴴ with unit vectors v, the unitary
// Fourier transform F, (Π c)_j = c_{p_j}. A reflection is its vector times one number of a row, and it needs no pass of its
// own: vᴴF a = (Fᴴv)ᴴa is known before the transform, and what is taken off afterwards is a multiple of v. Takes the
// diagonals (1, 3, size), the vectors (1, 2, size) and p, int64 (size); complex, for one gate.
#pragma once
#include "fourier.h"
#include "permutation.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Number {
    T re, im;
    Number operator*(Number z) const { return {re * z.re - im * z.im, re * z.im + im * z.re}; }
    Number operator*(T a) const { return {re * a, im * a}; }
    Number operator+(Number z) const { return {re + z.re, im + z.im}; }
    Number operator~() const { return {re, -im}; }
    static Number get(const T *p) { return {p[0], p[1]}; }
    void put(T *p) const { p[0] = re, p[1] = im; }
};

template <class T> struct UnitaryProduct : Term<T> {
    typedef Number<T> Z;

    static constexpr const char *name = "unitary_product";
    static bool is_sound(const Operands &o, bool backward) {
        return o.count() == 3 && o.is_complex() && o.gates() == 1 && o.has(0, 1, 3, o.size()) &&
               o.has(1, 1, 2, o.size()) && o.has(2, o.size()) && (!backward || o.have_gradients(2)) &&
               is_permutation(o.data<int64_t>(2), o.size());
    }
    static Term<T> *make(const Operands &o) { return new (std::nothrow) UnitaryProduct(o); }

    // W, or Wᴴ, which has the same form: x -> in x -> transform -> middle x in another order -> inverse -> out x. Two
    // numbers of a row are summed up on the way in and in the middle; multiples of vectors by them are added in the middle
    // and at the end. What the gradients need is seen on the way, `seen_size` numbers for every row: the vector before the
    // middle (of W) or after it (of Wᴴ), the result, the two numbers.
    struct Way {
        T *in;      // (n, 2): the factor; of the first sum
        T *middle;  // (n, 3): the factor; times the first number; of the second sum
        T *out;     // (n, 2): the factor; times the second number
        int32_t *order;
        bool shows_before;
    };

    int64_t n, width;
    const T *diagonals, *vectors;
    const int64_t *permutation;
    T *target[2];
    Fourier<T> fourier;
    Way there{}, back{};
    T *spare = nullptr;
    T root;  // √n

    explicit UnitaryProduct(const Operands &o)
        : n(o.size()), width(o.width()), diagonals(o.data<T>(0)), vectors(o.data<T>(1)),
          permutation(o.data<int64_t>(2)), target{o.gradient<T>(0), o.gradient<T>(1)}, fourier(n),
          root(T(std::sqrt(double(n)))) {}

    Z diagonal(int which, int64_t j) const { return Z::get(diagonals + (which - 1) * width + 2 * j); }
    Z vector(int which, int64_t j) const { return Z::get(vectors + (which - 1) * width + 2 * j); }

    // --- packing ---

    int64_t buffers(int W) const { return 4 * W * n + fourier.scratch_size(W); }
    int64_t packed_size() const override {
        return fourier.size + 2 * 15 * n + buffers(narrowest<T>) + 4 * width + 4 * seen_size();
    }
    void pack(T *at, bool) override {
        fourier.pack(at);
        at += fourier.size;
        for (Way *way : {&there, &back}) {
            way->in = at, way->middle = at + 4 * n, way->out = at + 10 * n;
            way->order = reinterpret_cast<int32_t *>(at + 14 * n);
            at += 15 * n;
        }
        spare = at;
        there.shows_before = true;
        T *u1 = spare + buffers(narrowest<T>), *u2 = u1 + width;
        transform_vector(vectors, u1, true), transform_vector(vectors + width, u2, false);
        for (int64_t j = 0; j < n; j++) {
            there.order[j] = int32_t(permutation[j]);
            back.order[permutation[j]] = int32_t(j);
        }
        for (int64_t j = 0; j < n; j++) {
            const Z d1 = diagonal(1, j), d2 = diagonal(2, j), d3 = diagonal(3, j);
            fill_ends(there, j, d1, Z::get(u1 + 2 * j), d3, vector(2, j));
            fill_ends(back, j, ~d3, vector(2, j), ~d1, Z::get(u1 + 2 * j));
            const int64_t i = permutation[j];
            fill_middle(there, j, d2, vector(1, i), Z::get(u2 + 2 * j));
            fill_middle(back, i, ~d2, Z::get(u2 + 2 * j), vector(1, i));
        }
    }
    void fill_ends(Way &way, int64_t j, Z in, Z first, Z out, Z second) const {
        (in * (1 / root)).put(way.in + 4 * j);
        (~first * in).put(way.in + 4 * j + 2);
        out.put(way.out + 4 * j);
        (out * second * T(-2)).put(way.out + 4 * j + 2);
    }
    void fill_middle(Way &way, int64_t j, Z factor, Z first, Z second) const {
        (factor * (1 / root)).put(way.middle + 6 * j);
        (factor * first * (-2 / root)).put(way.middle + 6 * j + 2);
        (~second * root).put(way.middle + 6 * j + 4);
    }
    // F v or Fᴴ v
    void transform_vector(const T *v, T *to, bool inverse) const {
        constexpr int W = narrowest<T>;
        T *a = spare, *b = a + 2 * W * n;
        from_rows<T, W>(1, n, v, width, [&](int64_t j, int, Point<T, W> z) { (z * (1 / root)).put(a + 2 * W * j); });
        const T *found = fourier.template transform<W>(a, b, b + 2 * W * n, inverse);
        for (int64_t j = 0; j < n; j++) to[2 * j] = found[2 * W * j], to[2 * j + 1] = found[2 * W * j + W];
    }

    // --- the product ---

    // y (or nothing) += W x or Wᴴ x
    template <int W>
    void run(const Way &way, T *memory, int count, const T *x, int64_t ldx, T *y, int64_t ldy, T *seen) const {
        typedef Point<T, W> P;
        T *a = memory, *b = a + 2 * W * n, *folded = b + 2 * W * n;
        Dot<T, W> first, second;
        from_rows<T, W>(count, n, x, ldx, [&](int64_t j, int half, P z) {
            z.times(way.in + 4 * j).put(a + 2 * W * j);
            first.add(half, way.in + 4 * j + 2, z);
        });
        const P one = first.total();
        T *before = fourier.template transform<W>(a, b, folded, false), *after = before == a ? b : a;
        for (int64_t j = 0; j < n; j++) {
            const T *w = way.middle + 6 * j;
            const P z = P::get(before + 2 * W * way.order[j]).times(w) + one.times(w + 2);
            z.put(after + 2 * W * j);
            second.add(j % 2, w + 4, z);
        }
        const P two = second.total();
        if (seen) show<W>(count, way.shows_before ? before : after, one, two, seen);
        const T *result = fourier.template transform<W>(after, before, folded, true);
        auto last = [&](int64_t j) {
            return P::get(result + 2 * W * j).times(way.out + 4 * j) + two.times(way.out + 4 * j + 2);
        };
        to_rows<T, W>(count, n, last, seen ? seen + width : nullptr, seen_size(), y, ldy);
    }
    template <int W> void show(int count, const T *from, Point<T, W> one, Point<T, W> two, T *seen) const {
        auto get = [&](int64_t j) { return Point<T, W>::get(from + 2 * W * j); };
        to_rows<T, W>(count, n, get, seen, seen_size(), nullptr, 0);
        for (int r = 0; r < count; r++) {
            T *to = seen + r * seen_size() + 2 * width;
            to[0] = one.re[r], to[1] = one.im[r], to[2] = two.re[r], to[3] = two.im[r];
        }
    }
    int64_t seen_size() const { return 2 * width + 4; }
    int64_t scratch_size(int64_t) const override {
        return round_up(buffers(widest<T>), lanes<T>) + round_up(widest<T> * seen_size(), lanes<T>);
    }
    void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int, int) const override {
        T *memory = scratch.take(buffers(widest<T>));
        groups<T>(rows, [&](auto W, int64_t at, int count) {
            run<W>(there, memory, count, x + at * ldx, ldx, y + at * ldy, ldy, nullptr);
        });
    }
    int64_t kept_size() const override { return seen_size(); }
    void rmatvec(Arena<T> scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int, int, T *kept,
                 int64_t ldk) const override {
        T *memory = scratch.take(buffers(widest<T>));
        groups<T>(rows, [&](auto W, int64_t at, int count) {
            run<W>(back, memory, count, y + at * ldy, ldy, x + at * ldx, ldx, kept + at * ldk);
        });
    }

    // --- gradients ---

    // A diagonal's is the sum of y conj(x) of what goes out and in, element by element: Wᴴy with x, the middle of the way
    // back with the spectrum of the way there, y with W x, each times a diagonal in the end. A reflection's is
    // −2 Σ (conj(vᴴa) b + conj(vᴴb) a), a before and b after it on the way there and back: images of the sums of y and of x
    // with the rows' numbers, so that these sums, (4, width) each, are taken.
    int64_t gradient_size() const override { return 14 * width; }
    void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int, int,
                  const T *kept, int64_t ldk, T *sums) const override {
        T *memory = scratch.take(buffers(widest<T>)), *seen = scratch.take(widest<T> * seen_size());
        const int64_t lds = seen_size();
        groups<T>(rows, [&](auto W, int64_t at, int count) {
            const T *x0 = x + at * ldx, *y0 = y + at * ldy, *kept0 = kept + at * ldk;
            run<W>(there, memory, count, x0, ldx, nullptr, 0, seen);
            products(count, kept0 + width, ldk, x0, ldx, sums);
            products(count, kept0, ldk, seen, lds, sums + 2 * width);
            products(count, y0, ldy, seen + width, lds, sums + 4 * width);
            correlate(count, 4, width, kept0 + 2 * width, ldk, x0, ldx, sums + 6 * width, width);
            correlate(count, 4, width, seen + 2 * width, lds, y0, ldy, sums + 10 * width, width);
        });
    }
    // sums (2, width) += a b and a times swapped b
    void products(int64_t rows, const T *a, int64_t lda, const T *b, int64_t ldb, T *sums) const {
        each_vector<T>(width, [&](int64_t i, auto n) {
            Vec<T> same = n.get(sums + i), cross = n.get(sums + width + i);
            for (int64_t r = 0; r < rows; r++) {
                const Vec<T> u = n.get(a + r * lda + i), v = n.get(b + r * ldb + i);
                same += u * v;
                cross += u * swap_pairs<T>(v);
            }
            n.put(sums + i, same);
            n.put(sums + width + i, cross);
        });
    }
    // Σ a conj(b) from the sums of `products`
    Z product(const T *sums, int64_t j) const {
        const T *same = sums + 2 * j, *cross = same + width;
        return {same[0] + same[1], cross[1] - cross[0]};
    }
    // Σ conj(s) a for the numbers s, from the sums with their parts
    void conjugate(const T *sums, T *to) const {
        for (int64_t i = 0; i < width; i += 2) {
            to[i] = sums[i] + sums[width + i + 1];
            to[i + 1] = sums[i + 1] - sums[width + i];
        }
    }
    // The rows of sums are few enough for one narrow group: first that of R₂'s, then that of R₁'s.
    void deliver(const T *sums, int, int) const override {
        constexpr int W = narrowest<T>;
        T *of_x = spare + buffers(W), *of_y = of_x + 2 * width;
        T *forth = of_y + 2 * width, *aback = forth + 2 * seen_size();
        for (int k = 0; k < 2; k++) {
            conjugate(sums + (6 + 2 * k) * width, of_x + k * width);
            conjugate(sums + (12 - 2 * k) * width, of_y + k * width);
        }
        run<W>(there, spare, 2, of_x, width, nullptr, 0, forth);
        run<W>(back, spare, 2, of_y, width, nullptr, 0, aback);
        const T *forth1 = forth + seen_size(), *aback1 = aback + seen_size();
        const Z two = Z::get(forth + 2 * width + 2);
        for (int64_t j = 0; j < n; j++) {
            const int64_t i = permutation[j];
            const Z d1 = diagonal(1, j), d2 = diagonal(2, j), d3 = diagonal(3, j), v1 = vector(1, i), v2 = vector(2, j);
            const Z behind1 = Z::get(aback1 + 2 * i) * root;
            const Z before2 = ~d3 * Z::get(forth + width + 2 * j) + v2 * two * T(2);
            const Z middle = product(sums + 2 * width, i) * root + ~v1 * behind1 * T(-2);
            add(0, 0, j, d1 * product(sums, j));
            add(0, 1, j, d2 * middle);
            add(0, 2, j, d3 * product(sums + 4 * width, j));
            add(1, 0, i, (behind1 + Z::get(forth1 + 2 * i)) * T(-2));
            add(1, 1, j, (~d3 * Z::get(of_y + 2 * j) + before2) * T(-2));
        }
    }
    void add(int tensor, int which, int64_t j, Z z) const {
        T *to = target[tensor] + which * width + 2 * j;
        (Z::get(to) + z).put(to);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
