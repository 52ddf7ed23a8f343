#include "threads.h"

#include "include/slimrnn.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <vector>
#ifdef __unix__
#include <dlfcn.h>
#include <unistd.h>
#endif

namespace slimrnn {
namespace {

struct Slices {
    const int64_t total;
    const int count, threads;
    const std::function<int(int, int64_t, int64_t)> &work;
    std::vector<int> status;
    std::atomic<int> next{0};

    void do_one(int k) {
        const int64_t from = total * k / count, to = total * (k + 1) / count;
        try {
            status[size_t(k)] = work(k, from, to - from);
        } catch (const std::bad_alloc &) {  // no exception may leave a thread
            status[size_t(k)] = SLIMRNN_NO_MEMORY;
        } catch (...) {
            status[size_t(k)] = SLIMRNN_INTERNAL;
        }
    }
    void do_what_is_left() {
        for (int k = next++; k < count; k = next++) do_one(k);
    }
    static void run(void *slices) { static_cast<Slices *>(slices)->do_what_is_left(); }
};

// The threads of the OpenMP library that the process has loaded already: torch's. After each loop of torch's they wait for
// the next one for some milliseconds, busily, on the cores that threads of our own would need. In the child of a fork
// they do not exist.
#ifdef __unix__
using Parallel = void (*)(void (*)(void *), void *, unsigned, unsigned);
Parallel find_parallel() { return reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel")); }
const pid_t loaded_in = getpid();
bool run_on_team(Slices &slices) {
    static const Parallel parallel = find_parallel();
    if (!parallel || getpid() != loaded_in) return false;
    parallel(Slices::run, &slices, unsigned(slices.threads), 0);
    return true;
}
#else
bool run_on_team(Slices &) { return false; }
#endif

void run_on_own_threads(Slices &slices) {
    std::vector<std::thread> others;
    try {
        for (int k = 1; k < slices.threads; k++) others.emplace_back(Slices::run, &slices);
    } catch (const std::system_error &) {
        // no more threads to be had: the others do the rest
    }
    slices.do_what_is_left();
    for (auto &t : others) t.join();
}

}  // namespace

int share(int64_t total, int count, int threads, const std::function<int(int, int64_t, int64_t)> &work) {
    Slices slices{total, count, std::min(count, threads), work, std::vector<int>(size_t(count), SLIMRNN_OK)};
    if (slices.threads <= 1)
        slices.do_what_is_left();
    else if (!run_on_team(slices))
        run_on_own_threads(slices);
    for (int s : slices.status)
        if (s) return s;
    return SLIMRNN_OK;
}

}  // namespace slimrnn
