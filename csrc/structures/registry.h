// Every structure, in one line each. Python finds them by name through slimrnn_structure.
#pragma once
#include "block_diagonal.h"
#include "chain.h"
#include "circulant.h"
#include "diagonal.h"
#include "kronecker_traces.h"
#include "low_rank.h"
#include "permutation.h"
#include "sparse.h"
#include "unitary_product.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

template <class T> struct Structure {
    const char *name;
    bool (*is_sound)(const Operands &, bool backward);
    Term<T> *(*make)(const Operands &);  // null when memory is short
};

template <class T, class S> constexpr Structure<T> describe() { return {S::name, S::is_sound, S::make}; }

template <class T>
constexpr Structure<T> structures[] = {
    describe<T, BlockDiagonal<T>>(), describe<T, Diagonal<T>>(),       describe<T, LowRank<T>>(),
    describe<T, Kronecker<T>>(),     describe<T, UnitaryProduct<T>>(), describe<T, Permutation<T>>(),
    describe<T, Sparse<T>>(),        describe<T, Chain<T>>(),          describe<T, Circulant<T>>(),
};
constexpr int structure_count = int(sizeof(structures<float>) / sizeof(structures<float>[0]));

template <class T> const Structure<T> *find_structure(int64_t code) {
    for (const Structure<T> &s : structures<T>)
        if (code_of(s.name) == code) return &s;
    return nullptr;
}

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
