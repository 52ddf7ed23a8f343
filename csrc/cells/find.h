// What runs a step: the C++ that the library was built with for a cell, or the interpreter.
#pragma once
#include "generated.h"
#include "interpret.h"
#include "modrelu.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T>
constexpr CellCode<T> by_hand[] = {
    {"modrelu", {1, 1, 1, 1, 1, 0, 0, 0, 1}, ModRelu<T, true, false>::forward, ModRelu<T, true, false>::backward},
    {"modrelu_leaky", {1, 1, 1, 2, 1, 1, 0, 0, 1}, ModRelu<T, true, true>::forward, ModRelu<T, true, true>::backward},
    {"modrelu_real",
     {1, 1, 1, 1, 1, 0, 0, 0, 1},
     ModRelu<T, false, false>::forward,
     ModRelu<T, false, false>::backward},
    {"modrelu_real_leaky",
     {1, 1, 1, 2, 1, 1, 0, 0, 1},
     ModRelu<T, false, true>::forward,
     ModRelu<T, false, true>::backward},
};
constexpr int cell_code_count = generated_count + int(sizeof(by_hand<float>) / sizeof(by_hand<float>[0]));

// Null where there is none of this number.
template <class T> const CellCode<T> *find_code(int index) {
    if (index < 0 || index >= cell_code_count) return nullptr;
    return index < generated_count ? &generated<T>[index] : &by_hand<T>[index - generated_count];
}

// Whether a cell that wants this code is the one that it was made for.
inline bool code_fits(const slimrnn_cell &c) {
    const CellCode<float> *code = find_code<float>(c.code);
    const int32_t sizes[] = {c.gates, c.matrices, c.states,   c.own_rows,     c.slots,
                             c.kept,  c.spares,   c.row_sums, c.product_count};
    return code && !memcmp(sizes, code->sizes, sizeof sizes);
}

// The step of one thread.
template <class T> class Stepper {
    const CellCode<T> *code = nullptr;
    const Ready<T> *program = nullptr;
    Interpreter<T> interpreter;

  public:
    Stepper(const slimrnn_scan &s, const Ready<T> &program, Arena<T> &memory) : code(find_code<T>(s.cell->code)) {
        if (code) return;
        this->program = &program;
        interpreter = Interpreter<T>(*s.cell, s.width, memory);
    }
    void forward(Step<T> &s) {
        if (code)
            code->forward(s);
        else
            interpreter.run(*program, s);
    }
    void backward(Step<T> &s) {
        if (code)
            code->backward(s);
        else
            interpreter.run(*program, s);
    }
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
