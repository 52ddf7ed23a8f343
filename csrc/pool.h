// Streams of one model: their states, a queue of frames, and threads that run whatever has come as one batch.
//
// A frame waits in the queue of its stream. A stream whose frames wait is `queued` until a thread takes its first frame,
// and then `running`: never twice at once, so its frames stay in order. One mutex guards everything but the computing.
//
// A call of `step` with several frames has all of them run, or none: every frame keeps the state from before it, and a
// stream is `held` from the first one until the call is settled, so that nobody sees a state that may be taken back. All
// frames of a call come at once, before those of later calls in every stream: calls do not wait for each other in a ring.
#pragma once
#include "pool_model.h"
#include "pool_stats.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace slimrnn {

// Who waits for frames.
struct StepCall {
    int64_t left;
    std::condition_variable done;
};

struct Frame {
    const char *x = nullptr;
    char *output = nullptr;
    char *before = nullptr;  // room for the state before it; null: it is not taken back
    int32_t slot = 0, status = SLIMRNN_WAITING;
    Clock::time_point arrival;
    Frame *next = nullptr;     // of the same stream
    StepCall *call = nullptr;  // null: a ticket
};

// A frame with memory of its own.
struct Ticket : Frame {
    const int32_t place;
    uint32_t number = 0;  // how often it has been in use
    bool used = false, collected = false, is_wanted = false, is_done = false;
    Block memory;
    std::condition_variable done;
    explicit Ticket(int32_t place) : place(place) {}
    int64_t id() const { return int64_t(number) << 32 | place; }
};

struct Stream {
    uint32_t number = 0;  // how often the slot has been in use
    bool open = false, queued = false, running = false;
    Frame *first = nullptr, *last = nullptr;  // those that wait
    int64_t came = 0, done = 0;               // frames
    int64_t stop_at = never;                  // so many done: someone wants to see the state
    const StepCall *held = nullptr;           // frames of others wait
    static constexpr int64_t never = std::numeric_limits<int64_t>::max();
    bool is_blocked() const { return done >= stop_at || (held && first->call != held); }
};

class Pool {
    using Lock = std::unique_lock<std::mutex>;
    struct Runner {
        PoolModel::Room room;
        std::vector<Frame *> frames;
    };

    const PoolModel model;
    const slimrnn_pool_options options;
    const int64_t row, out;  // bytes of a frame and of an output
    const Clock::duration max_delay;
    const Block states;  // (capacity, record)
    std::mutex mutex;
    std::condition_variable work, settled, collectable;
    std::vector<Stream> streams;
    std::vector<int32_t> free_slots;
    std::deque<int32_t> queue;  // slots; a stream that was closed meanwhile has no frames
    std::deque<Ticket> tickets;
    std::vector<int32_t> free_tickets;
    std::deque<int32_t> to_collect;
    std::vector<Runner> runners;
    std::vector<Runner *> free_runners;
    std::vector<std::thread> threads;
    int64_t pending = 0;                    // frames that are not done
    int64_t open_tickets = 0, to_come = 0;  // those that are in use, and among them those to be collected
    int32_t idle = 0;                       // threads that wait for work
    bool stopping = false;
    PoolCounts counts;

  public:
    Pool(const void *model, int64_t size, const slimrnn_pool_options &options);
    Pool(const Pool &) = delete;
    ~Pool() { shut_down(); }
    void shut_down();
    void tell(bool start_again, slimrnn_pool_stats &to);

    int32_t open(int64_t *stream) { return open(model.initial.data(), 0, stream); }
    int32_t close(int64_t stream);
    int64_t saved_bytes() const { return head + model.record + 8; }
    int32_t save(int64_t stream, char *bytes);
    int32_t load(const char *bytes, int64_t size, int64_t *stream);

    int32_t step(int64_t count, const int64_t *ids, const char *x, char *outputs, int32_t *statuses);
    int32_t submit(int64_t stream, const char *x, bool collected, int64_t *id);
    int32_t take(int64_t id, double seconds, char *output);
    int32_t collect(int64_t room, double seconds, int64_t *ids, char *outputs, int32_t *statuses, int64_t *count);

  private:
    static constexpr int64_t head = 32;  // bytes of a saved stream before its states
    static constexpr int64_t few = 8;    // frames: for fewer, no other thread is woken

    char *state(int32_t slot) const { return states.data() + slot * model.record; }
    bool takes(const char *x) const { return options.takes_nan || model.is_finite(x, model.input_size()); }
    Stream *find(int64_t id);
    Ticket *find_ticket(int64_t id);
    int32_t open(const char *record, int64_t frames, int64_t *stream);
    void write(int32_t slot, char *bytes) const;
    Ticket &new_ticket(const char *x, bool collected);
    int32_t hand_out(Ticket &ticket, char *output);
    void release(Ticket &ticket);
    void settle(std::vector<Frame> &frames, bool failed);

    void add(Frame &frame, int32_t slot, Clock::time_point now);
    void enqueue(int32_t slot);
    void finish(Frame &frame, Clock::time_point now);
    bool can_run() const { return !queue.empty() && !free_runners.empty(); }
    Clock::time_point due() const;
    void serve();
    void help(Lock &lock, StepCall &call);
    void wake(int64_t frames);
    int64_t share() const;
    void run_some(Lock &lock);
    void compute(Runner &runner) const;
};

}  // namespace slimrnn
