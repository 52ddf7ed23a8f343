// The C++ that the library was built with for cells.
#pragma once
#include "generated.h"
#include "modrelu.h"
#include "stepper.h"

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

template <class T> const CellCode<T> *find_code(int index) {
    if (index < 0 || index >= cell_code_count) return nullptr;
    return index < generated_count ? &generated<T>[index] : &by_hand<T>[index - generated_count];
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
