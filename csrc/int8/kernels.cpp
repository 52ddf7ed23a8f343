// int8 layers for one instruction set; compiled once for each, without contractions of products and sums (FMA), so that
// every set gives the same bits. Inference only.
#define SLIMRNN_INT8
#include "../kernels.h"

#include "../cells/generated.h"
#include "../ready_loop.h"
#include "structures.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> const CellCode<T> *find_code(int index) {
    return index >= 0 && index < generated_count ? &generated<T>[index] : nullptr;
}

namespace {

class Int8Input {
    Int8Matrix u;
    const float *bias = nullptr;

  public:
    Int8Input() = default;
    explicit Int8Input(const slimrnn_scan &s)
        : u{s.cell->gates * s.width, s.input_size, nullptr}, bias(static_cast<const float *>(s.bias)) {}
    int64_t packed_size() const { return u.size(); }
    void pack(float *memory, const slimrnn_scan &s) {
        u.memory = memory;
        u.pack(static_cast<const int8_t *>(s.u), static_cast<const float *>(s.u_scale));
    }
    int64_t scratch_size(int64_t rows) const { return Rounded::size(rows, u.columns); }
    void multiply(Arena<float> scratch, Crew *crew, int64_t rows, const float *x, float *to, int64_t apart) const {
        const Rounded rounded(scratch, rows, u.columns);
        rounded.round(rows, x, u.columns, u.columns);
        for (int64_t r = 0; r < rows && !bias; r++) memset(to + r * apart, 0, sizeof(float) * size_t(u.rows));
        in_pieces(crew, u.vectors(), [&](int64_t from, int64_t until) {
            slimrnn::SLIMRNN_ISA::multiply(rows, u, Panels{from, until}, rounded, 0, to, apart, bias);
        });
    }
};

struct Pack {
    int count;
    Term<float> *terms[SLIMRNN_MOST_TERMS * SLIMRNN_MOST_PHASES];
    void *memory, *input_memory;
    Ready<float> program;
    Int8Input input;

    Parts<float, Int8Input> parts() const { return {terms, program, input}; }
};

const Int8Structure *find(const slimrnn_term &term) {
    const char *name = SLIMRNN_FLOAT_KERNELS.structure_name(term.structure);
    for (const Int8Structure &s : int8_structures)
        if (name && !strcmp(name, s.name)) return &s;
    return nullptr;
}
bool terms_are_sound(const slimrnn_scan *s, bool backward) {
    for (int k = 0; k < s->term_count; k++) {
        const Int8Structure *found = find(s->terms[k]);
        if (backward || !found || !s->terms[k].tensors || !found->is_sound(Operands{s, s->terms[k]}, false))
            return false;
    }
    return true;
}

void release(void *packed) {
    Pack *pack = static_cast<Pack *>(packed);
    if (!pack) return;
    for (int k = 0; k < pack->count; k++) delete pack->terms[k];
    give_back(pack->memory);
    give_back(pack->input_memory);
    delete pack;
}
bool fill(Pack *pack, const slimrnn_scan &s) {
    int64_t size = 0;
    for (int k = 0; k < pack->count; k++) {
        pack->terms[k] = find(s.terms[k])->make(Operands{&s, s.terms[k]});
        if (!pack->terms[k]) return false;
        size += round_up(pack->terms[k]->packed_size(), lanes<float>);
    }
    float *at = static_cast<float *>(pack->memory = aligned(size * int64_t(sizeof(float))));
    if (!at) return false;
    for (int k = 0; k < pack->count; k++) {
        pack->terms[k]->pack(at, false);
        at += round_up(pack->terms[k]->packed_size(), lanes<float>);
    }
    return s.cell->code >= 0 || pack->program.make(*s.cell, s.cell->forward, s.width);
}
void *pack(const slimrnn_scan *s, bool, int *status) {
    Pack *made = new (std::nothrow) Pack{s->term_count, {}, nullptr, nullptr, {}, {}};
    *status = made && fill(made, *s) ? SLIMRNN_OK : SLIMRNN_NO_MEMORY;
    if (*status == SLIMRNN_OK) return made;
    release(made);
    return nullptr;
}
int pack_input(void *packed, const slimrnn_scan *s) {
    Pack *pack = static_cast<Pack *>(packed);
    pack->input = Int8Input(*s);
    pack->input_memory = aligned(pack->input.packed_size() * int64_t(sizeof(float)));
    if (!pack->input_memory) return SLIMRNN_NO_MEMORY;
    pack->input.pack(static_cast<float *>(pack->input_memory), *s);
    return SLIMRNN_OK;
}
int64_t shared_weights(const slimrnn_scan *, void *packed) {
    const Pack *pack = static_cast<Pack *>(packed);
    int64_t count = 0;
    for (int k = 0; k < pack->count; k++) count += pack->terms[k]->shared_weights();
    return count;
}
int forward(const slimrnn_scan *s, void *packed, int64_t first, int64_t rows, Crew *crew) {
    return run_forward(*s, static_cast<Pack *>(packed)->parts(), first, rows, crew);
}
ReadyStep *ready_step(const slimrnn_scan *s, void *packed) {
    return new ReadyLoop<float, Int8Input>(*s, static_cast<Pack *>(packed)->parts());
}
void run_step(ReadyStep *ready, const slimrnn_places &places) {
    static_cast<ReadyLoop<float, Int8Input> *>(ready)->run(places);
}
void release_step(ReadyStep *ready) { delete static_cast<ReadyLoop<float, Int8Input> *>(ready); }

}  // namespace
}  // namespace SLIMRNN_ISA

extern const Kernels SLIMRNN_INT8_KERNELS = {
    SLIMRNN_FLOAT_KERNELS.name,
    nullptr,
    nullptr,
    SLIMRNN_ISA::code_fits,
    SLIMRNN_ISA::terms_are_sound,
    SLIMRNN_ISA::pack,
    SLIMRNN_ISA::pack_input,
    SLIMRNN_ISA::release,
    SLIMRNN_ISA::shared_weights,
    SLIMRNN_ISA::forward,
    nullptr,
    nullptr,
    nullptr,
    SLIMRNN_ISA::ready_step,
    SLIMRNN_ISA::run_step,
    SLIMRNN_ISA::release_step,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace slimrnn
