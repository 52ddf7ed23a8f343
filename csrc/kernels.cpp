// All kernels for one instruction set; this file is compiled once for each. Nothing here is inline across sets: names
// live in a namespace of the set, and no standard container is used, so that no linker can mix them.
#include "kernels.h"

#include "checksum.h"
#include "structures/registry.h"
#include "time_loop.h"

#include <new>

namespace slimrnn {
namespace SLIMRNN_ISA {
namespace {

constexpr std::align_val_t cache_line{64};
void *aligned(int64_t bytes) { return operator new(size_t(bytes > 0 ? bytes : 64), cache_line, std::nothrow); }
void give_back(void *memory) { operator delete(memory, cache_line); }

const char *structure_name(int index) {
    return index >= 0 && index < structure_count ? structures<float>[index].name : nullptr;
}
const char *cell_code(int index) {
    const CellCode<float> *code = find_code<float>(index);
    return code ? code->fingerprint : nullptr;
}
bool terms_are_sound(const slimrnn_scan *s, bool backward) {
    for (int k = 0; k < s->term_count; k++) {
        const Operands o{s, s->terms[k]};
        if (s->terms[k].structure < 0 || s->terms[k].structure >= structure_count || !s->terms[k].tensors) return false;
        if (!structures<float>[s->terms[k].structure].is_sound(o, backward)) return false;
    }
    return true;
}

constexpr int most_terms = SLIMRNN_MOST_TERMS * SLIMRNN_MOST_PHASES;
struct Pack {
    int dtype, count;
    Term<float> *single[most_terms];
    Term<double> *twice[most_terms];
    void *memory, *input;
    Ready<float> single_program;
    Ready<double> twice_program;
};
template <class T> Term<T> **terms_of(Pack *p);
template <> Term<float> **terms_of(Pack *p) { return p->single; }
template <> Term<double> **terms_of(Pack *p) { return p->twice; }
template <class T> Ready<T> &program_of(Pack *p);
template <> Ready<float> &program_of(Pack *p) { return p->single_program; }
template <> Ready<double> &program_of(Pack *p) { return p->twice_program; }

template <class T> int fill_pack(Pack *pack, const slimrnn_scan &s, bool backward) {
    Term<T> **own = terms_of<T>(pack);
    int64_t size = 0;
    for (int k = 0; k < pack->count; k++) {
        own[k] = structures<T>[s.terms[k].structure].make(Operands{&s, s.terms[k]});
        if (!own[k]) return SLIMRNN_NO_MEMORY;
        size += round_up(own[k]->packed_size(), lanes<T>);
    }
    T *at = static_cast<T *>(pack->memory = aligned(size * int64_t(sizeof(T))));
    if (!at) return SLIMRNN_NO_MEMORY;
    for (int k = 0; k < pack->count; k++) {
        own[k]->pack(at, backward);
        at += round_up(own[k]->packed_size(), lanes<T>);
    }
    return SLIMRNN_OK;
}

void release(void *packed) {
    Pack *pack = static_cast<Pack *>(packed);
    if (!pack) return;
    for (int k = 0; k < pack->count; k++) {
        delete pack->single[k];
        delete pack->twice[k];
    }
    give_back(pack->memory);
    give_back(pack->input);
    delete pack;
}

Pack *pack_terms(const slimrnn_scan *s, bool backward, int *status) {
    *status = SLIMRNN_NO_MEMORY;
    Pack *made = new (std::nothrow) Pack{s->dtype, s->term_count, {}, {}, nullptr, nullptr, {}, {}};
    if (!made) return nullptr;
    *status = s->dtype == SLIMRNN_F64 ? fill_pack<double>(made, *s, backward) : fill_pack<float>(made, *s, backward);
    if (*status == SLIMRNN_OK) return made;
    release(made);
    return nullptr;
}
void *pack(const slimrnn_scan *s, bool backward, int *status) {
    Pack *made = pack_terms(s, backward, status);
    if (!made || s->cell->code >= 0) return made;
    const slimrnn_program &program = backward ? s->cell->backward : s->cell->forward;
    if (s->dtype == SLIMRNN_F64 ? made->twice_program.make(*s->cell, program, s->width)
                                : made->single_program.make(*s->cell, program, s->width))
        return made;
    *status = SLIMRNN_NO_MEMORY;
    release(made);
    return nullptr;
}

template <class T> int fill_input(Pack *pack, const slimrnn_scan &s) {
    Packed<T> p{s.input_size, s.cell->gates * s.width, nullptr};
    p.data = static_cast<T *>(pack->input = aligned(p.size() * int64_t(sizeof(T))));
    if (!p.data) return SLIMRNN_NO_MEMORY;
    p.pack_turned(static_cast<const T *>(s.u));
    return SLIMRNN_OK;
}
int pack_input(void *packed, const slimrnn_scan *s) {
    Pack *pack = static_cast<Pack *>(packed);
    return pack->dtype == SLIMRNN_F64 ? fill_input<double>(pack, *s) : fill_input<float>(pack, *s);
}

// Memory that is freed at the end, however that comes.
template <class T> struct Memory {
    const int64_t count;
    T *data;
    explicit Memory(int64_t count) : count(count), data(static_cast<T *>(aligned(count * int64_t(sizeof(T))))) {}
    ~Memory() { give_back(data); }
    Memory(const Memory &) = delete;
};

template <class T>
TimeLoop<T> loop_of(const slimrnn_scan &s, Pack *pack, int64_t first, int64_t rows, Arena<T> &memory, T *sums) {
    T *input = static_cast<T *>(pack->input);
    return TimeLoop<T>(s, terms_of<T>(pack), program_of<T>(pack), input, first, rows, memory, sums);
}
template <class T> int64_t size_of(const slimrnn_scan &s, Pack *pack, int64_t first, int64_t rows, T *sums) {
    Arena<T> counted;
    loop_of<T>(s, pack, first, rows, counted, sums);
    return counted.taken();
}
template <class T> int64_t count_shared(const slimrnn_scan &s, Term<T> *const *terms) {
    int64_t count = 0;
    for (int k = 0; k < s.term_count; k++) count += terms[k]->shared_weights();
    return count;
}
int64_t shared_weights(const slimrnn_scan *s, void *packed) {
    Pack *pack = static_cast<Pack *>(packed);
    return pack->dtype == SLIMRNN_F64 ? count_shared<double>(*s, pack->twice) : count_shared<float>(*s, pack->single);
}
template <class T> int run(const slimrnn_scan &s, Pack *pack, int64_t first, int64_t rows, Crew *crew, T *sums) {
    const Memory<T> memory(size_of<T>(s, pack, first, rows, sums));
    if (!memory.data) return SLIMRNN_NO_MEMORY;
    Arena<T> arena(memory.data, memory.count);
    arena.crew = crew;
    TimeLoop<T> loop = loop_of<T>(s, pack, first, rows, arena, sums);
    if (sums)
        loop.backward();
    else
        loop.forward();
    return SLIMRNN_OK;
}
int forward(const slimrnn_scan *s, void *packed, int64_t first, int64_t rows, Crew *crew) {
    Pack *pack = static_cast<Pack *>(packed);
    return pack->dtype == SLIMRNN_F64 ? run<double>(*s, pack, first, rows, crew, nullptr)
                                      : run<float>(*s, pack, first, rows, crew, nullptr);
}

// A loop of one step, with its memory: for any number of steps, one at a time.
template <class T> struct ReadyLoop : ReadyStep {
    slimrnn_scan scan;
    const int64_t row;  // numbers of x
    Memory<T> memory, gathered;
    Arena<T> arena;
    TimeLoop<T> loop;

    ReadyLoop(const slimrnn_scan &s, Pack *pack)
        : ReadyStep{s.dtype, s.batch}, scan(s), row(s.u ? s.input_size : s.cell->gates * s.width),
          memory(size_of<T>(s, pack, 0, s.batch, nullptr)), gathered(s.batch * row),
          arena(checked(memory.data), memory.count), loop(loop_of<T>(scan, pack, 0, s.batch, arena, nullptr)) {
        checked(gathered.data);
    }
    static T *checked(T *data) {
        if (!data) throw std::bad_alloc();
        return data;
    }
    void run(const slimrnn_places &places) {
        scan.x = contiguous(places), scan.out = places.out;
        loop.use(places.states, places.states + scan.cell->states);
        loop.forward();
    }
    const void *contiguous(const slimrnn_places &places) {
        if (places.x_column == 1 && (places.x_row == row || batch == 1)) return places.x;
        const T *x = static_cast<const T *>(places.x);
        for (int64_t r = 0; r < batch; r++)
            for (int64_t k = 0; k < row; k++) gathered.data[r * row + k] = x[r * places.x_row + k * places.x_column];
        return gathered.data;
    }
};
ReadyStep *ready_step(const slimrnn_scan *s, void *packed) {
    Pack *pack = static_cast<Pack *>(packed);
    if (pack->dtype == SLIMRNN_F64) return new ReadyLoop<double>(*s, pack);
    return new ReadyLoop<float>(*s, pack);
}
void run_step(ReadyStep *ready, const slimrnn_places &places) {
    if (ready->dtype == SLIMRNN_F64)
        static_cast<ReadyLoop<double> *>(ready)->run(places);
    else
        static_cast<ReadyLoop<float> *>(ready)->run(places);
}
void release_step(ReadyStep *ready) {
    if (ready && ready->dtype == SLIMRNN_F64)
        delete static_cast<ReadyLoop<double> *>(ready);
    else
        delete static_cast<ReadyLoop<float> *>(ready);
}
int backward(const slimrnn_scan *s, void *packed, int64_t first, int64_t rows, Crew *crew, void *sums) {
    Pack *pack = static_cast<Pack *>(packed);
    return pack->dtype == SLIMRNN_F64 ? run<double>(*s, pack, first, rows, crew, static_cast<double *>(sums))
                                      : run<float>(*s, pack, first, rows, crew, static_cast<float *>(sums));
}
template <class T> int64_t all_sums(const slimrnn_scan &s, Term<T> *const *terms) {
    int64_t size = 0;
    for (int phase = 0; phase < s.phases; phase++) size += Gradients<T>::size(s, terms + phase * terms_per_phase(s));
    return size;
}
template <class T> void deliver_all(const slimrnn_scan &s, Term<T> *const *terms, const T *sums) {
    for (int phase = 0; phase < s.phases; phase++)
        sums = Gradients<T>::deliver(s, terms + phase * terms_per_phase(s), sums, phase);
}
int64_t sums_size(const slimrnn_scan *s, void *packed) {
    Pack *pack = static_cast<Pack *>(packed);
    return pack->dtype == SLIMRNN_F64 ? all_sums<double>(*s, pack->twice) : all_sums<float>(*s, pack->single);
}
void deliver(const slimrnn_scan *s, void *packed, const void *sums) {
    Pack *pack = static_cast<Pack *>(packed);
    if (pack->dtype == SLIMRNN_F64)
        deliver_all<double>(*s, pack->twice, static_cast<const double *>(sums));
    else
        deliver_all<float>(*s, pack->single, static_cast<const float *>(sums));
}

// The memory of a single term's calls. The gradient reads whole vectors beyond the rows, so its x and y are copies.
template <class T> struct ProductMemory {
    Arena<T> scratch;
    T *sums, *kept, *x, *y, *d_x;
    ProductMemory(const slimrnn_scan &s, const Term<T> &term, int64_t rows, int64_t gates, Arena<T> &memory) {
        const int64_t size = round_up(term.scratch_size(rows), lanes<T>);
        scratch = Arena<T>(memory.take(size), size);
        sums = memory.take(term.gradient_size());
        kept = memory.take(rows * s.cell->matrices * term.kept_size());
        x = memory.take(rows * s.width + panel<T>), d_x = memory.take(rows * s.width + panel<T>);
        y = memory.take(rows * gates * s.width + panel<T>);
    }
};
template <class T> int run_product(const slimrnn_scan &s, int way, int64_t rows, int first, int last, T *x, T *y) {
    int status;
    Pack *pack = pack_terms(&s, way != SLIMRNN_WAY_PRODUCT, &status);
    if (!pack) return status;
    const Term<T> &term = *terms_of<T>(pack)[0];
    const int64_t width = s.width, ldy = (last - first) * width, ldk = s.cell->matrices * term.kept_size();
    Arena<T> counted;
    ProductMemory<T>(s, term, rows, last - first, counted);
    const Memory<T> memory(counted.taken());
    if (memory.data) {
        memset(memory.data, 0, sizeof(T) * size_t(counted.taken()));
        Arena<T> arena(memory.data, counted.taken());
        const ProductMemory<T> part(s, term, rows, last - first, arena);
        if (way == SLIMRNN_WAY_PRODUCT) {
            term.matvec(part.scratch, rows, x, width, y, ldy, first, last);
        } else if (way == SLIMRNN_WAY_ADJOINT) {
            term.rmatvec(part.scratch, rows, y, ldy, x, width, first, last, part.kept, ldk);
        } else {
            memcpy(part.x, x, sizeof(T) * size_t(rows * width));
            memcpy(part.y, y, sizeof(T) * size_t(rows * ldy));
            term.rmatvec(part.scratch, rows, part.y, ldy, part.d_x, width, first, last, part.kept, ldk);
            term.gradient(part.scratch, rows, part.x, width, part.y, ldy, first, last, part.kept, ldk, part.sums);
            term.deliver(part.sums, first, last);
        }
    }
    release(pack);
    return memory.data ? SLIMRNN_OK : SLIMRNN_NO_MEMORY;
}
int product(const slimrnn_scan *s, int way, int64_t rows, int first, int last, void *x, void *y) {
    return s->dtype == SLIMRNN_F64
               ? run_product<double>(*s, way, rows, first, last, static_cast<double *>(x), static_cast<double *>(y))
               : run_product<float>(*s, way, rows, first, last, static_cast<float *>(x), static_cast<float *>(y));
}

}  // namespace
}  // namespace SLIMRNN_ISA

#define SLIMRNN_JOIN2(a, b) a##b
#define SLIMRNN_JOIN(a, b) SLIMRNN_JOIN2(a, b)
#define SLIMRNN_TEXT2(a) #a
#define SLIMRNN_TEXT(a) SLIMRNN_TEXT2(a)
#if defined(__clang__)
#define SLIMRNN_COMPILER                                                                                               \
    "Clang " SLIMRNN_TEXT(__clang_major__) "." SLIMRNN_TEXT(__clang_minor__) "." SLIMRNN_TEXT(__clang_patchlevel__)
#else
#define SLIMRNN_COMPILER                                                                                               \
    "GCC " SLIMRNN_TEXT(__GNUC__) "." SLIMRNN_TEXT(__GNUC_MINOR__) "." SLIMRNN_TEXT(__GNUC_PATCHLEVEL__)
#endif
extern const Kernels SLIMRNN_JOIN(SLIMRNN_ISA, _kernels) = {
    SLIMRNN_TEXT(SLIMRNN_ISA),    SLIMRNN_ISA::structure_name, SLIMRNN_ISA::cell_code,  SLIMRNN_ISA::code_fits,
    SLIMRNN_ISA::terms_are_sound, SLIMRNN_ISA::pack,           SLIMRNN_ISA::pack_input, SLIMRNN_ISA::release,
    SLIMRNN_ISA::shared_weights,  SLIMRNN_ISA::forward,        SLIMRNN_ISA::sums_size,  SLIMRNN_ISA::backward,
    SLIMRNN_ISA::deliver,         SLIMRNN_ISA::ready_step,     SLIMRNN_ISA::run_step,   SLIMRNN_ISA::release_step,
    SLIMRNN_ISA::checksum,        SLIMRNN_ISA::product,        SLIMRNN_COMPILER,
};

}  // namespace slimrnn
