// The program that scripts/model_parity runs: it computes, of one model, the numbers that the
// script compares with PyTorch's.
//
//   model_numbers MODEL REQUEST.json OUT
//
// MODEL is a Hugging Face directory. REQUEST.json holds
//   sequences          lists of token ids
//   prompt_lengths     of each sequence: the tokens behind its prompt are the M items
//   dlogprob           the gradient of the loss by the log-probability of each item
//   prompts            texts to complete
//   completion_tokens  of each prompt
//   dtype              float32 or bfloat16: what the decoders and the engine compute in
// The directory OUT, which must exist, gets
//   numbers.safetensors  logits.<i> [length, V] of sequence i by the engine's decoder; logprob [M]
//                        and grad.<parameter> by the learner's decoder, sequences in order
//   numbers.json         of each prompt its token ids and those of its greedy completion, by the
//                        native engine
//   saved/               the model as Tandem saves it
// It runs on one thread of a CPU.
#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "actors/model/checkpoint.h"
#include "actors/model/decoder.h"
#include "actors/model/parameters.h"
#include "actors/model/safetensors.h"
#include "actors/rollout/native_engine.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

using bench::must;
using device::DeviceKind;
using device::Stream;
using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t kPagePositions = 16;

struct Request {
  std::vector<Tokens> sequences;
  std::vector<std::size_t> prompt_lengths;
  float dlogprob;
  std::vector<std::string> prompts;
  std::int32_t completion_tokens;
  device::DType dtype;
};

Request read_request(const std::filesystem::path& file) {
  const nlohmann::json json = parse_json(must(read_file(file)));
  Request request{
      .sequences = json.at("sequences"),
      .prompt_lengths = json.at("prompt_lengths"),
      .dlogprob = json.at("dlogprob"),
      .prompts = json.at("prompts"),
      .completion_tokens = json.at("completion_tokens"),
      .dtype = json.at("dtype") == "bfloat16" ? device::DType::kBF16 : device::DType::kF32};
  CHECK(request.sequences.size() == request.prompt_lengths.size());
  return request;
}

// The tensors of numbers.safetensors, which are gathered before they are written.
class Numbers {
 public:
  void add(std::string name, std::vector<std::int64_t> shape, std::span<const float> values) {
    values_.emplace_back(values.begin(), values.end());
    tensors_.push_back({std::move(name), std::move(shape), values_.back()});
  }
  void write(const std::filesystem::path& file) const { must(write_safetensors(file, tensors_)); }

 private:
  std::deque<std::vector<float>> values_;
  std::vector<model::NamedTensor> tensors_;
};

std::span<const float> all_of(const device::TensorView& view) {
  return {view.f32(), static_cast<std::size_t>(view.elements())};
}

model::Weights installed(const model::Model& model, model::WeightsUse use) {
  model::Weights weights = must(model::Weights::allocate(model.config, use, DeviceKind::kCpu));
  weights.install(Stream{}, model.weights.bytes());
  return weights;
}

std::int64_t longest(const Request& request) {
  std::size_t most = 1;
  for (const Tokens& tokens : request.sequences) most = std::max(most, tokens.size());
  return static_cast<std::int64_t>(most);
}

// Each sequence in a call of its own: all logits of one sequence lie in memory at a time.
void add_logits(const model::Model& model, const Request& request, Numbers& numbers) {
  const model::Weights weights = installed(model, model::WeightsUse::kInference);
  const std::int64_t rows = longest(request);
  model::PagedDecoder decoder = must(model::PagedDecoder::make(
      model.config,
      {.rows_max = rows, .slices_max = 1, .logit_rows_max = rows, .positions_max = rows},
      DeviceKind::kCpu));
  const auto pages = static_cast<std::int32_t>((rows + kPagePositions - 1) / kPagePositions);
  model::KvCache cache =
      must(model::KvCache::allocate(model.config, pages, kPagePositions, DeviceKind::kCpu));
  Tokens table;
  for (std::int32_t page = 0; page < pages; ++page) table.push_back(page);
  for (std::size_t i = 0; i < request.sequences.size(); ++i) {
    const Tokens& tokens = request.sequences[i];
    const auto length = static_cast<std::int32_t>(tokens.size());
    const model::PagedSlice slice{
        .tokens = tokens, .position = 0, .pages = table, .logits_last = length};
    const device::TensorView logits = decoder.forward(Stream{}, weights, cache, {&slice, 1});
    numbers.add("logits." + std::to_string(i), {length, model.config.vocab_size}, all_of(logits));
  }
}

struct Packed {
  Tokens tokens;
  std::vector<kernels::Segment> segments;
  std::vector<model::LogprobItem> items;
};

Packed pack(const Request& request) {
  Packed packed;
  for (std::size_t i = 0; i < request.sequences.size(); ++i) {
    const Tokens& sequence = request.sequences[i];
    const std::size_t begin = packed.tokens.size();
    packed.segments.push_back({.begin = static_cast<std::int32_t>(begin),
                               .len = static_cast<std::int32_t>(sequence.size())});
    for (std::size_t t = request.prompt_lengths[i]; t < sequence.size(); ++t)
      packed.items.push_back({static_cast<std::int32_t>(begin + t - 1), sequence[t]});
    packed.tokens.insert(packed.tokens.end(), sequence.begin(), sequence.end());
  }
  return packed;
}

void add_gradients(const model::Model& model, const Request& request, Numbers& numbers) {
  const model::Weights weights = installed(model, model::WeightsUse::kTraining);
  const Packed packed = pack(request);
  const auto items = std::ssize(packed.items);
  model::TrainDecoder decoder =
      must(model::TrainDecoder::make(model.config,
                                     {.rows_max = std::ssize(packed.tokens),
                                      .items_max = items,
                                      .positions_max = longest(request)},
                                     DeviceKind::kCpu));
  const model::PackedBatch batch{packed.tokens, packed.segments, packed.items, 1.0f};
  std::vector<float> logprob(packed.items.size());
  decoder.forward(Stream{}, weights, batch, logprob, {});
  numbers.add("logprob", {items}, logprob);
  const device::Arena gradients =
      must(device::Arena::allocate(make_manifest(model.config), "the gradients"));
  const std::vector<float> dlogprob(packed.items.size(), request.dlogprob);
  decoder.backward(Stream{}, weights, batch, dlogprob, {}, gradients);
  for (const device::ParameterSpec& spec : gradients.manifest().parameters)
    numbers.add("grad." + spec.name, spec.shape, all_of(gradients.view(spec.name)));
}

std::int32_t longest_prompt(const model::Tokenizer& tokenizer, const Request& request) {
  std::int64_t most = 1;
  for (const std::string& prompt : request.prompts)
    most = std::max<std::int64_t>(most, std::ssize(must(tokenizer.encode_prompt(prompt))));
  return static_cast<std::int32_t>(most);
}

// All prompts in one batch. A sampler that keeps one token of each distribution is greedy.
nlohmann::json completions(model::Model model, const Request& request) {
  const rollout::EngineConfig config{.sampling = {.top_k = 1},
                                     .args = {.async_scheduling = false},
                                     .max_prompt_length = longest_prompt(model.tokenizer, request),
                                     .max_response_length = request.completion_tokens};
  auto tokenizer = std::make_shared<const model::Tokenizer>(std::move(model.tokenizer));
  const auto engine = must(rollout::NativeEngine::make({model.config, tokenizer}, config, {}));
  engine->begin_update(PolicyVersion{0});
  CHECK(engine->may_finish_update());
  engine->finish_update(model.weights.bytes());
  for (std::size_t i = 0; i < request.prompts.size(); ++i)
    engine->submit(messages::GroupWork{.group = GroupId{i}, .n = 1, .prompt = request.prompts[i]});
  while (engine->can_step()) engine->step();
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < request.prompts.size(); ++i) all.push_back(nullptr);
  for (const rollout::EngineEvent& event : engine->poll()) {
    const auto& payload = std::get<messages::GroupPayload>(event);
    all[payload.group.value] = {{"prompt", payload.prompt_tokens},
                                {"completion", payload.trajectories.front().tokens}};
  }
  return all;
}

int run(const std::filesystem::path& directory, const Request& request,
        const std::filesystem::path& out) {
  model::Model model = must(model::load_model(directory, {.dtype = request.dtype}));
  must(model::save_model(out / "saved",
                         {.config = model.config, .weights = model.weights, .source = directory}));
  model.weights = must(as_published(model.config, std::move(model.weights)));
  Numbers numbers;
  add_logits(model, request, numbers);
  add_gradients(model, request, numbers);
  numbers.write(out / "numbers.safetensors");
  const nlohmann::json json{{"completions", completions(std::move(model), request)}};
  must(write_file_atomic(out / "numbers.json", dump_json(json)));
  return 0;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: model_numbers MODEL REQUEST.json OUT\n";
    return 64;
  }
  return tandem::bench::run(argv[1], tandem::bench::read_request(argv[2]), argv[3]);
}
