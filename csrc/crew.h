// Threads that stand by while one of them walks through time, for work that cannot be shared out beforehand: the pieces of
// one product.
#pragma once
#include <atomic>
#include <cstdint>

namespace slimrnn {

class Crew {
  public:
    using Work = void (*)(void *context, int piece);
    static constexpr int most = 8;

    explicit Crew(int threads);
    ~Crew();
    Crew(const Crew &) = delete;

    int size() const { return threads; }
    // work(context, piece) for every piece 0 … size-1; done when it returns. A piece that its member has not begun in time
    // is done by the caller. If one that was begun does not end, its member has no core to run on: from then on the caller
    // works alone.
    void run(Work work, void *context);
    // What the others do: piece `member` of every job, until they are dismissed.
    void serve(int member);
    void dismiss();

    // Whether a crew that had to wait for its members was seen lately.
    static bool is_resting();

  private:
    // All that a member and the caller tell each other, in one line of the cache: each move of a line from core to core
    // takes as long as hundreds of multiplications.
    struct alignas(64) Member {
        std::atomic<uint32_t> job{0};  // number of the newest
        std::atomic<uint32_t> begun{0}, done{0};
        Work work = nullptr;
        void *context = nullptr;

        bool take(uint32_t number);
    };
    static constexpr uint32_t over = ~uint32_t(0);
    const int threads;
    uint32_t number = 0;
    bool alone = false;
    Member members[most];

    void finish(int piece, Work work, void *context);
};

// work(from, to) for pieces of 0 … total-1, or all at once where there is no crew.
template <class Range> void in_pieces(Crew *crew, int64_t total, const Range &range) {
    if (!crew || total < 2) return range(0, total);
    struct Job {
        const Range &range;
        int64_t total;
        int pieces;
    } job{range, total, crew->size()};
    crew->run(
        [](void *context, int piece) {
            const Job &job = *static_cast<Job *>(context);
            const int64_t from = job.total * piece / job.pieces, to = job.total * (piece + 1) / job.pieces;
            if (from < to) job.range(from, to);
        },
        &job);
}

}  // namespace slimrnn
