// Slices of work on several threads.
#pragma once
#include <cstdint>
#include <functional>

namespace slimrnn {

// Runs work(slice, first, count) on `count` slices of 0 … total-1, of which each thread takes the next one when it is
// done with one; the first failure is the result.
int share(int64_t total, int count, int threads, const std::function<int(int, int64_t, int64_t)> &work);

}  // namespace slimrnn
