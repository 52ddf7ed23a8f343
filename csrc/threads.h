// Slices of work on several threads.
#pragma once
#include <cstdint>
#include <functional>

namespace slimrnn {

// Runs work(slice, first, count) on slices of 0 … total-1, one per thread; the first failure is the result.
int share(int64_t total, int threads, const std::function<int(int, int64_t, int64_t)> &work);

}  // namespace slimrnn
