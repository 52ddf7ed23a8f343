// The pool's queue, and the threads that take frames from it.
#include "pool.h"

namespace slimrnn {

void Pool::add(Frame &frame, int32_t slot, Clock::time_point now) {
    Stream &stream = streams[size_t(slot)];
    frame.slot = slot, frame.arrival = now, frame.status = SLIMRNN_WAITING, frame.next = nullptr;
    (stream.first ? stream.last->next : stream.first) = &frame;
    stream.last = &frame;
    stream.came++, pending++;
    enqueue(slot);
}

void Pool::enqueue(int32_t slot) {
    Stream &stream = streams[size_t(slot)];
    if (!stream.first || stream.queued || stream.running || stream.is_blocked()) return;
    stream.queued = true;
    queue.push_back(slot);
}

void Pool::finish(Frame &frame, Clock::time_point now) {
    counts.add_frame(frame.arrival, now, !frame.status);
    if (--pending == 0 && stopping) work.notify_all(), settled.notify_all();
    if (frame.call) {
        if (--frame.call->left == 0) frame.call->done.notify_one();
        return;
    }
    Ticket &ticket = static_cast<Ticket &>(frame);
    ticket.is_done = true;
    if (ticket.collected) {
        to_collect.push_back(ticket.place);
        collectable.notify_one();
    } else if (!ticket.is_wanted) {
        release(ticket);
    } else {
        ticket.done.notify_all();
    }
}

// When the first frame has waited for others long enough.
Clock::time_point Pool::due() const {
    const Frame *first = streams[size_t(queue.front())].first;
    if (!first || stopping || int64_t(queue.size()) >= options.max_batch) return Clock::time_point::min();
    return first->arrival + max_delay;
}

// Other threads for so many frames.
void Pool::wake(int64_t frames) {
    if (queue.empty() || free_runners.empty()) return;
    for (int32_t k = 0; k < idle && frames > 0; k++, frames -= few) work.notify_one();
}

// Of the frames that wait: all threads that could run some should have as many.
int64_t Pool::share() const {
    const int64_t waiting = int64_t(queue.size()), all = std::min<int64_t>(idle + 1, int64_t(free_runners.size()));
    return std::min(options.max_batch, std::max(few, (waiting + all - 1) / all));
}

void Pool::serve() {
    Lock lock(mutex);
    while (!stopping || pending) {
        if (can_run() && (max_delay.count() == 0 || due() <= Clock::now())) {
            run_some(lock);
            continue;
        }
        idle++;
        if (can_run())
            work.wait_until(lock, due());
        else
            work.wait(lock);
        idle--;
    }
}

// What a thread does that waits for frames of its own.
void Pool::help(Lock &lock, StepCall &call) {
    if (!can_run())
        call.done.wait(lock);
    else if (max_delay.count() == 0 || due() <= Clock::now())
        run_some(lock);
    else
        call.done.wait_until(lock, due());
}

void Pool::run_some(Lock &lock) {
    const int64_t most = share();
    Runner &runner = *free_runners.back();
    free_runners.pop_back();
    runner.frames.clear();
    while (!queue.empty() && int64_t(runner.frames.size()) < most) {
        Stream &stream = streams[size_t(queue.front())];
        queue.pop_front();
        stream.queued = false;
        if (!stream.first || stream.is_blocked()) continue;
        Frame *frame = stream.first;
        runner.frames.push_back(frame);
        if (frame->before) stream.held = frame->call;
        stream.first = frame->next;
        stream.running = true;
    }
    lock.unlock();
    compute(runner);
    lock.lock();
    const Clock::time_point now = Clock::now();
    if (!runner.frames.empty()) counts.add_batch(int64_t(runner.frames.size()));
    for (Frame *frame : runner.frames) {
        const int32_t slot = frame->slot;
        Stream &stream = streams[size_t(slot)];
        stream.running = false, stream.done++;
        finish(*frame, now);
        if (stream.stop_at != Stream::never) settled.notify_all();
        if (!stream.open && !stream.held) free_slots.push_back(slot);
        enqueue(slot);
    }
    free_runners.push_back(&runner);
    wake(int64_t(queue.size()));
}

// Without the lock: of a stream that is running nobody else sees the state.
void Pool::compute(Runner &runner) const {
    const int64_t rows = int64_t(runner.frames.size());
    if (!rows) return;
    for (int64_t r = 0; r < rows; r++) memcpy(runner.room.x.data() + r * row, runner.frames[size_t(r)]->x, size_t(row));
    model.gather(runner.room, rows, [&](int64_t r) { return state(runner.frames[size_t(r)]->slot); });
    const int32_t status = model.run(runner.room, rows);
    for (int64_t r = 0; r < rows; r++) {
        Frame &frame = *runner.frames[size_t(r)];
        frame.status = status;
        if (status) continue;
        if (!options.takes_nan && !model.is_finite(runner.room, rows, r)) {
            frame.status = SLIMRNN_NOT_FINITE;
            continue;
        }
        if (frame.before && model.record) memcpy(frame.before, state(frame.slot), size_t(model.record));
        model.scatter(runner.room, rows, r, state(frame.slot));
        memcpy(frame.output, runner.room.output() + r * out, size_t(out));
    }
}

}  // namespace slimrnn
