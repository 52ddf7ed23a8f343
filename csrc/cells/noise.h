// Noise: a number that depends on nothing but the seed, the stream, the time, the row and the unit. So it is the same on
// the way back, in any number of threads, and in single and double precision.
#pragma once
#include "step.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

inline uint32_t mixed(uint32_t x) {
    x ^= x >> 16, x *= 0x7feb352du;
    x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
// What the numbers of one row of a step are made from.
template <class T> inline uint32_t noise_key(const Step<T> &s, int stream, int64_t r) {
    const int64_t row = s.row_numbers ? s.row_numbers[r] : s.first_row + r;
    uint32_t key = mixed(uint32_t(s.seed));
    key = mixed(key ^ uint32_t(s.seed >> 32));
    key = mixed(key ^ uint32_t(stream));
    key = mixed(key ^ uint32_t(s.time));
    return mixed(key ^ uint32_t(row));
}
// Uniform in [0, 1): 24 bits, which both precisions can hold.
template <class T> inline T uniform(uint32_t key, int64_t unit) {
    const uint32_t bits = mixed(key + uint32_t(unit) * 0x9E3779B9u) >> 8;
    return T(int32_t(bits)) * T(1.0 / 16777216.0);
}
// For the units from this one on.
template <class T> inline Vec<T> uniforms(uint32_t key, int64_t unit) {
    T some[lanes<T>];
    for (int j = 0; j < lanes<T>; j++) some[j] = uniform<T>(key, unit + j);
    return load(some);
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
