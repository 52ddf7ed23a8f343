// What the processor can run, asked of the processor itself: __builtin_cpu_supports needs a run-time library that not
// every compiler comes with.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace slimrnn {

#if defined(__x86_64__)
// The register groups that the operating system saves when it changes threads: bits of XCR0.
enum : uint32_t { saves_256 = 0x06, saves_512 = 0xe6 };

inline bool processor_has(uint32_t features, uint32_t saved) {  // features: bits of leaf 7, EBX
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA) || !(c & bit_OSXSAVE)) return false;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & saved) == saved && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & features) == features;
}
inline bool processor_has_avx2() { return processor_has(bit_AVX2, saves_256); }
inline bool processor_has_avx512() {
    return processor_has(bit_AVX2 | bit_AVX512F | bit_AVX512DQ | bit_AVX512VL | bit_AVX512BW, saves_512);
}
inline bool processor_has_vnni() {  // where there is AVX-512
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & bit_AVX512VNNI);
}
#else
inline bool processor_has_avx2() { return false; }
inline bool processor_has_avx512() { return false; }
#endif

}  // namespace slimrnn
