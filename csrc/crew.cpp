#include "crew.h"

#include <algorithm>
#include <thread>

namespace slimrnn {
namespace {

// After a call that had to wait, so many are made alone: a machine that was busy is so for a while. The next rest is twice
// as long, but shorter by some for every call that did not have to wait.
constexpr int shortest = 20, longest = 2560, less = 8;
std::atomic<int> resting{0}, rest{shortest};

// Looks at a line of memory, of some ten nanoseconds each. A member that runs begins sooner than `soon`; no piece takes as
// long as `patience`.
constexpr int soon = 50, patience = 4000;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

Crew::Crew(int threads) : threads(std::min(threads, most)) {}

Crew::~Crew() {
    const int now = rest.load(std::memory_order_relaxed);
    if (alone) resting.store(now, std::memory_order_relaxed);
    rest.store(alone ? std::min(2 * now, longest) : std::max(now - less, shortest), std::memory_order_relaxed);
}

bool Crew::is_resting() {
    int calls = resting.load(std::memory_order_relaxed);
    while (calls > 0 && !resting.compare_exchange_weak(calls, calls - 1, std::memory_order_relaxed)) {
    }
    return calls > 0;
}

bool Crew::Member::take(uint32_t number) {
    uint32_t before = number - 1;
    return begun.compare_exchange_strong(before, number, std::memory_order_acq_rel);
}

void Crew::run(Work work, void *context) {
    if (alone) {
        for (int piece = 0; piece < threads; piece++) work(context, piece);
        return;
    }
    number++;
    for (int piece = 1; piece < threads; piece++) {
        Member &member = members[piece];
        member.work = work, member.context = context;
        member.job.store(number, std::memory_order_release);
    }
    work(context, 0);
    for (int piece = 1; piece < threads; piece++) finish(piece, work, context);
}

void Crew::finish(int piece, Work work, void *context) {
    Member &member = members[piece];
    for (int looks = 0; member.done.load(std::memory_order_acquire) != number; looks++) {
        if (looks == soon && member.take(number)) return work(context, piece);
        if (looks < patience) {
            relax();
            continue;
        }
        alone = true;
        std::this_thread::yield();
    }
}

void Crew::serve(int which) {
    if (which >= threads) return;
    Member &member = members[which];
    uint32_t seen = 0;
    for (int looks = 0;; looks++) {
        const uint32_t number = member.job.load(std::memory_order_acquire);
        if (number == over) return;
        if (number == seen) {
            if (looks < patience)
                relax();
            else
                std::this_thread::yield();
            continue;
        }
        seen = number, looks = 0;
        if (!member.take(number)) continue;
        member.work(member.context, which);
        member.done.store(number, std::memory_order_release);
    }
}

void Crew::dismiss() {
    for (Member &member : members) member.job.store(over, std::memory_order_release);
}

}  // namespace slimrnn
