// Wheels for macOS only, where zig links the C++ library in and its linker takes no list of the names to export: operator
// new and delete, which that library exports, are defined here instead, hidden. A form of them that is missing here
// would bring all of the C++ library's back: `release/check.py --only contents` looks.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

void *checked(void *memory) {
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

void *operator new(std::size_t bytes) { return checked(std::malloc(bytes ? bytes : 1)); }
void *operator new[](std::size_t bytes) { return operator new(bytes); }
void *operator new(std::size_t bytes, std::align_val_t alignment) {
    void *memory = nullptr;
    return checked(posix_memalign(&memory, std::size_t(alignment), bytes ? bytes : 1) ? nullptr : memory);
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
