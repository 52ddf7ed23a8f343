// What a pool counts.
#pragma once
#include "include/slimrnn.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace slimrnn {

using Clock = std::chrono::steady_clock;

// Durations in eight steps for each doubling, from a microsecond to some hours.
class Latencies {
    static constexpr int per_doubling = 8, count = 36 * per_doubling;
    int64_t found[count] = {};
    int64_t total = 0;
    double longest = 0;

    static double end_of(int place) {
        return 1e-6 * std::ldexp(1 + (place % per_doubling + 1) / double(per_doubling), place / per_doubling);
    }

  public:
    void add(double seconds) {
        int doublings;
        const double part = std::frexp(std::max(seconds, 1e-6) * 1e6, &doublings);  // 0.5 ... 1
        const int place = (doublings - 1) * per_doubling + int((2 * part - 1) * per_doubling);
        found[std::min(place, count - 1)]++;
        total++;
        longest = std::max(longest, seconds);
    }
    // At most an eighth more than the true one.
    double percentile(double share) const {
        int64_t left = int64_t(std::ceil(share * double(total)));
        for (int k = 0; k < count && total; k++)
            if ((left -= found[k]) <= 0) return std::min(longest, end_of(k));
        return longest;
    }
    double most() const { return longest; }
};

struct PoolCounts {
    int64_t frames = 0, batches = 0, largest = 0, failed = 0;
    int64_t sizes[SLIMRNN_POOL_SIZES] = {};
    Latencies latencies;
    Clock::time_point since = Clock::now();

    void add_batch(int64_t rows) {
        batches++;
        largest = std::max(largest, rows);
        int k = 0;
        while (k + 1 < SLIMRNN_POOL_SIZES && rows >> (k + 1)) k++;
        sizes[k]++;
    }
    void add_frame(Clock::time_point arrival, Clock::time_point now, bool good) {
        (good ? frames : failed)++;
        latencies.add(std::chrono::duration<double>(now - arrival).count());
    }
    void tell(slimrnn_pool_stats &to) const {
        to.frames = frames, to.batches = batches, to.failed = failed, to.largest_batch = largest;
        std::copy(sizes, sizes + SLIMRNN_POOL_SIZES, to.batch_sizes);
        to.seconds = std::chrono::duration<double>(Clock::now() - since).count();
        to.p50 = latencies.percentile(0.5), to.p90 = latencies.percentile(0.9), to.p99 = latencies.percentile(0.99);
        to.p999 = latencies.percentile(0.999), to.longest = latencies.most();
    }
};

}  // namespace slimrnn
