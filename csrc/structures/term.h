// What a structure offers the time loop.
#pragma once
#include "../arena.h"
#include "../include/slimrnn.h"

#include <new>

namespace slimrnn {
namespace SLIMRNN_ISA {

// The tensors of one term, and what the call says about every map.
struct Operands {
    const slimrnn_scan *scan;
    const slimrnn_term &term;

    int gates() const { return scan->cell->matrices; }
    bool is_complex() const { return scan->is_complex; }
    int64_t width() const { return scan->width; }  // real numbers of a state
    int64_t size() const { return is_complex() ? width() / 2 : width(); }
    int count() const { return term.tensor_count; }
    int dims(int i) const { return i < count() ? term.tensors[i].dims : 0; }
    int64_t extent(int i, int axis) const { return axis < dims(i) ? term.tensors[i].shape[axis] : 0; }
    template <class T> const T *data(int i) const { return static_cast<const T *>(term.tensors[i].data); }
    template <class T> T *gradient(int i) const { return static_cast<T *>(term.tensors[i].gradient); }

    // Tensor i is there and has this shape.
    template <class... Extent> bool has(int i, Extent... extents) const {
        const int64_t wanted[] = {extents...};
        if (i >= count() || !term.tensors[i].data || dims(i) != int(sizeof...(extents))) return false;
        for (int axis = 0; axis < dims(i); axis++)
            if (extent(i, axis) != wanted[axis] || wanted[axis] < 1) return false;
        return true;
    }
    // The first so many tensors have somewhere to add their gradients to.
    bool have_gradients(int tensors) const {
        for (int i = 0; i < tensors; i++)
            if (!term.tensors[i].gradient) return false;
        return true;
    }
};

// A structure also has: its name; is_sound, which says what its tensors must be; make, which builds it.
template <class T> struct Term {
    virtual ~Term() {}
    // Numbers of T that packing needs, and then the memory for them.
    virtual int64_t packed_size() const = 0;
    virtual void pack(T *memory, bool backward) = 0;
    // Numbers of T that the calls below may take from the thread's scratch, for `rows` rows.
    virtual int64_t scratch_size(int64_t rows) const = 0;
    // Weights whose products the thread shares with its crew, where it has one.
    virtual int64_t shared_weights() const { return 0; }
    // y (rows, last-first, width) += W x,   and   x (rows, width) += W^H y, for the gates first ... last-1
    virtual void matvec(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, T *y, int64_t ldy, int first,
                        int last) const = 0;
    virtual void rmatvec(Arena<T> scratch, int64_t rows, const T *y, int64_t ldy, T *x, int64_t ldx, int first,
                         int last, T *kept, int64_t ldk) const = 0;
    // What rmatvec leaves in kept (rows, gates, kept_size), rows ldk apart, for the gradient of the same range of gates to
    // use. It is kept by gate: products that share a gate have a memory each.
    virtual int64_t kept_size() const { return 0; }
    // sums (gradient_size numbers) += the gradient of Σ <y, W x> over these rows, where memory of a vector's length
    // follows x; at the end they are added to the caller's tensors
    virtual int64_t gradient_size() const = 0;
    virtual void gradient(Arena<T> scratch, int64_t rows, const T *x, int64_t ldx, const T *y, int64_t ldy, int first,
                          int last, const T *kept, int64_t ldk, T *sums) const = 0;
    virtual void deliver(const T *sums, int first, int last) const = 0;
};

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
