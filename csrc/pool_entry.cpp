// The C interface of pools: checks, and no exception leaves.
#include "pool.h"

#include <system_error>
#ifdef __unix__
#include <unistd.h>
#endif

namespace {

using slimrnn::Pool;

int64_t process() {
#ifdef __unix__
    return getpid();
#else
    return 0;
#endif
}

// The child of a fork has none of the threads, and maybe a mutex that is locked for ever.
struct Handle {
    const int64_t made_in = process();
    Pool pool;
    Handle(const void *model, int64_t bytes, const slimrnn_pool_options &options) : pool(model, bytes, options) {}
};

template <class Work> int32_t guarded(Work work) {
    try {
        return work();
    } catch (const slimrnn::Damaged &) {
        return SLIMRNN_DAMAGED;
    } catch (const std::bad_alloc &) {
        return SLIMRNN_NO_MEMORY;
    } catch (const std::system_error &) {
        return SLIMRNN_NO_THREAD;
    } catch (...) {
        return SLIMRNN_INTERNAL;
    }
}
template <class Work> int32_t in_pool(void *handle, bool sound, Work work) {
    if (!handle || !sound) return SLIMRNN_BAD_ARGUMENT;
    Handle *found = static_cast<Handle *>(handle);
    if (found->made_in != process()) return SLIMRNN_FORKED;
    return guarded([&] { return work(found->pool); });
}

constexpr int64_t most = int64_t(1) << 30;
bool is_sound(const slimrnn_pool_options &o) {
    return o.capacity >= 1 && o.capacity <= most && o.max_tickets >= 1 && o.max_tickets <= most && o.max_batch >= 1 &&
           o.max_batch <= 4096 && o.threads >= 1 && o.threads <= 1024 && o.max_delay >= 0 && o.max_delay <= 3600;
}

}  // namespace

extern "C" {

int32_t slimrnn_pool_open(const void *model, int64_t bytes, const slimrnn_pool_options *options, void **pool) {
    if (!model || !options || !pool || !is_sound(*options)) return SLIMRNN_BAD_ARGUMENT;
    return guarded([&] {
        *pool = new Handle(model, bytes, *options);
        return SLIMRNN_OK;
    });
}

int32_t slimrnn_pool_shut_down(void *pool) {
    return in_pool(pool, true, [](Pool &p) {
        p.shut_down();
        return SLIMRNN_OK;
    });
}

void slimrnn_pool_free(void *pool) {
    Handle *handle = static_cast<Handle *>(pool);
    if (handle && handle->made_in == process()) delete handle;
}

int32_t slimrnn_pool_stats_of(void *pool, int32_t start_again, slimrnn_pool_stats *stats) {
    return in_pool(pool, stats, [&](Pool &p) {
        p.tell(start_again, *stats);
        return SLIMRNN_OK;
    });
}

int32_t slimrnn_stream_open(void *pool, int64_t *stream) {
    return in_pool(pool, stream, [&](Pool &p) { return p.open(stream); });
}

int32_t slimrnn_stream_close(void *pool, int64_t stream) {
    return in_pool(pool, true, [&](Pool &p) { return p.close(stream); });
}

int32_t slimrnn_stream_save(void *pool, int64_t stream, void *bytes) {
    return in_pool(pool, bytes, [&](Pool &p) { return p.save(stream, static_cast<char *>(bytes)); });
}

int32_t slimrnn_stream_load(void *pool, const void *bytes, int64_t size, int64_t *stream) {
    return in_pool(pool, bytes && stream,
                   [&](Pool &p) { return p.load(static_cast<const char *>(bytes), size, stream); });
}

int32_t slimrnn_pool_step(void *pool, int64_t count, const int64_t *streams, const void *frames, void *outputs,
                          int32_t *statuses) {
    if (count == 0) return in_pool(pool, true, [](Pool &) { return SLIMRNN_OK; });
    return in_pool(pool, count > 0 && streams && frames && outputs && statuses, [&](Pool &p) {
        return p.step(count, streams, static_cast<const char *>(frames), static_cast<char *>(outputs), statuses);
    });
}

int32_t slimrnn_pool_submit(void *pool, int64_t stream, const void *frame, int32_t collected, int64_t *ticket) {
    return in_pool(pool, frame && ticket,
                   [&](Pool &p) { return p.submit(stream, static_cast<const char *>(frame), collected, ticket); });
}

int32_t slimrnn_pool_take(void *pool, int64_t ticket, double seconds, void *output) {
    return in_pool(pool, seconds == seconds,
                   [&](Pool &p) { return p.take(ticket, seconds, static_cast<char *>(output)); });
}

int32_t slimrnn_pool_collect(void *pool, int64_t room, double seconds, int64_t *tickets, void *outputs,
                             int32_t *statuses, int64_t *count) {
    return in_pool(pool, room > 0 && seconds >= 0 && tickets && outputs && statuses && count, [&](Pool &p) {
        return p.collect(room, seconds, tickets, static_cast<char *>(outputs), statuses, count);
    });
}
}
