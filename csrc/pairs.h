// Complex vectors of length n: (real, imaginary) pairs inside, all real parts and then all imaginary parts outside.
#pragma once
#include "simd.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> void from_pairs(const T *pairs, int64_t n, T *to) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) {
        Vec<T> re, im;
        separate<T>(load(pairs + 2 * i), load(pairs + 2 * i + lanes<T>), re, im);
        store(to + i, re), store(to + n + i, im);
    }
    for (; i < n; i++) to[i] = pairs[2 * i], to[n + i] = pairs[2 * i + 1];
}
// pairs = (or +=) what a row shows
template <class T, bool ADD> void as_pairs(const T *row, int64_t n, T *pairs) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) {
        Vec<T> low, high;
        T *to = pairs + 2 * i;
        interleave<T>(load(row + i), load(row + n + i), low, high);
        store(to, ADD ? load(to) + low : low);
        store(to + lanes<T>, ADD ? load(to + lanes<T>) + high : high);
    }
    for (; i < n; i++) {
        pairs[2 * i] = (ADD ? pairs[2 * i] : T(0)) + row[i];
        pairs[2 * i + 1] = (ADD ? pairs[2 * i + 1] : T(0)) + row[n + i];
    }
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
