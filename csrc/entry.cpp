// The C interface: checks, the choice of an instruction set, and one slice of the batch per thread.
#include "cells/sound.h"
#include "kernels.h"
#include "processor.h"
#include "subnormals.h"
#include "threads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace {

using slimrnn::Crew;
using slimrnn::Kernels;
using slimrnn::share;
using slimrnn::WithoutSubnormals;

bool runs_here(const Kernels *k) {
    if (!strcmp(k->name, "avx512")) return slimrnn::processor_has_avx512();
    if (!strcmp(k->name, "avx2")) return slimrnn::processor_has_avx2();
    return true;
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
const Kernels *kernels_for(const slimrnn_scan &s) { return s.dtype == SLIMRNN_I8 ? kernels()->int8 : kernels(); }

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
    if (!forward) {
        if (!s.tokens) prefer_large_pages(s.d_wx, row * s.cell->gates);
        return;
    }
    prefer_large_pages(s.out, row);
    prefer_large_pages(s.gate_history, row * s.cell->slots);
    prefer_large_pages(s.state_history, row * (s.cell->states - 1));
}

// C++ of this build is trusted with the sizes that it was made for; a program is not.
bool runs(const slimrnn_cell &cell, const Kernels *k, bool forward) {
    if (!slimrnn::cell_is_sound(cell) || cell.code < -1) return false;
    if (cell.code >= 0) return k->code_fits(cell);
    return slimrnn::program_is_sound(cell, forward ? cell.forward : cell.backward, !forward);
}
bool terms_are_sound(const slimrnn_scan &s, const Kernels *k, bool forward) {
    if (s.phases < 1 || s.phases > SLIMRNN_MOST_PHASES || (s.phases > 1 && s.u)) return false;
    if (s.cell->matrices == 0) return s.term_count == 0;
    return s.term_count >= 1 && s.term_count % s.phases == 0 && s.term_count / s.phases <= SLIMRNN_MOST_TERMS &&
           s.terms && k->terms_are_sound(&s, !forward);
}
bool tokens_are_sound(const slimrnn_scan &s) {
    if (s.u || s.phases > 1 || s.vocabulary < 1) return false;
    for (int64_t i = 0; i < s.time * s.batch; i++)
        if (s.tokens[i] < 0 || s.tokens[i] >= s.vocabulary) return false;
    return true;
}
bool is_sound(const slimrnn_scan *s, const Kernels *k, bool forward) {
    if (!s || !s->cell || s->dtype < SLIMRNN_F32 || s->dtype > (forward ? SLIMRNN_I8 : SLIMRNN_F64) || s->time < 1 ||
        s->batch < 0 || s->width < 1 || !s->state || !s->out || (s->is_complex && s->width % 2))
        return false;
    const slimrnn_cell &cell = *s->cell;
    if (!runs(cell, k, forward) || !terms_are_sound(*s, k, forward) || !s->own != !cell.own_rows) return false;
    if (s->tokens && !tokens_are_sound(*s)) return false;
    if (s->mask && s->masks != 1 && s->masks != cell.matrices) return false;
    if (s->dtype == SLIMRNN_I8 && (s->is_complex || s->gate_history || s->state_history || !s->u != !s->u_scale))
        return false;
    if (!s->resets != !s->reset_state || (s->resets && !forward && !s->d_reset_state)) return false;
    if (forward) return s->x && s->last && (!s->u || s->input_size >= 1);
    return (s->gate_history || cell.kept == 0) && (s->state_history || cell.states == 1) && (!s->own || s->d_own) &&
           (!s->u || (s->d_u && s->x && s->input_size >= 1)) && (!s->bias || s->d_bias) && s->d_last && s->d_state;
}

// Two for each thread, so that one which has to share its core with another process does less than the others; but one
// where a slice would have so few rows that the weights are read more often than they are used.
constexpr int64_t few_rows = 4;
int slices_of(const slimrnn_scan *s) {
    const int64_t threads = std::max<int64_t>(1, std::min<int64_t>(s->threads, s->batch));
    return int(threads > 1 && s->batch >= 2 * threads * few_rows ? 2 * threads : threads);
}

// A single sequence has no slices: its threads share every product instead, each with weights that its cache holds. A
// thread should have enough of them to be worth the wait for it.
constexpr int64_t weights_of_a_thread = 16 * 1024;
int crew_of(const slimrnn_scan *s, const Kernels *k, void *packed) {
    if (s->batch > 1 || s->threads < 2 || Crew::is_resting()) return 1;
    return int(std::min<int64_t>(std::min(s->threads, Crew::most), k->shared_weights(s, packed) / weights_of_a_thread));
}
struct Dismissal {
    Crew &crew;
    ~Dismissal() { crew.dismiss(); }
};
// work(slice, first, rows, crew) for all rows.
template <class Work> int run_slices(const slimrnn_scan *s, const Kernels *k, void *packed, const Work &work) {
    const int threads = crew_of(s, k, packed);
    if (threads < 2)
        return share(s->batch, slices_of(s), s->threads, [&](int slice, int64_t first, int64_t rows) {
            const WithoutSubnormals mode(*s);
            return work(slice, first, rows, nullptr);
        });
    Crew crew(threads);
    return share(threads, threads, threads, [&](int member, int64_t, int64_t) {
        const WithoutSubnormals mode(*s);
        if (member > 0) {
            crew.serve(member);
            return int(SLIMRNN_OK);
        }
        const Dismissal at_the_end{crew};
        return work(0, 0, 1, &crew);
    });
}

int run_forward(const slimrnn_scan *s, const Kernels *k, void *packed) {
    if (s->u)
        if (int status = k->pack_input(packed, s)) return status;
    return run_slices(s, k, packed, [&](int, int64_t first, int64_t rows, Crew *crew) {
        return k->forward(s, packed, first, rows, crew);
    });
}
int run_backward(const slimrnn_scan *s, const Kernels *k, void *packed) {
    const size_t size = size_t(k->sums_size(s, packed)) * (s->dtype == SLIMRNN_F64 ? 8 : 4);
    std::vector<std::vector<char>> sums(static_cast<size_t>(slices_of(s)));
    const int status = run_slices(s, k, packed, [&](int slice, int64_t first, int64_t rows, Crew *crew) {
        sums[size_t(slice)].assign(size + 64, 0);
        return k->backward(s, packed, first, rows, crew, sums[size_t(slice)].data());
    });
    if (!status)
        for (auto &part : sums) k->deliver(s, packed, part.data());  // in order: the same result every time
    return status;
}
int run(const slimrnn_scan *s, bool forward) {
    if (!s) return SLIMRNN_BAD_ARGUMENT;
    const Kernels *k = kernels_for(*s);
    if (!is_sound(s, k, forward)) return SLIMRNN_BAD_ARGUMENT;
    if (s->batch == 0) return SLIMRNN_OK;
    prefer_large_pages(*s, forward);
    int status;
    void *packed = k->pack(s, !forward, &status);
    if (!packed) return status;
    try {
        status = forward ? run_forward(s, k, packed) : run_backward(s, k, packed);
    } catch (...) {
        k->release(packed);
        throw;
    }
    k->release(packed);
    return status;
}

// With copies of all that describes the cell: the caller's may be gone when a step is taken.
struct Steps {
    slimrnn_scan scan;
    slimrnn_cell cell;
    std::vector<slimrnn_place> places;
    std::vector<double> constants;
    std::vector<slimrnn_instruction> code;
    const Kernels *kernels = nullptr;
    void *packed = nullptr;
    // Of the latest batch sizes; a thread takes one out while it steps.
    std::array<std::atomic<slimrnn::ReadyStep *>, 8> idle{};

    explicit Steps(const slimrnn_scan &s)
        : scan(s), cell(*s.cell), places(cell.places, cell.places + cell.place_count),
          constants(cell.constants, cell.constants + cell.constant_count) {
        if (cell.code < 0) code.assign(cell.forward.code, cell.forward.code + cell.forward.count);
        cell.places = places.data(), cell.constants = constants.data();
        cell.forward = {code.data(), int32_t(code.size())}, cell.backward = {nullptr, 0};
        scan.cell = &cell;
    }
    Steps(const Steps &) = delete;
    ~Steps() {
        if (!kernels) return;
        for (auto &place : idle) kernels->release_step(place.load());
        kernels->release(packed);
    }
    int step(int64_t batch, const slimrnn_places &places) {
        const auto release = [this](slimrnn::ReadyStep *step) { kernels->release_step(step); };
        std::unique_ptr<slimrnn::ReadyStep, decltype(release)> ready(take(batch), release);
        if (!ready) {
            slimrnn_scan s = scan;
            s.batch = batch, s.state = nullptr, s.last = nullptr;
            ready.reset(kernels->ready_step(&s, packed));
        }
        const WithoutSubnormals mode(scan);
        kernels->run_step(ready.get(), places);
        if (batch <= most_kept) put(ready.release());
        return SLIMRNN_OK;
    }
    slimrnn::ReadyStep *take(int64_t batch) {
        for (auto &place : idle)
            if (slimrnn::ReadyStep *found = place.exchange(nullptr)) {
                if (found->batch == batch) return found;
                put(found);
            }
        return nullptr;
    }
    // In the first place that is free, or instead of the oldest.
    void put(slimrnn::ReadyStep *step) {
        for (auto &place : idle) {
            slimrnn::ReadyStep *none = nullptr;
            if (place.compare_exchange_strong(none, step)) return;
        }
        for (auto &place : idle) step = place.exchange(step);
        kernels->release_step(step);
    }
    static constexpr int64_t most_kept = 64;  // rows: for more, making it anew is no cost
};

int open(slimrnn_scan s, void **handle) {
    char some;
    s.time = 1, s.batch = 1, s.lengths = nullptr, s.mask = nullptr, s.reverse = 0, s.tokens = nullptr;
    s.resets = nullptr, s.reset_state = nullptr;
    s.gate_history = s.state_history = nullptr;
    s.x = s.state = s.out = s.last = &some;  // only looked at, not into
    const Kernels *k = kernels_for(s);
    if (!is_sound(&s, k, true)) return SLIMRNN_BAD_ARGUMENT;
    auto made = std::make_unique<Steps>(s);
    int status;
    made->packed = k->pack(&made->scan, false, &status);
    if (!made->packed) return status;
    made->kernels = k;
    if (s.u) status = k->pack_input(made->packed, &made->scan);
    if (status == SLIMRNN_OK) *handle = made.release();
    return status;
}

// No exception may leave through the C interface.
template <class Work> int32_t guarded(Work work) {
    try {
        return work();
    } catch (const std::bad_alloc &) {
        return SLIMRNN_NO_MEMORY;
    } catch (const std::system_error &) {
        return SLIMRNN_NO_THREAD;
    } catch (...) {
        return SLIMRNN_INTERNAL;
    }
}

}  // namespace

extern "C" {

int32_t slimrnn_abi(void) { return SLIMRNN_ABI; }

const char *slimrnn_version(void) { return SLIMRNN_VERSION; }

const char *slimrnn_compiler(void) { return kernels()->compiler; }

const char *slimrnn_structure(int32_t index) { return kernels()->structure_name(index); }

int32_t slimrnn_limits(int32_t *limits, int32_t room) {
    static const int32_t all[] = {SLIMRNN_MOST_TERMS,  SLIMRNN_MOST_PHASES,   SLIMRNN_MOST_DIMS,     SLIMRNN_MOST_GATES,
                                  SLIMRNN_MOST_STATES, SLIMRNN_MOST_PRODUCTS, SLIMRNN_MOST_REGISTERS};
    const int32_t count = sizeof all / sizeof all[0];
    for (int32_t i = 0; limits && i < count && i < room; i++) limits[i] = all[i];
    return count;
}

const char *slimrnn_cell_code(int32_t index) { return kernels()->cell_code(index); }

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
    return guarded([&] { return run(scan, true); });
}

int32_t slimrnn_backward(const slimrnn_scan *scan) {
    return guarded([&] { return run(scan, false); });
}

int32_t slimrnn_product(const slimrnn_scan *scan, int32_t way, int64_t rows, int32_t first, int32_t last, void *x,
                        void *y) {
    if (!scan || !scan->cell || scan->dtype < 0 || scan->dtype > 1 || scan->width < 1 || !scan->terms ||
        scan->term_count != 1 || way < SLIMRNN_WAY_PRODUCT || way > SLIMRNN_WAY_GRADIENT || rows < 0 || first < 0 ||
        first >= last || last > scan->cell->matrices || scan->cell->matrices > SLIMRNN_MOST_GATES || !x || !y)
        return SLIMRNN_BAD_ARGUMENT;
    const Kernels *k = kernels();
    if (!k->terms_are_sound(scan, way == SLIMRNN_WAY_GRADIENT)) return SLIMRNN_BAD_ARGUMENT;
    return guarded([&] { return k->product(scan, way, rows, first, last, x, y); });
}

int32_t slimrnn_open(const slimrnn_scan *scan, void **handle) {
    if (!scan || !handle) return SLIMRNN_BAD_ARGUMENT;
    return guarded([&] { return open(*scan, handle); });
}

uint64_t slimrnn_checksum(const void *const *data, const int64_t *bytes, int32_t count) {
    return kernels()->checksum(data, bytes, count);
}

void slimrnn_close(void *handle) { delete static_cast<Steps *>(handle); }

int32_t slimrnn_step(void *handle, const slimrnn_memory *unchanged, int64_t batch, const slimrnn_places *places) {
    Steps *steps = static_cast<Steps *>(handle);
    if (!steps || batch < 0 || !places || !places->x || !places->out) return SLIMRNN_BAD_ARGUMENT;
    for (int i = 0; i < 2 * steps->cell.states; i++)
        if (!places->states[i]) return SLIMRNN_BAD_ARGUMENT;
    if (unchanged && slimrnn_checksum(unchanged->data, unchanged->bytes, unchanged->count) != unchanged->checksum)
        return SLIMRNN_CHANGED;
    if (batch == 0) return SLIMRNN_OK;
    return guarded([&] { return steps->step(batch, *places); });
}
}
