// Every cell by its number.
#pragma once
#include "elman.h"
#include "gru.h"
#include "lstm.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> Cell<T> find_cell(const slimrnn_scan &s) {
    switch (s.cell) {
        case SLIMRNN_TANH: return {1, Elman<T, Tanh>::forward, Elman<T, Tanh>::backward};
        case SLIMRNN_RELU: return {1, Elman<T, Relu>::forward, Elman<T, Relu>::backward};
        case SLIMRNN_IDENTITY: return {1, Elman<T, Identity>::forward, Elman<T, Identity>::backward};
        case SLIMRNN_MODRELU:
            if (s.is_complex) return {1, ModRelu<T, true>::forward, ModRelu<T, true>::backward};
            return {1, ModRelu<T, false>::forward, ModRelu<T, false>::backward};
        case SLIMRNN_LSTM: return {4, Lstm<T>::forward, Lstm<T>::backward};
        case SLIMRNN_GRU_AFTER: return {3, GruAfter<T>::forward, GruAfter<T>::backward};
        case SLIMRNN_GRU_BEFORE: return {3, GruBefore<T>::forward, GruBefore<T>::backward};
        default: return {0, nullptr, nullptr};
    }
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
