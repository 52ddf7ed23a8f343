// All kernels for one instruction set; this file is compiled once for each. Nothing here is inline across sets: names
// live in a namespace of the set, and no standard container is used, so that no linker can mix them.
#include "kernels.h"

#include "cells/find.h"
#include "checksum.h"
#include "ready_loop.h"
#include "structures/registry.h"

namespace slimrnn {
namespace SLIMRNN_ISA {
namespace {

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
    InputProduct<float> single_input;
    InputProduct<double> twice_input;
};
template <class T> Term<T> **terms_of(Pack *p);
template <> Term<float> **terms_of(Pack *p) { return p->single; }
template <> Term<double> **terms_of(Pack *p) { return p->twice; }
template <class T> Ready<T> &program_of(Pack *p);
template <> Ready<float> &program_of(Pack *p) { return p->single_program; }
template <> Ready<double> &program_of(Pack *p) { return p->twice_program; }
template <class T> InputProduct<T> &input_of(Pack *p);
template <> InputProduct<float> &input_of(Pack *p) { return p->single_input; }
template <> InputProduct<double> &input_of(Pack *p) { return p->twice_input; }
template <class T> Parts<T> parts_of(Pack *p) { return {terms_of<T>(p), program_of<T>(p), input_of<T>(p)}; }

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
    Pack *made = new (std::nothrow) Pack{s->dtype, s->term_count, {}, {}, nullptr, nullptr, {}, {}, {}, {}};
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
    InputProduct<T> &input = input_of<T>(pack) = InputProduct<T>(s);
    pack->input = aligned(input.packed_size() * int64_t(sizeof(T)));
    if (!pack->input) return SLIMRNN_NO_MEMORY;
    input.pack(static_cast<T *>(pack->input), s);
    return SLIMRNN_OK;
}
int pack_input(void *packed, const slimrnn_scan *s) {
    Pack *pack = static_cast<Pack *>(packed);
    return pack->dtype == SLIMRNN_F64 ? fill_input<double>(pack, *s) : fill_input<float>(pack, *s);
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
int forward(const slimrnn_scan *s, void *packed, int64_t first, int64_t rows, Crew *crew) {
    Pack *pack = static_cast<Pack *>(packed);
    return pack->dtype == SLIMRNN_F64 ? run_forward(*s, parts_of<double>(pack), first, rows, crew)
                                      : run_forward(*s, parts_of<float>(pack), first, rows, crew);
}

ReadyStep *ready_step(const slimrnn_scan *s, void *packed) {
    Pack *pack = static_cast<Pack *>(packed);
    if (pack->dtype == SLIMRNN_F64) return new ReadyLoop<double>(*s, parts_of<double>(pack));
    return new ReadyLoop<float>(*s, parts_of<float>(pack));
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
    return pack->dtype == SLIMRNN_F64
               ? run_backward(*s, parts_of<double>(pack), first, rows, crew, static_cast<double *>(sums))
               : run_backward(*s, parts_of<float>(pack), first, rows, crew, static_cast<float *>(sums));
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

#define SLIMRNN_TEXT2(a) #a
#define SLIMRNN_TEXT(a) SLIMRNN_TEXT2(a)
#if defined(__clang__)
#define SLIMRNN_COMPILER                                                                                               \
    "Clang " SLIMRNN_TEXT(__clang_major__) "." SLIMRNN_TEXT(__clang_minor__) "." SLIMRNN_TEXT(__clang_patchlevel__)
#else
#define SLIMRNN_COMPILER                                                                                               \
    "GCC " SLIMRNN_TEXT(__GNUC__) "." SLIMRNN_TEXT(__GNUC_MINOR__) "." SLIMRNN_TEXT(__GNUC_PATCHLEVEL__)
#endif
extern const Kernels SLIMRNN_FLOAT_KERNELS = {
    SLIMRNN_TEXT(SLIMRNN_ISA),    SLIMRNN_ISA::structure_name, SLIMRNN_ISA::cell_code,  SLIMRNN_ISA::code_fits,
    SLIMRNN_ISA::terms_are_sound, SLIMRNN_ISA::pack,           SLIMRNN_ISA::pack_input, SLIMRNN_ISA::release,
    SLIMRNN_ISA::shared_weights,  SLIMRNN_ISA::forward,        SLIMRNN_ISA::sums_size,  SLIMRNN_ISA::backward,
    SLIMRNN_ISA::deliver,         SLIMRNN_ISA::ready_step,     SLIMRNN_ISA::run_step,   SLIMRNN_ISA::release_step,
    SLIMRNN_ISA::checksum,        SLIMRNN_ISA::product,        SLIMRNN_COMPILER,        &SLIMRNN_INT8_KERNELS,
};

}  // namespace slimrnn
