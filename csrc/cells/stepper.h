// What runs a step: the C++ that the library was built with for a cell, or the interpreter.
#pragma once
#include "interpret.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

// Null where there is none of this number.
template <class T> const CellCode<T> *find_code(int index);

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
