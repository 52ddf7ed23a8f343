// What runs a step: the C++ that the library was built with for a cell, or the interpreter.
#pragma once
#include "generated.h"
#include "interpret.h"
#include "modrelu.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T>
constexpr CellCode<T> by_hand[] = {
    {"modrelu", ModRelu<T, false>::forward, ModRelu<T, false>::backward},
    {"modrelu_leaky", ModRelu<T, true>::forward, ModRelu<T, true>::backward},
};
constexpr int cell_code_count = generated_count + int(sizeof(by_hand<float>) / sizeof(by_hand<float>[0]));

// Null where there is none of this number.
template <class T> const CellCode<T> *find_code(int index) {
    if (index < 0 || index >= cell_code_count) return nullptr;
    return index < generated_count ? &generated<T>[index] : &by_hand<T>[index - generated_count];
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
