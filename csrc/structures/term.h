// What a structure offers the time loop.
#pragma once
#include "../include/slimrnn.h"
#include "../product.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

// A thread's own memory, handed out in pieces and taken back all at once.
template <class T> struct Scratch {
    T *data = nullptr;
    int64_t size = 0;
};

template <class T> struct Term {
    virtual ~Term() {}
    // Numbers of T that packing needs, and then the memory for them.
    virtual int64_t packed_size() const = 0;
    virtual void pack(T *memory, bool backward) = 0;
    // Numbers of T of a thread's scratch for `rows` rows.
    virtual int64_t scratch_size(int64_t rows) const = 0;
    // y (rows, last-first, width) += W x,   and   x (rows, width) += W^H y, for the gates first ... last-1
    virtual void matvec(T *scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                        int last) const = 0;
    virtual void rmatvec(T *scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first, int last,
                         T *kept, int64_t ldk) const = 0;
    // What rmatvec leaves in kept (rows, gates, kept_size), rows ldk apart, for the gradient of the same range of gates to
    // use. It is kept by gate: within a step, a gate may take part in one product only.
    virtual int64_t kept_size() const { return 0; }
    // sums (gradient_size numbers) += the gradient of Σ <y, W x> over these rows, where memory of a vector's length
    // follows x; at the end they are added to the caller's tensors
    virtual int64_t gradient_size() const = 0;
    virtual void gradient(T *scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first, int last,
                          const T *kept, int64_t ldk, T *sums) const = 0;
    virtual void deliver(const T *sums, int first, int last) const = 0;
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
