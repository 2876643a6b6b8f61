// Shared by the benchmarks of a GPU: shapes, random operands, timing, and the limits that figures
// are compared with, measured in the same process: how fast the device copies its memory (bytes
// read and written), and how fast it multiplies large square bf16 matrices.
//
// A figure is the median of several batches of launches; each batch lies between two
// synchronisations. Batches rotate among as many sets of operands as no cache holds.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/operand.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "tests/bench/must.h"

namespace tandem::bench {

using device::DType;
using kernels::Stream;
using kernels::TensorView;

// Letters as in actors/model/model_config.h.
struct DecoderShape {
  const char* name;
  std::int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab;
  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

struct Sizes {
  DType model_dtype;                   // for engine and learner; operators are measured in bf16
  std::int64_t copy_bytes, gemm_side;  // the sizes by which the limits are measured
  std::int64_t rotation_bytes;         // beyond any cache
  int batches;                         // a figure is the median of so many batches
  double batch_seconds;                // a batch takes about so long
  std::vector<DecoderShape> models;    // the first one's for operators and engine
  std::int64_t rows, logit_rows,
      flat;  // sizes of memory-bound operators: tokens, selected tokens, elements
  std::int64_t sampled_rows;
  std::vector<std::int64_t> product_rows, decode_rows;
  std::int64_t attention_rows;                                          // rows of a packed batch
  std::vector<std::pair<std::int64_t, std::int64_t>> decode_attention;  // sequences, positions
  std::int64_t engine_sequences, engine_length_unit;  // lengths are divided by the unit
  std::int64_t engine_prompt, engine_tokens;          // for one sequence, and for a group of 8
  std::int64_t learner_prompt, learner_completion;    // a group of 8 is one packed forward
  std::int64_t learner_groups_max;                    // in one step
  double slow_seconds;                                // engine and learner stop about there
};

// Qwen3's shapes; on the emulator, which shows no speed, some that it gets through at once.
const Sizes& sizes();
bool emulated();

const Stream& gpu();

// Operands in the GPU's memory, which live as long as this does. Values are random, never zeros.
class Operands {
 public:
  enum class Values : std::uint8_t { kSigned, kPositive };  // uniform in [-0.5, 0.5), (0, 1]

  TensorView random(DType dtype, std::initializer_list<std::int64_t> shape,
                    Values values = Values::kSigned);
  TensorView ids(std::int64_t count, std::int64_t bound);  // [count] i32, each below the bound
  TensorView ints(std::span<const std::int32_t> values);   // [values.size()]
  template <class T>
  std::span<T> plain(std::span<const T> values) {
    std::byte* const there = put(std::as_bytes(values));
    return {reinterpret_cast<T*>(there), values.size()};
  }

 private:
  std::byte* allocate(std::size_t bytes);
  std::byte* put(std::span<const std::byte> bytes);

  std::vector<device::Buffer> blocks_;
};

double now();  // seconds of a steady clock
double median(std::vector<double> values);

// Sets of operands that a call rotates among, where one set has so many bytes.
std::size_t sets_of(double bytes);

// Seconds that one call takes. Warms up first, every set once.
double seconds_per_call(const std::function<void(std::size_t set)>& call, std::size_t sets);

struct Limits {
  double copy_bytes_per_second = 0;
  double gemm_items_per_second = 0;  // floating-point operations
};
const Limits& limits();  // measured by the first call

// The result of a benchmark: `counter` is the rate; limit, ratio and aim are left out where they
// are 0.
struct Figure {
  const char* counter;  // "bytes_per_second", "items_per_second", "tokens_per_second"
  double rate = 0;
  double limit = 0;
  double aim = 0;
};
void report(benchmark::State& state, const Figure& figure);

// The benchmark shows the message instead of figures, and the program ends with status 1.
void fail(benchmark::State& state, const char* message);

// Measures calls of one operator that touch `bytes`, or do `operations`, and reports the rate
// beside its limit.
struct Memory {
  double bytes;
  double aim = 0.75;
};
struct Arithmetic {
  double operations;
  double aim = 0;
};
using Call = std::function<void(std::size_t set)>;
void measure(benchmark::State& state, const Memory& work, std::size_t sets, const Call& call);
void measure(benchmark::State& state, const Arithmetic& work, std::size_t sets, const Call& call);

// Registers a benchmark that does its own timing, once.
void add(const std::string& name, std::function<void(benchmark::State&)> body);

void add_limits();
void add_memory_bound();
void add_products();
void add_attention();
void add_engine();
void add_learner();

}  // namespace tandem::bench
