#include "pool.h"

namespace slimrnn {
namespace {

constexpr char saved_magic[] = "SLIMSTRM";
constexpr int64_t most_frames = int64_t(1) << 62;  // of a saved stream: as many again do not overflow

Clock::time_point after(double seconds) {
    const std::chrono::duration<double> most(std::min(seconds, 1e8));
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(most);
}
int32_t first_failure(int64_t count, const int32_t *statuses) {
    for (int64_t k = 0; k < count; k++)
        if (statuses[k]) return statuses[k];
    return SLIMRNN_OK;
}

}  // namespace

Pool::Pool(const void *bytes, int64_t size, const slimrnn_pool_options &wanted)
    : model(bytes, size), options(wanted), row(model.input_size() * model.item), out(model.output_size() * model.item),
      max_delay(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wanted.max_delay))),
      states(wanted.capacity * model.record), streams(size_t(wanted.capacity)) {
    free_slots.reserve(streams.size());
    for (int64_t k = wanted.capacity - 1; k >= 0; k--) free_slots.push_back(int32_t(k));
    for (int32_t k = 0; k < wanted.threads; k++) runners.push_back({{model, wanted.max_batch}, {}});
    for (Runner &runner : runners) {
        runner.frames.reserve(size_t(wanted.max_batch));
        free_runners.push_back(&runner);
    }
    try {
        for (int32_t k = 0; k < wanted.threads; k++) threads.emplace_back([this] { serve(); });
    } catch (...) {
        shut_down();
        throw;
    }
}

void Pool::shut_down() {
    std::vector<std::thread> mine;
    {
        const Lock lock(mutex);
        stopping = true;
        mine.swap(threads);
        work.notify_all();
        collectable.notify_all();
    }
    for (auto &thread : mine) thread.join();
    Lock lock(mutex);
    settled.wait(lock, [this] { return pending == 0; });  // where another thread is shutting down
}

void Pool::tell(bool start_again, slimrnn_pool_stats &to) {
    const Lock lock(mutex);
    counts.tell(to);
    to.input_size = model.input_size(), to.output_size = model.output_size(), to.dtype = model.dtype;
    to.saved_bytes = saved_bytes(), to.capacity = options.capacity, to.waiting = pending;
    to.open = options.capacity - int64_t(free_slots.size());
    if (start_again) counts = PoolCounts();
}

// --- streams -------------------------------------------------------------------------------------------------------

Stream *Pool::find(int64_t id) {
    const uint64_t slot = uint64_t(id) & 0xffffffffu;
    if (id < 0 || slot >= streams.size()) return nullptr;
    Stream &found = streams[slot];
    return found.open && found.number == uint32_t(id >> 32) ? &found : nullptr;
}

int32_t Pool::open(const char *record, int64_t frames, int64_t *stream) {
    const Lock lock(mutex);
    if (stopping) return SLIMRNN_SHUT_DOWN;
    if (free_slots.empty()) return SLIMRNN_FULL;
    const int32_t slot = free_slots.back();
    free_slots.pop_back();
    Stream &found = streams[size_t(slot)];
    found.number = (found.number + 1) & 0x7fffffff;
    found.open = true, found.came = found.done = frames, found.stop_at = Stream::never;
    if (model.record) memcpy(state(slot), record, size_t(model.record));
    *stream = int64_t(found.number) << 32 | slot;
    return SLIMRNN_OK;
}

int32_t Pool::close(int64_t stream) {
    const Lock lock(mutex);
    Stream *found = find(stream);
    if (!found) return SLIMRNN_CLOSED;
    found->open = false;
    const Clock::time_point now = Clock::now();
    while (Frame *frame = found->first) {
        found->first = frame->next;
        frame->status = SLIMRNN_CLOSED;
        finish(*frame, now);
    }
    found->last = nullptr;
    settled.notify_all();
    if (!found->running && !found->held) free_slots.push_back(int32_t(stream));
    return SLIMRNN_OK;
}

// Magic, version, type of numbers, model, frames, states, and a checksum of all of it.
void Pool::write(int32_t slot, char *bytes) const {
    const int32_t version = PoolModel::version;
    memcpy(bytes, saved_magic, 8), memcpy(bytes + 8, &version, 4), memcpy(bytes + 12, &model.dtype, 4);
    memcpy(bytes + 16, &model.name, 8), memcpy(bytes + 24, &streams[size_t(slot)].done, 8);
    if (model.record) memcpy(bytes + head, state(slot), size_t(model.record));
    const uint64_t sum = fingerprint(bytes, head + model.record);
    memcpy(bytes + head + model.record, &sum, 8);
}

int32_t Pool::save(int64_t stream, char *bytes) {
    Lock lock(mutex);
    Stream *found = find(stream);
    const auto is_gone = [&] { return !found || find(stream) != found; };
    settled.wait(lock, [&] { return is_gone() || found->stop_at == Stream::never; });  // one after the other
    if (is_gone()) return SLIMRNN_CLOSED;
    found->stop_at = found->came;  // what comes from now on waits
    settled.wait(lock, [&] { return is_gone() || (found->done == found->stop_at && !found->held); });
    if (is_gone()) return SLIMRNN_CLOSED;
    write(int32_t(stream), bytes);
    found->stop_at = Stream::never;
    settled.notify_all();
    enqueue(int32_t(stream));
    wake(1);
    return SLIMRNN_OK;
}

int32_t Pool::load(const char *bytes, int64_t size, int64_t *stream) {
    if (size < head + 8 || memcmp(bytes, saved_magic, 8)) return SLIMRNN_DAMAGED;
    const int32_t version = PoolModel::version;
    uint64_t sum, name;
    int64_t frames;
    memcpy(&sum, bytes + size - 8, 8), memcpy(&name, bytes + 16, 8), memcpy(&frames, bytes + 24, 8);
    if (sum != fingerprint(bytes, size - 8) || memcmp(bytes + 8, &version, 4)) return SLIMRNN_DAMAGED;
    if (name != model.name || size != saved_bytes()) return SLIMRNN_OTHER_MODEL;
    if (frames < 0 || frames > most_frames) return SLIMRNN_DAMAGED;
    if (!options.takes_nan && !model.is_finite(bytes + head, model.record / model.item)) return SLIMRNN_NOT_FINITE;
    return open(bytes + head, frames, stream);
}

// --- frames --------------------------------------------------------------------------------------------------------

int32_t Pool::step(int64_t count, const int64_t *ids, const char *x, char *outputs, int32_t *statuses) {
    std::vector<Frame> frames(static_cast<size_t>(count));
    const Block before(count > 1 ? count * model.record : 0);
    StepCall call{count, {}};
    for (int64_t k = 0; k < count; k++) statuses[k] = takes(x + k * row) ? 0 : int32_t(SLIMRNN_NOT_FINITE);
    Lock lock(mutex);
    if (stopping) return SLIMRNN_SHUT_DOWN;
    for (int64_t k = 0; k < count; k++)
        if (!find(ids[k])) statuses[k] = SLIMRNN_CLOSED;
    if (const int32_t failure = first_failure(count, statuses)) return failure;
    const Clock::time_point now = Clock::now();
    for (int64_t k = 0; k < count; k++) {
        Frame &frame = frames[size_t(k)];
        frame.x = x + k * row, frame.output = outputs + k * out, frame.call = &call;
        if (count > 1) frame.before = before.data() + k * model.record;
        add(frame, int32_t(ids[k]), now);
    }
    wake(int64_t(queue.size()) - few);  // this thread runs some, too
    while (call.left) help(lock, call);
    for (int64_t k = 0; k < count; k++) statuses[k] = frames[size_t(k)].status;
    const int32_t failure = first_failure(count, statuses);
    if (count > 1) settle(frames, failure);
    wake(int64_t(queue.size()));
    return failure;
}

// The last frame first: where a stream came more than once, its state becomes that before the first one.
void Pool::settle(std::vector<Frame> &frames, bool failed) {
    for (size_t k = frames.size(); failed && k-- > 0;)
        if (!frames[k].status && model.record) memcpy(state(frames[k].slot), frames[k].before, size_t(model.record));
    for (const Frame &frame : frames) {
        Stream &stream = streams[size_t(frame.slot)];
        if (stream.held != frame.call) continue;  // seen before, or it was closed before the frame was run
        stream.held = nullptr;
        if (!stream.open) free_slots.push_back(frame.slot);
        enqueue(frame.slot);
    }
    settled.notify_all();
}

int32_t Pool::submit(int64_t stream, const char *x, bool collected, int64_t *id) {
    if (!takes(x)) return SLIMRNN_NOT_FINITE;
    const Lock lock(mutex);
    if (stopping) return SLIMRNN_SHUT_DOWN;
    if (!find(stream)) return SLIMRNN_CLOSED;
    if (open_tickets >= options.max_tickets) return SLIMRNN_FULL;
    Ticket &ticket = new_ticket(x, collected);
    *id = ticket.id();
    add(ticket, int32_t(stream), Clock::now());
    wake(1);
    return SLIMRNN_OK;
}

int32_t Pool::take(int64_t id, double seconds, char *output) {
    Lock lock(mutex);
    Ticket *ticket = find_ticket(id);
    if (!ticket || ticket->collected || !ticket->is_wanted) return SLIMRNN_NO_TICKET;
    if (seconds < 0) {
        ticket->is_wanted = false;
        if (ticket->is_done) release(*ticket);
        return SLIMRNN_OK;
    }
    const auto is_gone = [&] { return find_ticket(id) != ticket || !ticket->is_wanted; };
    const auto is_over = [&] { return is_gone() || ticket->is_done; };
    if (!ticket->done.wait_until(lock, after(seconds), is_over)) return SLIMRNN_WAITING;
    return is_gone() ? int32_t(SLIMRNN_NO_TICKET) : hand_out(*ticket, output);
}

int32_t Pool::collect(int64_t room, double seconds, int64_t *ids, char *outputs, int32_t *statuses, int64_t *count) {
    Lock lock(mutex);
    *count = 0;
    const auto is_over = [&] { return !to_collect.empty() || (stopping && !to_come); };
    if (!collectable.wait_until(lock, after(seconds), is_over)) return SLIMRNN_WAITING;
    for (; *count < room && !to_collect.empty(); ++*count) {
        Ticket &ticket = tickets[size_t(to_collect.front())];
        to_collect.pop_front();
        ids[*count] = ticket.id();
        statuses[*count] = hand_out(ticket, outputs + *count * out);
    }
    return *count ? 0 : int32_t(SLIMRNN_SHUT_DOWN);
}

Ticket *Pool::find_ticket(int64_t id) {
    const uint64_t place = uint64_t(id) & 0xffffffffu;
    if (id < 0 || place >= tickets.size()) return nullptr;
    Ticket &found = tickets[place];
    return found.used && found.number == uint32_t(id >> 32) ? &found : nullptr;
}

Ticket &Pool::new_ticket(const char *x, bool collected) {
    if (free_tickets.empty()) {
        tickets.emplace_back(int32_t(tickets.size()));
        free_tickets.push_back(tickets.back().place);
    }
    Ticket &ticket = tickets[size_t(free_tickets.back())];
    if (!ticket.memory.data()) ticket.memory = Block(row + out);
    free_tickets.pop_back();
    memcpy(ticket.memory.data(), x, size_t(row));
    ticket.x = ticket.memory.data(), ticket.output = ticket.memory.data() + row;
    ticket.number = (ticket.number + 1) & 0x7fffffff;
    ticket.used = ticket.is_wanted = true, ticket.is_done = false, ticket.collected = collected;
    open_tickets++, to_come += collected;
    return ticket;
}

int32_t Pool::hand_out(Ticket &ticket, char *output) {
    const int32_t status = ticket.status;
    if (output && !status) memcpy(output, ticket.output, size_t(out));
    release(ticket);
    return status;
}

void Pool::release(Ticket &ticket) {
    ticket.used = false;
    open_tickets--, to_come -= ticket.collected;
    free_tickets.push_back(ticket.place);
    ticket.done.notify_all();  // whoever else waits for it
}

}  // namespace slimrnn
