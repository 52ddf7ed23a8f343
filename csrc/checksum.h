// A checksum of memory, at the speed at which the second-level cache delivers it.
#pragma once
#include "simd.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

// Every lane is turned before it takes the next word, so that words in another order, or with another sign, give
// another sum; the constant keeps zeros from leaving it as it was.
struct Checksum {
    typedef uint64_t V __attribute__((vector_size(SLIMRNN_BYTES)));
    static constexpr int vectors = 4, block = vectors * SLIMRNN_BYTES;
    V sums[vectors] = {};

    void take(const char *p) {
        for (int k = 0; k < vectors; k++) {
            V word;
            memcpy(&word, p + k * SLIMRNN_BYTES, sizeof word);
            sums[k] = ((sums[k] << 5) | (sums[k] >> 59)) + word + 0x9E3779B97F4A7C15u;
        }
    }
    void take(const char *p, int64_t bytes) {
        for (; bytes >= block; bytes -= block, p += block) take(p);
        if (bytes <= 0) return;
        char rest[block] = {};
        memcpy(rest, p, size_t(bytes));
        take(rest);
    }
    uint64_t result() const {
        uint64_t found = 0;
        for (const V &sum : sums)
            for (size_t k = 0; k < SLIMRNN_BYTES / sizeof(uint64_t); k++) {
                found = (found ^ sum[k]) * 0x9E3779B97F4A7C15u;
                found ^= found >> 29;
            }
        return found;
    }
};

inline uint64_t checksum(const void *const *data, const int64_t *bytes, int count) {
    Checksum sum;
    for (int k = 0; k < count; k++) sum.take(static_cast<const char *>(data[k]), bytes[k]);
    return sum.result();
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
