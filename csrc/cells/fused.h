// Two instructions as one, which is one walk through memory instead of two: to = second(first(a, b), c) of simple
// arithmetic, and the sums over rows or units of a product.
#pragma once
#include "ops.h"

namespace slimrnn {

enum Simple { PLUS, MINUS, TIMES, SIMPLE_FIRST, FROM = SIMPLE_FIRST, SIMPLE_SECOND };  // x + y, x − y, x y; y − x
static constexpr int first_fused = SLIMRNN_OPS, fused_ops = SIMPLE_FIRST * SIMPLE_SECOND;

enum FusedSum { PRODUCT_SUM = first_fused + fused_ops, PRODUCT_TOTAL, END_OF_FUSED };

static constexpr bool is_simple(int op) { return op == SLIMRNN_ADD || op == SLIMRNN_SUB || op == SLIMRNN_MUL; }
static constexpr int simple(int op) { return op == SLIMRNN_ADD ? PLUS : op == SLIMRNN_SUB ? MINUS : TIMES; }
static constexpr int fused(int first, int second, bool first_is_right) {
    const int then = second == SLIMRNN_SUB && first_is_right ? FROM : simple(second);
    return first_fused + simple(first) * SIMPLE_SECOND + then;
}
template <int WHICH, class V> inline V simply(V x, V y) {
    return WHICH == PLUS ? x + y : WHICH == MINUS ? x - y : WHICH == TIMES ? x * y : y - x;
}

}  // namespace slimrnn
