// Written by `make cells` from src/slimrnn/cells. Do not edit.
#pragma once
#include "noise.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> constexpr CellCode<T> generated[] = {{nullptr, nullptr, nullptr}};  // none yet
constexpr int generated_count = 0;

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
