// Figures of models of real size on a CPU, to stand beside those of scripts/torch_cpu_peer.py,
// which measures the same workloads by PyTorch and prints the same keys; scripts/model_bench_page
// runs both. See usage() for the arguments.
//
//   bandwidth      bytes per second that the threads read of an array that no cache holds
//   weight_bytes   bytes of weights that decoding one token reads
//   decode_B       sampled tokens per second of B sequences, prompts of 32 tokens and 64 new ones,
//                  behind the first token of each; sampled at temperature 1, with log-probabilities
//   decode_1_share of the bandwidth: weight_bytes * decode_1 / bandwidth
//   prefill        prompt tokens per second: one prompt of 512 tokens, until its first token is
//                  drawn
//   prefill_group  the time until all first tokens of a group of 8 with such a prompt are drawn,
//                  over that of one sequence
//   decode_long    sampled tokens per second of one sequence behind a prompt of 2048 tokens
//   train_shared   tokens per second of a learner's step (forward, backward, norm, AdamW, and the
//                  copy that is published) on 32 sequences of 42 tokens, all of which count: 4
//                  groups of 8, whose prompts of 18 tokens are computed once for a group
//   train_apart    the same of 32 different prompts
//
// A figure is the median of three repetitions after one that is not counted. A named shape has
// random weights; tokens are random in any case, and no completion ends before its length.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/learner/native_trainer.h"
#include "actors/learner/packing.h"
#include "actors/model/kv_cache.h"
#include "actors/model/parameters.h"
#include "actors/rollout/native_engine.h"
#include "runtime/base/check.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/device/parallel.h"
#include "tests/bench/must.h"
#include "tests/bench/workload.h"

namespace tandem::bench {
namespace {

using device::DType;
using device::ThreadPool;
using learner::NativeTrainer;
using model::Model;
using model::ModelConfig;
using rollout::EngineConfig;
using rollout::NativeEngine;

constexpr int kRepetitions = 3;
constexpr std::int32_t kDecodePrompt = 32, kDecodeTokens = 64, kPrefillPrompt = 512,
                       kLongPrompt = 2048;
constexpr std::int32_t kGroup = 8;
constexpr std::int64_t kTrainSequences = 32, kTrainPrompt = 18, kTrainCompletion = 24;
constexpr std::int32_t kPage = 16;
constexpr int kUsage = 64;  // an exit code

struct Options {
  std::string model;
  DType dtype = DType::kF32;
  std::int32_t threads = 2;
  bool decode = true, prefill = true, longer = true, train = true;
  std::vector<std::int32_t> batches = {1, 8, 32};
  bool json = false;
};

int usage() {
  std::cerr << "usage: model_bench MODEL [--dtype float32|bfloat16] [--threads 2]\n"
               "                   [--what decode,prefill,long,train] [--batch 1,8,32] [--json]\n"
               "\n"
               "MODEL is a Hugging Face directory, or the name of a shape in tests/bench/models:\n"
               "135m (SmolLM2's), 0.6b (Qwen3's), tiny.\n";
  return kUsage;
}

std::vector<std::string> items_of(std::string_view list) {
  std::vector<std::string> items;
  for (const auto item : std::views::split(list, ',')) items.emplace_back(item.begin(), item.end());
  return items;
}

// Whole numbers from 1 to `most`.
std::optional<std::int32_t> number(std::string_view text, std::int32_t most) {
  std::int32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < 1 || value > most)
    return std::nullopt;
  return value;
}

bool parse_what(std::string_view list, Options& options) {
  options.decode = options.prefill = options.longer = options.train = false;
  for (const std::string& item : items_of(list)) {
    if (item == "decode") {
      options.decode = true;
    } else if (item == "prefill") {
      options.prefill = true;
    } else if (item == "long") {
      options.longer = true;
    } else if (item == "train") {
      options.train = true;
    } else {
      return false;
    }
  }
  return true;
}

bool parse_batches(std::string_view list, Options& options) {
  constexpr std::int32_t kBatchMax = 1024;
  options.batches.clear();
  for (const std::string& item : items_of(list)) {
    const auto batch = number(item, kBatchMax);
    if (!batch) return false;
    options.batches.push_back(*batch);
  }
  return !options.batches.empty();
}

bool parse_option(std::string_view name, std::string_view value, Options& options) {
  if (name == "--what") return parse_what(value, options);
  if (name == "--batch") return parse_batches(value, options);
  if (name == "--threads") {
    const auto threads = number(value, device::kPoolThreadsMax);
    options.threads = threads.value_or(0);
    return threads.has_value();
  }
  if (name != "--dtype" || (value != "float32" && value != "bfloat16")) return false;
  options.dtype = value == "float32" ? DType::kF32 : DType::kBF16;
  return true;
}

std::optional<Options> parse(std::span<char* const> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--json") {
      options.json = true;
    } else if (argument.starts_with("--")) {
      if (i + 1 == arguments.size()) return std::nullopt;
      if (!parse_option(argument, arguments[++i], options)) return std::nullopt;
    } else if (options.model.empty()) {
      options.model = argument;
    } else {
      return std::nullopt;
    }
  }
  if (options.model.empty()) return std::nullopt;
  return options;
}

const char* dtype_name(DType dtype) { return dtype == DType::kF32 ? "float32" : "bfloat16"; }

Model random_model(const std::filesystem::path& file, DType dtype, ThreadPool& threads) {
  ModelConfig config = must(model::parse_model_config(must(read_file(file)), file.string()));
  must(model::compute_in(dtype, config));
  device::Arena weights =
      must(device::Arena::allocate(model::make_manifest(config), "the model's weights"));
  model::initialize({.seed = 1, .initializer_range = config.initializer_range, .threads = &threads},
                    weights);
  return {.directory = {},
          .config = std::move(config),
          .tokenizer = tokenizer(),
          .weights = std::move(weights)};
}

Model make_model(const Options& options, ThreadPool& threads) {
  const auto shape =
      std::filesystem::path(TANDEM_SOURCE_DIR) / "tests/bench/models" / (options.model + ".json");
  if (std::filesystem::exists(shape)) return random_model(shape, options.dtype, threads);
  Model model = must(model::load_model(options.model, {.dtype = options.dtype}));
  model.config.eos_token_ids.clear();  // every completion has the same length
  return model;
}

double median(std::array<double, kRepetitions> values) {
  std::ranges::sort(values);
  return values[kRepetitions / 2];
}

// The median of what `measure` returns, given the number of the repetition.
template <class Measure>
double repeated(const Measure& measure) {
  measure(0);
  std::array<double, kRepetitions> values;
  for (std::uint64_t i = 0; i < kRepetitions; ++i) values[i] = measure(i + 1);
  return median(values);
}

// Several sums, none of which waits for another's addition.
std::uint64_t sum(std::span<const std::uint64_t> words) {
  constexpr std::size_t kLanes = 8;
  std::array<std::uint64_t, kLanes> lanes{};
  for (std::size_t i = 0; i + kLanes <= words.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += words[i + lane];
  std::uint64_t all = 0;
  for (const std::uint64_t lane : lanes) all += lane;
  return all;
}

double read_bandwidth(ThreadPool& threads) {
  constexpr std::int64_t kWords = std::int64_t{1} << 27, kGrain = std::int64_t{1} << 17;
  const std::vector<std::uint64_t> words(kWords, 1);
  return repeated([&](std::uint64_t) {
    std::vector<std::uint64_t> sums(kWords / kGrain);
    const Time began = steady_now();
    device::parallel_for(&threads, kWords, kGrain, [&](std::int64_t begin, std::int64_t end) {
      sums[static_cast<std::size_t>(begin / kGrain)] = sum(std::span(words).subspan(
          static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    });
    const double taken = seconds(steady_now() - began);
    std::uint64_t all = 0;
    for (const std::uint64_t part : sums) all += part;
    CHECK(all == kWords);
    return static_cast<double>(kWords * sizeof(std::uint64_t)) / taken;
  });
}

// The bytes of the weights that a token reads: every matrix once. An embedding that is not the head
// as well counts as nothing, since a token reads only one row of it.
double weight_bytes(const ModelConfig& config) {
  auto elements = static_cast<double>(model::make_manifest(config).elements());
  if (!config.tie_word_embeddings)
    elements -= static_cast<double>(config.vocab_size * config.hidden_size);
  return elements * static_cast<double>(device::size_bytes(config.dtype));
}

class Engine {
 public:
  Engine(const Model& model, const Options& options, ThreadPool& threads)
      : engine_(must(NativeEngine::make(
            {model.config, std::make_shared<const model::Tokenizer>(tokenizer())},
            engine_config(model.config, options), {.pool = &threads}))) {
    engine_->begin_update(PolicyVersion{0});
    const std::span<const float> floats = model.weights.f32();
    const device::Manifest master = model.weights.manifest();
    const device::Manifest published = model::published_manifest(model.config);
    std::vector<std::byte> version(published.bytes_total);
    for (std::size_t i = 0; i < master.parameters.size(); ++i) {
      const device::ParameterSpec &from = master.parameters[i], &to = published.parameters[i];
      device::from_f32(
          floats.subspan(from.offset_bytes / sizeof(float), from.bytes / sizeof(float)), to.dtype,
          std::span(version).subspan(to.offset_bytes, to.bytes));
    }
    engine_->finish_update(version);
  }

  // Tokens per second behind the first one of each sequence. The step that has computed all prompts
  // draws these, each of the following ones draws a token of every sequence.
  double decode(std::int32_t batch, std::int32_t prompt, std::uint64_t seed) {
    const std::uint64_t before = sampled();
    const auto rows = static_cast<std::uint64_t>(batch);
    for (std::uint64_t i = 0; i < rows; ++i) submit(prompt, seed * rows + i, 1);
    while (sampled() == before) engine_->step();
    CHECK(sampled() - before == rows);
    const Time began = steady_now();
    while (engine_->can_step()) engine_->step();
    const double taken = seconds(steady_now() - began);
    CHECK(sampled() - before == rows * kDecodeTokens);
    engine_->poll();
    return static_cast<double>(rows * (kDecodeTokens - 1)) / taken;
  }

  // Seconds until the first tokens of a group are drawn.
  double prefill(std::int32_t group, std::uint64_t seed) {
    const std::uint64_t before = sampled();
    submit(kPrefillPrompt, seed, group);
    const Time began = steady_now();
    while (sampled() - before < static_cast<std::uint64_t>(group)) engine_->step();
    const double taken = seconds(steady_now() - began);
    engine_->cancel_all();
    return taken;
  }

 private:
  static EngineConfig engine_config(const ModelConfig& model, const Options& options) {
    const std::int32_t batch = std::max(std::ranges::max(options.batches), kGroup);
    // Includes a copied last page and a half-filled one.
    constexpr std::int32_t kPagesOfTokens = kDecodeTokens / kPage + 3;
    const std::int32_t longest = options.longer ? kLongPrompt : kPrefillPrompt;
    const std::int32_t pages = std::max(batch * (kDecodePrompt / kPage + kPagesOfTokens),
                                        longest / kPage + kGroup * kPagesOfTokens);
    return {.args = {.max_num_seqs = batch,
                     .max_num_batched_tokens = std::max(kPrefillPrompt, batch * kDecodePrompt),
                     .block_size = kPage,
                     .enable_prefix_caching = false,
                     .async_scheduling = false},
            .max_prompt_length = longest,
            .max_response_length = kDecodeTokens,
            .kv_memory_bytes =
                static_cast<std::size_t>(pages) * model::KvCache::page_bytes(model, kPage)};
  }

  void submit(std::int32_t prompt, std::uint64_t seed, std::int32_t n) {
    engine_->submit(
        {.group = GroupId{next_group_++}, .seed = seed, .n = n, .prompt = digits(prompt, seed)});
  }

  std::uint64_t sampled() const { return engine_->stats().generation_tokens; }

  const std::unique_ptr<NativeEngine> engine_;
  std::uint64_t next_group_ = 0;
};

using Figures = std::vector<std::pair<std::string, double>>;

void measure_engine(const Model& model, const Options& options, ThreadPool& threads,
                    Figures& figures) {
  Engine engine(model, options, threads);
  if (options.decode) {
    const double bandwidth = read_bandwidth(threads), bytes = weight_bytes(model.config);
    figures.emplace_back("bandwidth", bandwidth);
    figures.emplace_back("weight_bytes", bytes);
    for (const std::int32_t batch : options.batches) {
      const double rate =
          repeated([&](std::uint64_t seed) { return engine.decode(batch, kDecodePrompt, seed); });
      figures.emplace_back("decode_" + std::to_string(batch), rate);
      if (batch == 1) figures.emplace_back("decode_1_share", bytes * rate / bandwidth);
    }
  }
  if (options.prefill) {
    const double one = repeated([&](std::uint64_t seed) { return engine.prefill(1, seed); });
    const double group = repeated([&](std::uint64_t seed) { return engine.prefill(kGroup, seed); });
    figures.emplace_back("prefill", kPrefillPrompt / one);
    figures.emplace_back("prefill_group", group / one);
  }
  if (options.longer)
    figures.emplace_back("decode_long", repeated([&](std::uint64_t seed) {
                           return engine.decode(1, kLongPrompt, seed);
                         }));
}

// Groups of one have no advantage under GRPO. The estimator of reinforce_plus_plus gives them one
// and costs the same; the loss is GRPO's.
std::unique_ptr<NativeTrainer> make_trainer(Model model, std::int32_t threads) {
  learner::TrainerConfig config{.seed = 1, .steps_total = 1000};
  config.algorithm.adv_estimator = learner::AdvantageEstimator::kReinforcePlusPlus;
  config.batch.response_length_max = kTrainCompletion;
  config.optimizer.lr = 1e-6;
  config.rows_max = learner::rows_target(device::DeviceKind::kCpu, config.rows_max);
  config.positions_max = kTrainPrompt + kTrainCompletion;
  config.checkpoints.resume = learner::ResumeMode::kDisable;
  return must(NativeTrainer::make({.config = config,
                                   .model = std::move(model),
                                   .records = {},
                                   .gang = nullptr,
                                   .threads = std::make_unique<ThreadPool>(threads),
                                   .beat = nullptr}));
}

void measure_trainer(Model model, const Options& options, Figures& figures) {
  BatchShape shape{.groups = 4,
                   .trajectories = 8,
                   .prompt = kTrainPrompt,
                   .completion = kTrainCompletion,
                   .vocab = model.config.vocab_size};
  const auto trainer = make_trainer(std::move(model), options.threads);
  const auto step = [&](std::uint64_t) {
    CHECK(shape.groups * shape.trajectories == kTrainSequences);
    const learner::TrainBatch batch = random_batch(trainer->step(), shape);
    const Time began = steady_now();
    must(trainer->train(batch));
    const double taken = seconds(steady_now() - began);
    return static_cast<double>(kTrainSequences * (kTrainPrompt + kTrainCompletion)) / taken;
  };
  figures.emplace_back("train_shared", repeated(step));
  shape.groups = kTrainSequences;
  shape.trajectories = 1;
  figures.emplace_back("train_apart", repeated(step));
}

void print(const Options& options, const Figures& figures) {
  if (!options.json) {
    for (const auto& [name, value] : figures) std::cout << name << " " << value << "\n";
    return;
  }
  nlohmann::json json{{"by", "Tandem"},
                      {"model", options.model},
                      {"dtype", dtype_name(options.dtype)},
                      {"threads", options.threads},
                      {"figures", nlohmann::json::object()}};
  for (const auto& [name, value] : figures) json["figures"][name] = value;
  std::cout << dump_json(json) << "\n";
}

int run(const Options& options) {
  ThreadPool threads(options.threads);
  Model model = make_model(options, threads);
  Figures figures;
  if (options.decode || options.prefill || options.longer)
    measure_engine(model, options, threads, figures);
  if (options.train) measure_trainer(std::move(model), options, figures);
  print(options, figures);
  return 0;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  const auto options =
      tandem::bench::parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  return options ? tandem::bench::run(*options) : tandem::bench::usage();
}
