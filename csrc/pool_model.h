// The model of a pool: stages that a frame passes through, read from the bytes that slimrnn.serving writes.
#pragma once
#include "include/slimrnn.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace slimrnn {

// FNV-1a of words of eight bytes: whatever a single byte is changed to, the number is another.
inline uint64_t fingerprint(const void *data, int64_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u ^ uint64_t(bytes);
    for (int64_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        memcpy(&word, static_cast<const char *>(data) + at, size_t(std::min<int64_t>(8, bytes - at)));
        hash = (hash ^ word) * 0x100000001b3u;
    }
    return hash;
}

struct Damaged {};

// What bytes hold, piece by piece; all numbers little-endian.
class Bytes {
    const char *at, *end;

  public:
    Bytes(const void *data, int64_t size) : at(static_cast<const char *>(data)), end(at + size) {}
    int64_t left() const { return end - at; }
    const char *take(int64_t bytes) {
        if (bytes < 0 || bytes > left()) throw Damaged();
        at += bytes;
        return at - bytes;
    }
    template <class V> V get() {
        V value;
        memcpy(&value, take(sizeof value), sizeof value);
        return value;
    }
    template <class V = int32_t> V get(V least, V most) {
        const V value = get<V>();
        if (value < least || value > most) throw Damaged();
        return value;
    }
    template <class V> std::vector<V> all(int64_t count) {
        const char *from = take(count * int64_t(sizeof(V)));
        std::vector<V> found(static_cast<size_t>(count));
        if (count) memcpy(found.data(), from, sizeof(V) * size_t(count));
        return found;
    }
    std::string text() {
        const int32_t length = get<int32_t>(0, 256);
        return std::string(take(length), size_t(length));
    }
};

// Memory in whole cache lines.
class Block {
    static constexpr std::align_val_t line{64};
    struct Free {
        void operator()(char *memory) const { operator delete(memory, line); }
    };
    std::unique_ptr<char, Free> memory;

  public:
    Block() = default;
    explicit Block(int64_t bytes) : memory(static_cast<char *>(operator new(size_t(bytes) + 64, line))) {}
    char *data() const { return memory.get(); }
};

// A layer, or a linear map with what is applied to its outputs, which is a layer whose state nobody keeps.
struct Stage {
    static constexpr int64_t most_units = int64_t(1) << 24;
    bool keeps, residual;
    int64_t width, input_size;
    int32_t states;
    std::vector<char> bias, own, initial;
    void *handle = nullptr;

    Stage(Bytes &from, int32_t dtype) {
        const int64_t item = dtype == SLIMRNN_F64 ? 8 : 4;
        keeps = from.get<int32_t>(0, 1), residual = from.get<int32_t>(0, 1);
        const int32_t is_complex = from.get<int32_t>(0, 1);
        width = from.get<int64_t>(1, most_units), input_size = from.get<int64_t>(1, most_units);
        slimrnn_cell cell{};
        cell.code = code_of(from.text());
        for (int32_t *size : {&cell.gates, &cell.matrices, &cell.states, &cell.own_rows, &cell.slots, &cell.kept,
                              &cell.spares, &cell.row_sums, &cell.register_count})
            *size = from.get<int32_t>(0, 1 << 16);
        cell.product_count = from.get<int32_t>(0, SLIMRNN_MOST_PRODUCTS);
        memcpy(cell.products, from.take(16 * cell.product_count), 16 * size_t(cell.product_count));
        const auto places = from.all<slimrnn_place>(cell.place_count = from.get<int32_t>(0, 1 << 16));
        const auto constants = from.all<double>(cell.constant_count = from.get<int32_t>(0, 1 << 16));
        const auto code = from.all<slimrnn_instruction>(from.get<int32_t>(0, 1 << 20));
        cell.places = places.data(), cell.constants = constants.data();
        cell.forward = {code.data(), int32_t(code.size())};
        states = cell.states;

        std::vector<slimrnn_term> terms(size_t(from.get<int32_t>(0, SLIMRNN_MOST_TERMS)));
        std::vector<std::vector<slimrnn_tensor>> tensors(terms.size());
        std::vector<std::vector<double>> numbers;  // of all tensors
        for (size_t k = 0; k < terms.size(); k++) {
            terms[k].structure = structure_of(from.text());
            tensors[k].resize(size_t(terms[k].tensor_count = from.get<int32_t>(0, 64)));
            for (slimrnn_tensor &tensor : tensors[k]) read(tensor, numbers, from);
            terms[k].tensors = tensors[k].data();
        }
        const auto u = from.all<char>(cell.gates * width * input_size * item);
        if (from.get<int32_t>(0, 1)) bias = from.all<char>(cell.gates * width * item);
        own = from.all<char>(cell.own_rows * width * item);
        initial = from.all<char>(keeps ? states * width * item : 0);

        slimrnn_scan scan{};
        scan.dtype = dtype, scan.is_complex = is_complex, scan.threads = 1, scan.phases = 1;
        scan.term_count = int32_t(terms.size()), scan.terms = terms.data();
        scan.width = width, scan.input_size = input_size, scan.cell = &cell, scan.u = u.data();
        scan.bias = bias.empty() ? nullptr : bias.data(), scan.own = own.empty() ? nullptr : own.data();
        const int32_t status = slimrnn_open(&scan, &handle);
        if (status == SLIMRNN_NO_MEMORY) throw std::bad_alloc();
        if (status) throw Damaged();
    }
    Stage(Stage &&other) noexcept
        : keeps(other.keeps), residual(other.residual), width(other.width), input_size(other.input_size),
          states(other.states), bias(std::move(other.bias)), own(std::move(other.own)),
          initial(std::move(other.initial)), handle(other.handle) {
        other.handle = nullptr;
    }
    ~Stage() {
        if (handle) slimrnn_close(handle);
    }

  private:
    // By name: numbers are of a build. Without C++ for it, the program runs.
    static int32_t code_of(const std::string &name) {
        for (int32_t k = 0; const char *found = slimrnn_cell_code(k); k++)
            if (name == found) return k;
        return -1;
    }
    static int32_t structure_of(const std::string &name) {
        for (int32_t k = 0; const char *found = slimrnn_structure(k); k++)
            if (name == found) return k;
        throw Damaged();
    }
    // Numbers or indices; in memory that would be large enough for pairs of any type.
    static void read(slimrnn_tensor &tensor, std::vector<std::vector<double>> &numbers, Bytes &from) {
        int64_t count = 1;
        tensor = {};
        tensor.dims = from.get<int32_t>(0, SLIMRNN_MOST_DIMS);
        for (int32_t k = 0; k < tensor.dims; k++) {
            tensor.shape[k] = from.get<int64_t>(0, most_units);
            count *= tensor.shape[k];
            if (count > std::numeric_limits<int32_t>::max()) throw Damaged();
        }
        const int64_t bytes = from.get<int64_t>(0, 16 * count);
        numbers.emplace_back(size_t(2 * count));
        if (bytes) memcpy(numbers.back().data(), from.take(bytes), size_t(bytes));
        tensor.data = numbers.back().data();
    }
};

class PoolModel {
    std::vector<Stage> stages;

  public:
    static constexpr char magic[] = "SLIMPOOL";
    static constexpr int32_t version = 1;
    int32_t dtype;
    int64_t item;        // bytes of a number
    int64_t record = 0;  // bytes of a stream's states
    std::vector<char> initial;
    uint64_t name;  // of the model: another one has another

    PoolModel(const void *data, int64_t size) {
        Bytes from(data, size);
        if (memcmp(from.take(8), magic, 8) || from.get<int32_t>() != version) throw Damaged();
        const int32_t count = from.get<int32_t>(1, 1000);
        name = from.get<uint64_t>();
        const int64_t left = from.left();
        const char *body = from.take(left);
        if (name != fingerprint(body, left)) throw Damaged();
        Bytes inside(body, left);
        dtype = inside.get<int32_t>(SLIMRNN_F32, SLIMRNN_F64), item = dtype == SLIMRNN_F64 ? 8 : 4;
        for (int32_t k = 0; k < count; k++) {
            stages.emplace_back(inside, dtype);
            const Stage &stage = stages.back();
            if (k && stage.input_size != stages[size_t(k) - 1].width) throw Damaged();
            if (stage.residual && stage.input_size != stage.width) throw Damaged();
            initial.insert(initial.end(), stage.initial.begin(), stage.initial.end());
        }
        if (inside.left()) throw Damaged();
        record = int64_t(initial.size());
    }
    int64_t input_size() const { return stages.front().input_size; }
    int64_t output_size() const { return stages.back().width; }

    // What a thread needs to run so many frames at once.
    struct Room {
        Block x;
        std::vector<Block> out, before, after;  // of every stage; its states one after the other, (states, rows, width)
        Room(const PoolModel &model, int64_t rows) : x(rows * model.input_size() * model.item) {
            for (const Stage &stage : model.stages) {
                const int64_t bytes = rows * stage.width * model.item;
                out.emplace_back(bytes), after.emplace_back(bytes * stage.states);
                before.emplace_back(bytes * stage.states);
                if (!stage.keeps) memset(before.back().data(), 0, size_t(bytes * stage.states));
            }
        }
        const char *output() const { return out.back().data(); }
    };
    // record(r), so many bytes, into a row of the room's states, and back.
    template <class Record> void gather(const Room &room, int64_t rows, Record record) const {
        each_part([&](size_t k, int64_t state, int64_t bytes, int64_t at) {
            char *to = room.before[k].data() + state * rows * bytes;
            for (int64_t r = 0; r < rows; r++) memcpy(to + r * bytes, record(r) + at, size_t(bytes));
        });
    }
    void scatter(const Room &room, int64_t rows, int64_t row, char *record) const {
        each_part([&](size_t k, int64_t state, int64_t bytes, int64_t at) {
            memcpy(record + at, room.after[k].data() + (state * rows + row) * bytes, size_t(bytes));
        });
    }
    int32_t run(const Room &room, int64_t rows) const {
        const char *x = room.x.data();
        for (size_t k = 0; k < stages.size(); k++) {
            const Stage &stage = stages[k];
            slimrnn_places places{};
            places.x = x, places.x_row = stage.input_size, places.x_column = 1, places.out = room.out[k].data();
            for (int i = 0; i < stage.states; i++) {
                const int64_t at = i * rows * stage.width * item;
                places.states[i] = room.before[k].data() + at,
                places.states[stage.states + i] = room.after[k].data() + at;
            }
            if (const int32_t status = slimrnn_step(stage.handle, nullptr, rows, &places)) return status;
            if (stage.residual) add(room.out[k].data(), x, rows * stage.width);
            x = room.out[k].data();
        }
        return SLIMRNN_OK;
    }
    // Whether a row's output and new states are.
    bool is_finite(const Room &room, int64_t rows, int64_t row) const {
        bool good = is_finite(room.output() + row * output_size() * item, output_size());
        each_part([&](size_t k, int64_t state, int64_t bytes, int64_t) {
            good = good && is_finite(room.after[k].data() + (state * rows + row) * bytes, bytes / item);
        });
        return good;
    }
    bool is_finite(const char *numbers, int64_t count) const {
        return dtype == SLIMRNN_F64 ? all_finite<double, uint64_t>(numbers, count, uint64_t(0x7ff) << 52)
                                    : all_finite<float, uint32_t>(numbers, count, uint32_t(0xff) << 23);
    }

  private:
    template <class Work> void each_part(const Work &work) const {
        int64_t at = 0;
        for (size_t k = 0; k < stages.size(); k++)
            for (int i = 0; i < stages[k].states && stages[k].keeps; i++) {
                const int64_t bytes = stages[k].width * item;
                work(k, i, bytes, at);
                at += bytes;
            }
    }
    void add(char *to, const char *from, int64_t count) const {
        if (dtype == SLIMRNN_F64)
            add_numbers(reinterpret_cast<double *>(to), reinterpret_cast<const double *>(from), count);
        else
            add_numbers(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), count);
    }
    template <class T> static void add_numbers(T *to, const T *from, int64_t count) {
        for (int64_t i = 0; i < count; i++) to[i] += from[i];
    }
    // By the bits of the exponent, which no option of a compiler can take for always finite.
    template <class T, class Bits> static bool all_finite(const char *numbers, int64_t count, Bits exponent) {
        bool found = false;
        for (int64_t i = 0; i < count; i++) {
            Bits bits;
            memcpy(&bits, numbers + i * int64_t(sizeof(T)), sizeof bits);
            found |= (bits & exponent) == exponent;
        }
        return !found;
    }
};

}  // namespace slimrnn
