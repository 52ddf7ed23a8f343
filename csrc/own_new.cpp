// Wheels for macOS only, where zig links the C++ library in and its linker takes no list of the names to export: operator
// new and delete, which that library exports, are defined here instead, hidden. A form of them that is used but missing
// here would bring all of the C++ library's back: `release/check.py --only contents` looks.
#include <cstddef>
#include <cstdlib>
#include <new>

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

namespace {

void *checked(void *memory) {
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

void *operator new(size_t bytes, const nothrow_t &) noexcept { return std::malloc(bytes ? bytes : 1); }
void *operator new[](size_t bytes, const nothrow_t &) noexcept { return std::malloc(bytes ? bytes : 1); }
void *operator new(size_t bytes, align_val_t alignment, const nothrow_t &) noexcept {
    void *memory = nullptr;
    return posix_memalign(&memory, size_t(alignment), bytes ? bytes : 1) ? nullptr : memory;
}
void *operator new(size_t bytes) { return checked(operator new(bytes, std::nothrow)); }
void *operator new[](size_t bytes) { return checked(operator new(bytes, std::nothrow)); }
void *operator new(size_t bytes, align_val_t alignment) {
    return checked(operator new(bytes, alignment, std::nothrow));
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, size_t, align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, const nothrow_t &) noexcept { std::free(memory); }
