// Numbers too small for a full mantissa: below 1.2e-38 in single precision. Gradients that vanish over many steps become
// such numbers, and so do states where the input is silent; some processors take a hundred cycles and more for each
// operation on them.
#pragma once
#include "include/slimrnn.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace slimrnn {

// While it lives, the calling thread takes them for zero. The bits of int8 layers are those of torch, which does not.
class WithoutSubnormals {
  public:
    explicit WithoutSubnormals(const slimrnn_scan &s) : before(mode()) {
        if (s.dtype != SLIMRNN_I8) set_mode(before | zeros);
    }
    ~WithoutSubnormals() { set_mode(before); }
    WithoutSubnormals(const WithoutSubnormals &) = delete;

  private:
#if defined(__x86_64__)
    using Mode = unsigned;
    static constexpr Mode zeros = 0x8040;  // results (FTZ) and operands (DAZ) in MXCSR
    static Mode mode() { return _mm_getcsr(); }
    static void set_mode(Mode m) { _mm_setcsr(m); }
#elif defined(__aarch64__)
    using Mode = uint64_t;
    static constexpr Mode zeros = Mode(1) << 24;  // FZ in FPCR
    static Mode mode() {
        Mode m;
        __asm__ volatile("mrs %0, fpcr" : "=r"(m));
        return m;
    }
    static void set_mode(Mode m) { __asm__ volatile("msr fpcr, %0" : : "r"(m)); }
#else
    using Mode = unsigned;
    static constexpr Mode zeros = 0;
    static Mode mode() { return 0; }
    static void set_mode(Mode) {}
#endif
    const Mode before;
};

}  // namespace slimrnn
