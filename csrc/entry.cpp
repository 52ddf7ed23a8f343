// The C interface: checks, the choice of an instruction set, and one thread per slice of the batch.
#include "kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace {

using slimrnn::Kernels;

bool runs_here(const Kernels *k) {
#if defined(__x86_64__) || defined(__i386__)
    if (!strcmp(k->name, "avx512"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("fma");
    if (!strcmp(k->name, "avx2")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return !strcmp(k->name, "generic");
}

std::vector<const Kernels *> find_all() {
    std::vector<const Kernels *> found;
    for (const Kernels *k : {
#ifdef SLIMRNN_HAS_AVX512
             &slimrnn::avx512_kernels,
#endif
#ifdef SLIMRNN_HAS_AVX2
             &slimrnn::avx2_kernels,
#endif
             &slimrnn::generic_kernels})
        if (runs_here(k)) found.push_back(k);
    return found;
}
const std::vector<const Kernels *> &all() {
    static const std::vector<const Kernels *> found = find_all();
    return found;
}
std::atomic<const Kernels *> chosen{nullptr};
const Kernels *kernels() {
    const Kernels *k = chosen.load();
    return k ? k : all().front();
}

// Runs work(first, count) on slices of 0 … total-1, one per thread; the first failure is the result.
int share(int64_t total, int threads, const std::function<int(int, int64_t, int64_t)> &work) {
    threads = int(std::max<int64_t>(1, std::min<int64_t>(threads, total)));
    std::vector<int> status(size_t(threads), SLIMRNN_OK);
    std::vector<std::thread> others;
    auto slice = [&](int k) {
        int64_t from = total * k / threads, to = total * (k + 1) / threads;
        status[size_t(k)] = work(k, from, to - from);
    };
    int started = 1;
    try {
        for (; started < threads; started++) others.emplace_back(slice, started);
    } catch (const std::system_error &) {
        for (int k = started; k < threads; k++) slice(k);  // no more threads to be had: do it here
    }
    slice(0);
    for (auto &t : others) t.join();
    for (int s : status)
        if (s) return s;
    return SLIMRNN_OK;
}

// Fresh memory costs a page fault for every 4 KiB that is first written; in large pages, a few for the whole tensor.
void prefer_large_pages(void *memory, int64_t bytes) {
#ifdef __linux__
    const uintptr_t page = uintptr_t(1) << 21, from = (uintptr_t(memory) + page - 1) & ~(page - 1);
    const uintptr_t until = (uintptr_t(memory) + uintptr_t(bytes)) & ~(page - 1);
    if (memory && until > from) madvise(reinterpret_cast<void *>(from), until - from, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}
void prefer_large_pages(const slimrnn_scan &s, bool forward) {
    const int64_t row = s.time * s.batch * s.width * (s.dtype == SLIMRNN_F64 ? 8 : 4);
    if (!forward) return prefer_large_pages(s.d_wx, row * s.gates);
    prefer_large_pages(s.out, row);
    prefer_large_pages(s.gate_history, row * s.gates);
    prefer_large_pages(s.state_history, row);
}

bool term_is_sound(const slimrnn_term &t) {
    if (t.kind < SLIMRNN_BLOCK || t.kind > SLIMRNN_KRONECKER || t.gates < 1 || t.size < 1 || !t.data) return false;
    if (t.kind == SLIMRNN_BLOCK) return t.count >= 1 && t.size % t.count == 0 && t.data[0];
    if (t.kind == SLIMRNN_LOW_RANK) return t.count >= 1 && t.data[0] && t.data[1];
    if (t.kind != SLIMRNN_KRONECKER) return t.data[0];
    if (t.count < 1 || t.count > 64 || !t.sizes) return false;
    int64_t rows = 1, columns = 1;
    for (int i = 0; i < t.count; i++) {
        if (t.sizes[2 * i] < 1 || t.sizes[2 * i + 1] < 1 || !t.data[i]) return false;
        rows *= t.sizes[2 * i], columns *= t.sizes[2 * i + 1];
    }
    return rows == t.size && columns == t.size;
}
bool is_sound(const slimrnn_scan *s, bool forward) {
    static const int gates[] = {1, 1, 1, 1, 4, 3, 3};
    if (!s || s->dtype < 0 || s->dtype > 1 || s->cell < 0 || s->cell > SLIMRNN_GRU_BEFORE || s->time < 1 ||
        s->batch < 0 || s->width < 1 || s->gates != gates[s->cell] || s->states != (s->cell == SLIMRNN_LSTM ? 2 : 1) ||
        s->term_count < 1 || !s->terms || !s->state || !s->out || (s->cell == SLIMRNN_MODRELU && !s->own))
        return false;
    for (int k = 0; k < s->term_count; k++) {
        const slimrnn_term &t = s->terms[k];
        if (!term_is_sound(t) || t.gates != s->gates || int64_t(t.size) * (t.is_complex ? 2 : 1) != s->width) return false;
    }
    const bool needs_history = s->states == 2 || s->is_complex;
    if (s->gate_history && needs_history && !s->state_history) return false;
    if (forward) return s->x && s->last && (!s->u || s->input_size >= 1);
    return s->gate_history && (!s->own || s->d_own) && s->d_out && s->d_last && s->d_wx && s->d_state;
}

int run(const slimrnn_scan *s, bool forward) {
    if (!is_sound(s, forward)) return SLIMRNN_BAD_ARGUMENT;
    if (s->batch == 0) return SLIMRNN_OK;
    prefer_large_pages(*s, forward);
    const Kernels *k = kernels();
    int status;
    void *packed = k->pack(s->terms, s->term_count, s->dtype, &status);
    if (!packed) return status;
    if (forward && s->u) status = k->pack_input(packed, s);
    if (!status) status = share(s->batch, s->threads, [&](int thread, int64_t first, int64_t rows) {
        return forward ? k->forward(s, packed, first, rows) : k->backward(s, packed, first, rows, thread);
    });
    k->release(packed);
    return status;
}

}  // namespace

extern "C" {

int32_t slimrnn_abi(void) { return SLIMRNN_ABI; }

const char *slimrnn_isa(int32_t index) {
    return index >= 0 && size_t(index) < all().size() ? all()[size_t(index)]->name : nullptr;
}

int32_t slimrnn_use_isa(const char *name) {
    if (!name) {
        chosen = nullptr;
        return SLIMRNN_OK;
    }
    for (const Kernels *k : all())
        if (!strcmp(k->name, name)) {
            chosen = k;
            return SLIMRNN_OK;
        }
    return SLIMRNN_BAD_ARGUMENT;
}

int32_t slimrnn_forward(const slimrnn_scan *scan) {
    try {
        return run(scan, true);
    } catch (const std::bad_alloc &) {
        return SLIMRNN_NO_MEMORY;
    } catch (...) {
        return SLIMRNN_NO_THREAD;
    }
}

int32_t slimrnn_backward(const slimrnn_scan *scan) {
    try {
        return run(scan, false);
    } catch (const std::bad_alloc &) {
        return SLIMRNN_NO_MEMORY;
    } catch (...) {
        return SLIMRNN_NO_THREAD;
    }
}

int32_t slimrnn_gradient(const slimrnn_term *term, int32_t dtype, int32_t threads, int64_t rows, const void *x,
                         int64_t ldx, const void *y, int64_t ldy, int32_t first, int32_t last) {
    try {
        if (!term || !term_is_sound(*term) || !term->gradient || !x || !y || first < 0 || last > term->gates ||
            first >= last)
            return SLIMRNN_BAD_ARGUMENT;
        const Kernels *k = kernels();
        int status;
        void *packed = k->pack(term, 1, dtype, &status);
        if (!packed) return status;
        const int64_t bytes = dtype == SLIMRNN_F64 ? 8 : 4, size = k->gradient_size(packed) * bytes;
        threads = int32_t(std::max<int64_t>(1, std::min<int64_t>(threads, rows)));
        std::vector<std::vector<char>> sums(size_t(threads), std::vector<char>(size_t(size), 0));
        status = size == 0 ? SLIMRNN_BAD_ARGUMENT
                           : share(rows, threads, [&](int thread, int64_t from, int64_t count) {
                                 return k->gradient(packed, count, static_cast<const char *>(x) + from * ldx * bytes, ldx,
                                                    static_cast<const char *>(y) + from * ldy * bytes, ldy, first, last,
                                                    sums[size_t(thread)].data());
                             });
        if (!status)
            for (auto &part : sums) k->deliver(packed, part.data(), first, last);
        k->release(packed);
        return status;
    } catch (const std::bad_alloc &) {
        return SLIMRNN_NO_MEMORY;
    } catch (...) {
        return SLIMRNN_NO_THREAD;
    }
}
}
