// Many clients of one pool: streams opened and closed at random, frames by every way there is, and streams saved and
// loaded on the way. Every output is compared, bit for bit, with that of a second pool which runs one stream at a time.
//
//     pool_stress LIBRARY MODEL FRAMES [CLIENTS]
//
// Ends with an error if a frame was lost, mixed up or computed otherwise, and if memory grows while streams come and go.
#include "../csrc/include/slimrnn.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

#define SLIMRNN_FUNCTION(name) decltype(&slimrnn_##name) name
struct Library {
    SLIMRNN_FUNCTION(pool_open);
    SLIMRNN_FUNCTION(pool_shut_down);
    SLIMRNN_FUNCTION(pool_free);
    SLIMRNN_FUNCTION(pool_stats_of);
    SLIMRNN_FUNCTION(pool_step);
    SLIMRNN_FUNCTION(pool_submit);
    SLIMRNN_FUNCTION(pool_take);
    SLIMRNN_FUNCTION(stream_open);
    SLIMRNN_FUNCTION(stream_close);
    SLIMRNN_FUNCTION(stream_save);
    SLIMRNN_FUNCTION(stream_load);
} of;

[[noreturn]] void fail(const std::string &what) {
    fprintf(stderr, "pool_stress: %s\n", what.c_str());
    exit(1);
}
void check(int32_t status, const char *what) {
    if (status) fail(std::string(what) + ": status " + std::to_string(status));
}
void find_all(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) fail(dlerror());
#define SLIMRNN_FIND(name) of.name = reinterpret_cast<decltype(of.name)>(dlsym(library, "slimrnn_" #name))
    SLIMRNN_FIND(pool_open), SLIMRNN_FIND(pool_shut_down), SLIMRNN_FIND(pool_free), SLIMRNN_FIND(pool_stats_of);
    SLIMRNN_FIND(pool_step), SLIMRNN_FIND(pool_submit), SLIMRNN_FIND(pool_take), SLIMRNN_FIND(stream_open);
    SLIMRNN_FIND(stream_close), SLIMRNN_FIND(stream_save), SLIMRNN_FIND(stream_load);
}

struct Tested {
    void *pool, *other;  // which runs one stream at a time
    int64_t input, output, saved;
    std::atomic<int64_t> left;
};

// What a client keeps of a stream.
struct Life {
    int64_t stream;
    std::vector<float> frames, outputs;
    std::vector<int64_t> tickets;
    void collect(Tested &t) {
        for (int64_t ticket : tickets) {
            outputs.resize(outputs.size() + size_t(t.output));
            check(of.pool_take(t.pool, ticket, 60, outputs.data() + outputs.size() - t.output), "a ticket");
        }
        tickets.clear();
    }
    void compare(Tested &t) {
        collect(t);
        int64_t alone;
        int32_t status;
        std::vector<float> y(size_t(t.output));
        check(of.stream_open(t.other, &alone), "open");
        if (outputs.size() / size_t(t.output) != frames.size() / size_t(t.input)) fail("a frame was lost");
        for (size_t k = 0; k < frames.size() / size_t(t.input); k++) {
            check(of.pool_step(t.other, 1, &alone, frames.data() + k * size_t(t.input), y.data(), &status), "step");
            if (memcmp(y.data(), outputs.data() + k * size_t(t.output), sizeof(float) * size_t(t.output)))
                fail("an output differs from that of the same stream alone");
        }
        check(of.stream_close(t.other, alone), "close");
    }
};

void be_client(Tested &t, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto upto = [&](unsigned n) { return random() % n; };
    std::vector<Life> lives;
    while (t.left.fetch_sub(1) > 0) {
        if (lives.empty() || (lives.size() < 12 && upto(10) == 0)) {
            lives.push_back({});
            check(of.stream_open(t.pool, &lives.back().stream), "open");
        }
        Life &life = lives[upto(unsigned(lives.size()))];
        const size_t from = life.frames.size();
        for (int64_t i = 0; i < t.input; i++) life.frames.push_back(normal(random));
        if (upto(3)) {
            life.tickets.emplace_back();
            check(of.pool_submit(t.pool, life.stream, life.frames.data() + from, 0, &life.tickets.back()), "submit");
        } else {
            life.collect(t);
            int32_t status;
            life.outputs.resize(life.outputs.size() + size_t(t.output));
            float *y = life.outputs.data() + life.outputs.size() - t.output;
            check(of.pool_step(t.pool, 1, &life.stream, life.frames.data() + from, y, &status), "step");
        }
        if (upto(50) == 0) {  // the stream goes on as another one
            std::vector<char> saved(size_t(t.saved));
            check(of.stream_save(t.pool, life.stream, saved.data()), "save");
            life.collect(t);
            check(of.stream_close(t.pool, life.stream), "close");
            check(of.stream_load(t.pool, saved.data(), t.saved, &life.stream), "load");
        }
        if (life.frames.size() > size_t(40 * t.input) || upto(60) == 0) {
            life.compare(t);
            check(of.stream_close(t.pool, life.stream), "close");
            if (of.stream_close(t.pool, life.stream) != SLIMRNN_CLOSED) fail("a stream was closed twice");
            std::swap(life, lives.back());
            lives.pop_back();
        }
    }
    for (Life &life : lives) life.compare(t), check(of.stream_close(t.pool, life.stream), "close");
}

long resident_pages() {
    long total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident;
}
// Streams that come, take a frame and go.
void open_and_close(Tested &t, int64_t times) {
    std::vector<float> x(size_t(t.input)), y(size_t(t.output));
    long before = 0;
    for (int64_t k = 0; k < times; k++) {
        int64_t stream, ticket;
        check(of.stream_open(t.pool, &stream), "open");
        if (k % 8 == 0) {
            check(of.pool_submit(t.pool, stream, x.data(), 0, &ticket), "submit");
            check(of.pool_take(t.pool, ticket, k % 16 ? -1 : 60, y.data()), "take");
        }
        check(of.stream_close(t.pool, stream), "close");
        if (k == times / 10) before = resident_pages();
    }
    const long grown = resident_pages() - before;
    printf("%lld streams opened and closed: memory grew by %ld pages\n", static_cast<long long>(times), grown);
    if (grown > 256) fail("memory grows with streams that are opened and closed");
}

}  // namespace

int main(int count, char **arguments) {
    if (count < 4) fail("expected LIBRARY MODEL FRAMES [CLIENTS]");
    find_all(arguments[1]);
    std::ifstream file(arguments[2], std::ios::binary);
    const std::string model((std::istreambuf_iterator<char>(file)), {});
    const int64_t frames = atoll(arguments[3]), clients = count > 4 ? atoll(arguments[4]) : 16;
    Tested t{};
    t.left = frames;
    slimrnn_pool_options options{};
    options.capacity = 12 * clients, options.max_tickets = 4096 * clients, options.max_batch = 64, options.threads = 2;
    check(of.pool_open(model.data(), int64_t(model.size()), &options, &t.pool), "the pool");
    check(of.pool_open(model.data(), int64_t(model.size()), &options, &t.other), "the other pool");
    slimrnn_pool_stats stats;
    check(of.pool_stats_of(t.pool, 0, &stats), "stats");
    t.input = stats.input_size, t.output = stats.output_size, t.saved = stats.saved_bytes;
    std::vector<std::thread> threads;
    for (int64_t k = 0; k < clients; k++) threads.emplace_back([&t, k] { be_client(t, unsigned(k) + 1); });
    for (auto &thread : threads) thread.join();
    check(of.pool_stats_of(t.pool, 0, &stats), "stats");
    if (stats.frames != frames || stats.failed || stats.open || stats.waiting) fail("the counts of the pool are wrong");
    printf("%lld frames of %lld clients in %lld batches, the largest of %lld: none lost, none mixed up\n",
           static_cast<long long>(stats.frames), static_cast<long long>(clients),
           static_cast<long long>(stats.batches), static_cast<long long>(stats.largest_batch));
    open_and_close(t, frames);
    check(of.pool_shut_down(t.pool), "shut down");
    int64_t stream;
    if (of.stream_open(t.pool, &stream) != SLIMRNN_SHUT_DOWN) fail("a stream was opened after the shutdown");
    of.pool_free(t.pool), of.pool_free(t.other);
    return 0;
}
