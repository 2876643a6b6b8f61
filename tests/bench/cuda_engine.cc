// The native engine on a GPU, with random weights:
//   cuda/engine/nano_vllm   256 sequences at once, lengths of nano_vllm.h: prompts and all outputs
//                           from the first submission to the last token
//   cuda/engine/one         one sequence's decoding; its limit is reading the weights
//   cuda/engine/one_sync    the same without async_scheduling: each step waits for the one before
//   …_fastest               with products that may depend on their rows (Rows::kFastest)
//   cuda/engine/group       a prompt of 1024 tokens with 8 completions: first tokens, and decoding
//   cuda/engine/eight       the same rows without a shared prompt, to compare decoding with
//
// tokens_per_second counts what the engine says it sampled. A request has no length of its own, so
// a sequence is cancelled when it has had its tokens: prompts are computed in the order in which
// they came, and from then on every step samples one token of each, since no step is too small for
// all of them. With async_scheduling that token is there one step later.
//
// The caps below are for an engine that is far too slow: together 7.25 times slow_seconds, 87 s.
// With the making of seven engines that is to fit scripts/gpu_check's 120 s for this part.
#include <algorithm>
#include <map>

#include "actors/model/kv_cache.h"
#include "actors/model/parameters.h"
#include "actors/rollout/native_engine.h"
#include "tests/bench/cuda_model.h"
#include "tests/bench/nano_vllm.h"
#include "tests/bench/workload.h"

namespace tandem::bench {
namespace {

using rollout::EngineConfig;
using rollout::EngineStats;
using rollout::NativeEngine;

constexpr std::int32_t kPage = 16;
constexpr std::int32_t kGroup = 8;
// Recorded batch sizes double up to here and are so far apart from here on, as nano-vllm's are.
constexpr std::int32_t kGraphStep = 16;

// Caps, as multiples of slow_seconds; the first two hold for each of two benchmarks, the last two
// for each of five.
constexpr double kShrinkingCap = 0.5, kNanoVllmCap = 1.25;
constexpr double kWarmUpCap = 0.25, kDecodeCap = 0.5;

struct Lengths {
  std::int32_t prompt, output;
};

std::vector<Lengths> nano_vllm() {
  std::vector<Lengths> lengths;
  const auto unit = static_cast<std::int32_t>(sizes().engine_length_unit);
  for (std::size_t i = 0; i < static_cast<std::size_t>(sizes().engine_sequences); ++i)
    lengths.push_back({kNanoVllmPrompts[i] / unit, kNanoVllmOutputs[i] / unit});
  return lengths;
}

// Room for exactly these, so that nothing is preempted and nothing is computed twice.
struct Ways {
  bool async_scheduling = true;
  kernels::Rows products = kernels::Rows::kInvariant;
};
constexpr Ways kSync{.async_scheduling = false}, kFastest{.products = kernels::Rows::kFastest};

std::unique_ptr<NativeEngine> engine_for(std::span<const Lengths> lengths, const Ways& ways) {
  const DecoderShape& shape = sizes().models.front();
  const model::ModelConfig model = model_config(shape);
  EngineConfig config{.sampling = {.temperature = 0.6},
                      .args = {.max_num_seqs = std::max<std::int64_t>(kGroup, std::ssize(lengths)),
                               .max_num_batched_tokens = 16384,
                               .block_size = kPage,
                               .enable_prefix_caching = false,
                               .cudagraph_capture_sizes = {},
                               .async_scheduling = ways.async_scheduling},
                      .products = ways.products};
  std::int64_t pages = 0;
  config.max_prompt_length = config.max_response_length = 1;
  for (const Lengths& each : lengths) {
    config.max_prompt_length = std::max(config.max_prompt_length, each.prompt);
    config.max_response_length = std::max(config.max_response_length, each.output);
    pages += (each.prompt + each.output) / kPage + 3;
  }
  pages *= lengths.size() == 1 ? kGroup : 1;  // a group of them
  if (emulated()) config.args.max_num_batched_tokens = 64;
  for (std::int64_t size = 1; size <= config.args.max_num_seqs;
       size += std::min<std::int64_t>(size, kGraphStep))
    config.args.cudagraph_capture_sizes.push_back(size);
  config.kv_memory_bytes =
      static_cast<std::size_t>(pages) * model::KvCache::page_bytes(model, kPage);
  auto engine = must(NativeEngine::make(
      {model, std::make_shared<const model::Tokenizer>(tokenizer())}, config, gpu()));
  engine->begin_update(PolicyVersion{0});
  const std::span<std::byte> sink = must(engine->weight_sink());
  fill_weights(model, model::published_manifest(model), sink);
  engine->finish_update(sink);
  return engine;
}

// Submits one group for each length and steps until all have had their tokens, or `seconds` are
// over; then nothing runs any more.
class Forced {
 public:
  Forced(NativeEngine& engine, std::span<const Lengths> lengths)
      : engine_(engine), lengths_(lengths), before_(engine.stats()) {}

  void run(double seconds) {
    const double began = now();
    for (std::size_t i = 0; i < lengths_.size(); ++i)
      engine_.submit(
          {.group = GroupId{i}, .seed = i, .n = 1, .prompt = digits(lengths_[i].prompt, i)});
    while (engine_.can_step() && now() - began < seconds) {
      engine_.step();
      ++steps_;
      cancel_ended();
      engine_.poll();
    }
    cut_short_ = engine_.can_step();
    engine_.cancel_all();
    seconds_ = now() - began;
  }

  double tokens() const {
    return static_cast<double>(engine_.stats().generation_tokens - before_.generation_tokens);
  }
  double seconds() const { return seconds_; }
  bool cut_short() const { return cut_short_; }
  // Says what is wrong with the count; null if nothing is. A step that was under way when its
  // sequence was cancelled may or may not count.
  const char* fault() const {
    if (engine_.stats().preemptions != before_.preemptions) return "sequences were preempted";
    double wanted = 0;
    for (const Lengths& each : lengths_) wanted += each.output;
    const double most = static_cast<double>(lengths_.size());
    if (!cut_short_ && std::abs(tokens() - wanted) > most) return "not the tokens that were wanted";
    return nullptr;
  }

 private:
  void cancel_ended() {
    const std::uint64_t computed = engine_.stats().prompt_tokens - before_.prompt_tokens;
    while (decoding_ < lengths_.size() &&
           prompts_ + static_cast<std::uint64_t>(lengths_[decoding_].prompt) <= computed) {
      prompts_ += static_cast<std::uint64_t>(lengths_[decoding_].prompt);
      ends_.emplace(steps_ + lengths_[decoding_].output, GroupId{decoding_});
      ++decoding_;
    }
    std::vector<GroupId> ended;
    while (!ends_.empty() && ends_.begin()->first <= steps_) {
      ended.push_back(ends_.begin()->second);
      ends_.erase(ends_.begin());
    }
    if (!ended.empty()) engine_.cancel(ended);
  }

  NativeEngine& engine_;
  const std::span<const Lengths> lengths_;
  const EngineStats before_;
  std::int64_t steps_ = 0;
  std::size_t decoding_ = 0;                   // sequences whose prompts are computed
  std::uint64_t prompts_ = 0;                  // tokens of those prompts
  std::multimap<std::int64_t, GroupId> ends_;  // by the step that brings the last token
  double seconds_ = 0;
  bool cut_short_ = false;
};

void nano_vllm_workload(benchmark::State& state, const Ways& ways = {}) {
  const std::vector<Lengths> lengths = nano_vllm();
  const auto engine = engine_for(lengths, ways);
  // A warm-up whose batch shrinks by one a step, through every recorded size: nano-vllm records its
  // own before it measures, too.
  std::vector<Lengths> shrinking;
  for (std::int32_t i = 0; i < std::ssize(lengths); ++i) shrinking.push_back({4, 2 + i});
  Forced warm_up(*engine, shrinking);
  warm_up.run(kShrinkingCap * sizes().slow_seconds);
  Forced forced(*engine, lengths);
  for (auto _ : state) {
    forced.run(kNanoVllmCap * sizes().slow_seconds);
    state.SetIterationTime(forced.seconds());
  }
  if (const char* fault = forced.fault()) return fail(state, fault);
  report(
      state,
      {.counter = "tokens_per_second", .rate = forced.tokens() / forced.seconds(), .aim = 28000});
  state.counters["output_tokens"] = forced.tokens();
  if (forced.cut_short()) {
    state.SetLabel("cut short");
  } else if (warm_up.cut_short()) {
    state.SetLabel("recorded graphs meanwhile");
  }
}

// The tokens that an engine has sampled since `before`.
double sampled(const NativeEngine& engine, const EngineStats& before) {
  return static_cast<double>(engine.stats().generation_tokens - before.generation_tokens);
}
double prompts_computed(const NativeEngine& engine, const EngineStats& before) {
  return static_cast<double>(engine.stats().prompt_tokens - before.prompt_tokens);
}

// Steps until `done`, or there is nothing to do, or the time is `end`. Returns the seconds.
template <class Done>
double step_until(NativeEngine& engine, double end, const Done& done) {
  const double began = now();
  while (engine.can_step() && now() < end && !done()) engine.step();
  return now() - began;
}

struct Groups {
  std::int32_t count, n;  // groups, and completions of each
};

struct Decoded {
  double first_seconds;    // until every sequence has one
  double seconds, tokens;  // after that
  double prompt_tokens;
};

struct Attempt {
  std::uint64_t seed;
  double cap;  // in slow_seconds
};

Decoded decode(NativeEngine& engine, const Groups& groups, const Attempt& attempt) {
  const EngineStats before = engine.stats();
  const double end = now() + attempt.cap * sizes().slow_seconds;
  for (std::int32_t i = 0; i < groups.count; ++i)
    engine.submit(
        {.group = GroupId{static_cast<std::uint64_t>(i)},
         .seed = attempt.seed,
         .n = groups.n,
         .prompt = digits(sizes().engine_prompt, attempt.seed + static_cast<std::uint64_t>(i))});
  Decoded result{};
  const double rows = groups.count * groups.n;
  const double prompts = static_cast<double>(sizes().engine_prompt) * groups.count;
  result.first_seconds = step_until(engine, end, [&] {
    return sampled(engine, before) >= rows && prompts_computed(engine, before) >= prompts;
  });
  const double first = sampled(engine, before);
  const double all = rows * static_cast<double>(sizes().engine_tokens);
  result.seconds = step_until(engine, end, [&] { return sampled(engine, before) >= all; });
  result.tokens = sampled(engine, before) - first;
  result.prompt_tokens = prompts_computed(engine, before);
  engine.cancel_all();
  engine.poll();
  return result;
}

void decode_groups(benchmark::State& state, const Groups& groups, const Ways& ways = {}) {
  const Lengths each{static_cast<std::int32_t>(sizes().engine_prompt),
                     static_cast<std::int32_t>(sizes().engine_tokens)};
  const std::vector<Lengths> lengths(static_cast<std::size_t>(groups.count), each);
  const auto engine = engine_for(lengths, ways);
  decode(*engine, groups, {.seed = 100, .cap = kWarmUpCap});
  Decoded result{};
  for (auto _ : state) {
    result = decode(*engine, groups, {.seed = 200, .cap = kDecodeCap});
    state.SetIterationTime(result.first_seconds + result.seconds);
  }
  const bool alone = groups.count * groups.n == 1;
  const double limit = limits().copy_bytes_per_second / weight_bytes_read(sizes().models.front());
  report(state, {.counter = "tokens_per_second",
                 .rate = result.tokens / result.seconds,
                 .limit = alone ? limit : 0,
                 .aim = alone ? 0.5 : 0});
  state.counters["first_tokens_ms"] = result.first_seconds * 1e3;
  state.counters["prompt_tokens"] = result.prompt_tokens;
  const double once = static_cast<double>(sizes().engine_prompt) * groups.count;
  if (result.prompt_tokens != once) fail(state, "a prompt was not computed exactly once");
}

}  // namespace

void add_engine() {
  add("engine/nano_vllm", [](benchmark::State& state) { nano_vllm_workload(state); });
  add("engine/nano_vllm_fastest",
      [](benchmark::State& state) { nano_vllm_workload(state, kFastest); });
  add("engine/one", [](benchmark::State& state) { decode_groups(state, {1, 1}); });
  add("engine/one_sync", [](benchmark::State& state) { decode_groups(state, {1, 1}, kSync); });
  add("engine/one_fastest", [](benchmark::State& state) {
    decode_groups(state, {1, 1}, kFastest);
  });
  add("engine/group", [](benchmark::State& state) { decode_groups(state, {1, kGroup}); });
  add("engine/eight", [](benchmark::State& state) { decode_groups(state, {kGroup, 1}); });
}

}  // namespace tandem::bench
