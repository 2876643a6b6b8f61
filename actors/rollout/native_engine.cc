// A step does five things in this order: starts requests while there is room, plans, computes,
// samples, and ends the sequences that are complete.
//
// With async_scheduling the tokens of a step stay on the device for one step more. The next step is
// planned and queued without knowing them, as if no sequence ended by the token that is being
// drawn, and reads the tokens on the device. Then the host takes the tokens and ends the sequences
// that are complete; results that the queued step computes for those are discarded. A plan thus
// depends on pages and lengths alone, which the host knows, and tokens, log-probabilities and
// versions come out the same (NE-1).
//
// The prompt of a group yields one row of logits from which n first tokens are drawn, each with its
// own seed. The simpler way, to compute the prompt's last token once more for each sequence, costs
// a fifth of all rows where answers have four tokens.
#include "actors/rollout/native_engine.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <utility>

#include "actors/model/decoder.h"
#include "actors/model/kv_cache.h"
#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "actors/rollout/answers.h"
#include "actors/rollout/completion.h"
#include "actors/rollout/sequences.h"
#include "actors/rollout/token_sampler.h"
#include "actors/rollout/work_queue.h"
#include "kernels/ops/sample.h"
#include "runtime/base/check.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"

namespace tandem::rollout {
namespace {

// Pages for prompts that no sequence reads at the moment, per page that sequences can use.
constexpr std::int64_t kPrefixPagesPerPage = 1;
constexpr std::int32_t kPagesMax = 1 << 24;

std::int32_t positions_max(const EngineConfig& config) {
  return config.max_prompt_length + config.max_response_length;
}

std::int32_t page_positions(const EngineConfig& config) {
  return static_cast<std::int32_t>(config.args.block_size);
}

std::int32_t sequences_max(const EngineConfig& config) {
  return static_cast<std::int32_t>(
      std::min(config.args.max_num_seqs, config.args.max_num_batched_tokens));
}

// Ascending, each once. A size above the most sequences of a step becomes that number.
std::vector<std::int32_t> capture_sizes(const EngineConfig& config) {
  std::set<std::int32_t> sizes;
  for (const std::int64_t size : config.args.cudagraph_capture_sizes)
    sizes.insert(
        static_cast<std::int32_t>(std::clamp<std::int64_t>(size, 1, sequences_max(config))));
  return {sizes.begin(), sizes.end()};
}

model::PagedLimits decoder_limits(const EngineConfig& config) {
  return {.rows_max = config.args.max_num_batched_tokens,
          .slices_max = sequences_max(config),
          .logit_rows_max = sequences_max(config),
          .positions_max = positions_max(config),
          .capture_sizes = capture_sizes(config),
          .products = config.products};
}

// The number of pages that the memory holds, but no more than could ever be in use.
std::int32_t page_count(const model::ModelConfig& model, const EngineConfig& config) {
  const std::int64_t each = scheduler::pages_for(positions_max(config), page_positions(config));
  const std::int64_t sequences = config.args.max_num_seqs * 2;  // waiting ones hold some
  const std::int64_t prefixes = config.args.enable_prefix_caching ? kPrefixPagesPerPage : 0;
  // One page more per sequence: a copy of its last page while that page is shared.
  const std::int64_t useful = (each + 1) * sequences * (1 + prefixes);
  const auto room = static_cast<std::int64_t>(
      config.kv_memory_bytes / model::KvCache::page_bytes(model, config.args.block_size));
  return static_cast<std::int32_t>(std::min({useful, room, std::int64_t{kPagesMax}}));
}

Result<void> check(const model::ModelConfig& model, const EngineConfig& config) {
  CHECK(config.sampling.temperature > 0 && config.args.max_num_seqs > 0 &&
        config.args.max_num_batched_tokens > 0);
  if (positions_max(config) > model.max_position_embeddings)
    return Error{ErrorCode::kInvalid,
                 "max_prompt_length + max_response_length is " +
                     std::to_string(positions_max(config)) + ", and the model has only " +
                     std::to_string(model.max_position_embeddings) + " positions",
                 "data.max_response_length"};
  if (config.args.block_size <= 0 || config.args.block_size % kernels::kChunkPositions != 0)
    return Error{ErrorCode::kInvalid,
                 "block_size " + std::to_string(config.args.block_size) + " is not a multiple of " +
                     std::to_string(kernels::kChunkPositions),
                 "rollout.block_size"};
  const std::int32_t needed = NativeEngine::pages_needed(config);
  if (page_count(model, config) < needed)
    return Error{ErrorCode::kInfeasible,
                 "one sequence of the greatest length needs " +
                     std::to_string(static_cast<std::size_t>(needed) *
                                    model::KvCache::page_bytes(model, config.args.block_size)) +
                     " bytes of KV memory, and the engine may take " +
                     std::to_string(config.kv_memory_bytes),
                 "rollout.gpu_memory_utilization"};
  return {};
}

constexpr auto kAll = [](const Request&) { return true; };

}  // namespace

struct NativeEngine::State {
  // State of the decisions.
  NativeModel model;
  EngineConfig config;
  StopRules rules;
  WorkQueue queue;
  Answers answers;
  Sequences sequences;
  std::optional<Error> failure;  // EN-5; everything is cancelled at the end of this drawing
  std::uint64_t generation_tokens = 0;
  std::uint64_t prompt_tokens = 0;
  std::function<Time()> clock;
  messages::Latencies latencies;

  // The device's memory, and the operators that run on it, in the order of one stream.
  struct Device {
    device::Stream stream;
    model::PagedDecoder decoder;
    model::Weights weights;
    model::KvCache cache;
    TokenSampler sampler;
    device::Buffer sink;  // one arena, or nothing yet; see weight_sink()
  };
  Device device;

  // Lists that a step fills; kept for their memory.
  struct Scratch {
    std::vector<std::int32_t> pages;
    std::vector<std::int32_t> named;  // tokens being drawn, as ~place in the sampler's row
    std::vector<model::PagedSlice> slices;
    std::vector<kernels::RowSampling> samplings;
  };
  Scratch scratch;

  struct Draw {
    std::shared_ptr<RunningSequence> sequence;  // the sequence whose next token is drawn
    std::int32_t logits_row;
    PolicyVersion kv_oldest;  // the oldest version among the keys and values read
  };

  // Draws whose results the host has not taken, the oldest first.
  struct Drawing {
    std::vector<Draw> draws;
    PolicyVersion version;
  };
  std::deque<Drawing> under_way;

  void submit(Request request);
  void start_requests();
  void note_first_runs(const Sequences::Work& work);
  device::TensorView compute(const Sequences::Work& work);
  std::vector<Draw> next_draws(const Sequences::Work& work);
  kernels::RowSampling sampling_of(const RunningSequence& sequence) const;
  void draw(const device::TensorView& logits, std::span<const Draw> draws);
  void take_drawn();
  void take_all_drawn();
  void take_token(const Draw& draw, PolicyVersion version, std::int32_t token, float logprob,
                  Time now);
  void finish(OpenRequest& open);
  void cancel_all();
};

void NativeEngine::State::submit(Request request) {
  if (!encode_prompt(request, *model.tokenizer, config, answers)) return;
  request.submitted = clock();
  queue.push(std::move(request));
}

void NativeEngine::State::start_requests() {
  while (sequences.open_count() < config.args.max_num_seqs && queue.next() != nullptr)
    sequences.open(queue.take(), *queue.version(), Completion(rules, *model.tokenizer));
}

// The other sequences of a request count as running from the moment at which their leader runs.
void NativeEngine::State::note_first_runs(const Sequences::Work& work) {
  const Time now = clock();
  for (const auto& [sequence, tokens_new] : work.parts)
    if (!sequence->times.first_run)
      note_first_run(latencies, sequence->times, now, sequence->open->trajectories.size());
}

device::TensorView NativeEngine::State::compute(const Sequences::Work& work) {
  if (!work.copies.empty()) device.cache.copy_pages(device.stream, work.copies);
  scratch.pages.clear();
  scratch.named.clear();
  for (const auto& [sequence, tokens_new] : work.parts) {
    for (const scheduler::PageId page : sequence->table) scratch.pages.push_back(page.value);
    if (sequence->ahead > 0) scratch.named.push_back(~sequence->draw);
  }
  scratch.slices.clear();
  std::size_t first_page = 0, next_named = 0;
  for (const auto& [sequence, tokens_new] : work.parts) {
    // A token that the host does not know can only be the single pending one of a decoding
    // sequence; its id is read on the device, and ~place in the slice's tokens says from where.
    CHECK(sequence->ahead == 0 || (sequence->ahead == 1 && sequence->pending() == 1));
    scratch.slices.push_back(
        {.tokens = sequence->ahead > 0 ? std::span(scratch.named).subspan(next_named++, 1)
                                       : std::span(sequence->tokens)
                                             .subspan(static_cast<std::size_t>(sequence->cached),
                                                      static_cast<std::size_t>(tokens_new)),
         .position = sequence->cached,
         .pages = std::span(scratch.pages).subspan(first_page, sequence->table.size()),
         .logits_last = tokens_new == sequence->pending() ? 1 : 0});
    first_page += sequence->table.size();
    prompt_tokens += static_cast<std::uint64_t>(
        std::clamp(sequence->prompt_length() - sequence->cached, 0, tokens_new));
  }
  return device.decoder.forward(device.stream, device.weights, device.cache, scratch.slices,
                                device.sampler.drawing());
}

// The draws for the plan's sequences that are computed up to their last token, and for those that
// fork from them. A fork draws from the row of its leader.
std::vector<NativeEngine::State::Draw> NativeEngine::State::next_draws(
    const Sequences::Work& work) {
  std::vector<Draw> draws;
  std::int32_t row = 0;
  for (const Sequences::Part& part : work.parts) {
    sequences.computed(part, *queue.version());
    if (part.sequence->pending() > 0) continue;
    const PolicyVersion kv_oldest = part.sequence->kv_oldest;
    draws.push_back({part.sequence, row, kv_oldest});
    if (part.sequence->leads)
      for (auto& fork : sequences.fork(*part.sequence, Completion(rules, *model.tokenizer)))
        draws.push_back({std::move(fork), row, kv_oldest});
    ++row;
  }
  return draws;
}

// How the sequence's next token is sampled. The position makes each draw a function of the seed and
// the place in the sequence alone (EN-4). An evaluation has parameters of its own.
kernels::RowSampling NativeEngine::State::sampling_of(const RunningSequence& sequence) const {
  const Request& request = sequence.open->request;
  kernels::RowSampling sampling{.seed = sequence.seed,
                                .position = static_cast<std::uint64_t>(sequence.length()),
                                .temperature = static_cast<float>(config.sampling.temperature),
                                .top_p = static_cast<float>(config.sampling.top_p),
                                .min_p = static_cast<float>(config.sampling.min_p),
                                .top_k = static_cast<std::int32_t>(config.sampling.top_k)};
  if (!request.of_evaluation()) return sampling;
  if (is_greedy(request.sampling, static_cast<std::int32_t>(sequence.index)))
    return {.temperature = 0};
  sampling.temperature = request.sampling.temperature;
  sampling.top_p = request.sampling.top_p;
  sampling.min_p = 0;
  sampling.top_k = request.sampling.top_k;
  return sampling;
}

// Draws in as many calls as the sampler's rows need. Only the results of the last call may be taken
// later: the device keeps the tokens of one call for the next step.
void NativeEngine::State::draw(const device::TensorView& logits, std::span<const Draw> draws) {
  const auto at_once = static_cast<std::size_t>(device.sampler.rows_max());
  for (std::size_t begin = 0; begin < draws.size(); begin += at_once) {
    if (begin > 0) take_all_drawn();
    const auto some = draws.subspan(begin, std::min(at_once, draws.size() - begin));
    scratch.samplings.clear();
    for (const auto& [sequence, logits_row, kv_oldest] : some) {
      kernels::RowSampling sampling = sampling_of(*sequence);
      sampling.logits_row = logits_row;
      sampling.banned = sequence->completion.banned(sequence->ahead);
      sequence->draw = static_cast<std::int32_t>(scratch.samplings.size());
      ++sequence->ahead;
      scratch.samplings.push_back(sampling);
    }
    device.sampler.draw(device.stream, logits, scratch.samplings);
    under_way.push_back({{some.begin(), some.end()}, *queue.version()});
  }
}

// Waits for the oldest drawing and gives its tokens to their sequences.
void NativeEngine::State::take_drawn() {
  const Drawing drawing = std::move(under_way.front());
  under_way.pop_front();
  const TokenSampler::Drawn drawn = device.sampler.take();
  const Time now = clock();
  for (std::size_t i = 0; i < drawing.draws.size(); ++i)
    take_token(drawing.draws[i], drawing.version, drawn.tokens[i], drawn.log_probs[i], now);
  sequences.drop_ended();
  if (!failure) return;
  cancel_all();
  answers.fail(*std::exchange(failure, std::nullopt));
}

void NativeEngine::State::take_all_drawn() {
  while (!under_way.empty()) take_drawn();
}

void NativeEngine::State::take_token(const Draw& draw, PolicyVersion version, std::int32_t token,
                                     float logprob, Time now) {
  RunningSequence& sequence = *draw.sequence;
  if (sequence.ended) return;  // by the token before, or cancelled
  // Logits that are all NaN give token 0, and one NaN among them makes the sum of a softmax NaN.
  if (!std::isfinite(logprob)) {
    failure =
        Error{ErrorCode::kFailed,
              "version " + std::to_string(version.value) +
                  " of the model gives a token the log-probability " + std::to_string(logprob),
              "", "its weights are damaged or have diverged; look at actor/grad_norm"};
    return;
  }
  sequence.tokens.push_back(token);
  --sequence.ahead;
  ++generation_tokens;
  note_token(latencies, sequence.times, now);
  const auto finished = sequence.completion.push(
      {.token = token, .logprob = logprob, .version = version, .kv_oldest = draw.kv_oldest});
  if (!finished) return;
  // The completion is whole: its pages are freed, and the last one of a request makes the event.
  note_end(latencies, sequence.times);
  sequence.open->trajectories[sequence.index] = sequence.completion.take();
  sequences.end(sequence);
  if (sequence.open->unfinished == 0) finish(*sequence.open);
}

void NativeEngine::State::finish(OpenRequest& open) {
  queue.ended(open.request);
  answers.complete(std::move(open.request), std::move(open.trajectories));
}

NativeEngine::NativeEngine(std::unique_ptr<State> state) : state_(std::move(state)) {}
NativeEngine::~NativeEngine() {
  device::synchronize(state_->device.stream);
}  // the device may still compute

std::size_t NativeEngine::bytes_beside_pages(const model::ModelConfig& model,
                                             const EngineConfig& config,
                                             device::DeviceKind device) {
  const std::size_t sink =
      config.weights_arrive_on_device ? published_manifest(model).bytes_total : std::size_t{0};
  return model::Weights::bytes(model, model::WeightsUse::kInference, device) + sink +
         model::PagedDecoder::workspace_bytes(model, decoder_limits(config), device);
}

std::int32_t NativeEngine::pages_taken(const model::ModelConfig& model,
                                       const EngineConfig& config) {
  return page_count(model, config);
}

// One page more than a sequence alone can fill: a last page that is copied exists twice for a
// moment.
std::int32_t NativeEngine::pages_needed(const EngineConfig& config) {
  return scheduler::pages_for(positions_max(config), page_positions(config)) + 1;
}

Result<std::unique_ptr<NativeEngine>> NativeEngine::make(NativeModel model,
                                                         const EngineConfig& config,
                                                         device::Stream stream,
                                                         std::function<Time()> clock) {
  if (Result<void> fine = check(model.config, config); !fine) return fine.error();
  Result<StopRules> rules = make_stop_rules(config, model.config);
  if (!rules) return rules.error();
  Result<model::PagedDecoder> decoder =
      model::PagedDecoder::make(model.config, decoder_limits(config), stream.device);
  if (!decoder) return decoder.error();
  Result<model::Weights> weights =
      model::Weights::allocate(model.config, model::WeightsUse::kInference, stream.device);
  if (!weights) return weights.error();
  const std::int32_t pages = page_count(model.config, config);
  Result<model::KvCache> cache =
      model::KvCache::allocate(model.config, pages, page_positions(config), stream.device);
  if (!cache) return cache.error();
  Result<TokenSampler> sampler =
      TokenSampler::make(sequences_max(config), rules->stop_tokens, stream);
  if (!sampler) return sampler.error();
  const Sequences::Config sequences{
      .pages = pages,
      .page_tokens = page_positions(config),
      .sequences_max = sequences_max(config),
      .tokens_max = static_cast<std::int32_t>(config.args.max_num_batched_tokens),
      .prefix_caching = config.args.enable_prefix_caching};
  std::unique_ptr<NativeEngine> engine(new NativeEngine(std::unique_ptr<State>(
      new State{.model = std::move(model),
                .config = config,
                .rules = *std::move(rules),
                .queue = WorkQueue(config.partial_rollout, evaluation_seqs(config)),
                .sequences = Sequences(sequences),
                .clock = std::move(clock),
                .device = {.stream = stream,
                           .decoder = *std::move(decoder),
                           .weights = *std::move(weights),
                           .cache = *std::move(cache),
                           .sampler = *std::move(sampler)}})));
  if (stream.device != device::DeviceKind::kCpu)
    if (auto sink = engine->weight_sink(); !sink) return sink.error();
  return engine;
}

void NativeEngine::submit(messages::GroupWork work) { state_->submit(request_of(std::move(work))); }

void NativeEngine::submit(messages::Evaluate evaluation) {
  state_->answers.open(std::move(evaluation),
                       [this](Request request) { state_->submit(std::move(request)); });
}

void NativeEngine::cancel(std::span<const GroupId> groups) {
  const auto which = is_of(groups);
  state_->queue.remove(which);
  for (const auto& open : state_->sequences.cancel(which)) state_->queue.ended(open->request);
}

void NativeEngine::cancel_evaluations() {
  const auto which = [](const Request& request) { return request.of_evaluation(); };
  state_->queue.remove(which);
  for (const auto& open : state_->sequences.cancel(which)) state_->queue.ended(open->request);
  state_->answers.forget_evaluations();
}

void NativeEngine::State::cancel_all() {
  queue.remove(kAll);
  for (const auto& open : sequences.cancel(kAll)) queue.ended(open->request);
  answers.forget_evaluations();
}

void NativeEngine::cancel_all() { state_->cancel_all(); }

bool NativeEngine::can_step() const {
  return !state_->sequences.empty() || state_->queue.next() != nullptr;
}

Duration NativeEngine::step() {
  CHECK(can_step());
  state_->start_requests();
  const Sequences::Work& work = state_->sequences.plan();
  bool queued = false;
  if (!work.parts.empty()) {  // else the plan only evicted, or all wait for their last token
    state_->note_first_runs(work);
    const device::TensorView logits = state_->compute(work);
    const std::vector<State::Draw> draws = state_->next_draws(work);
    state_->draw(logits, draws);
    queued = !draws.empty();
  }
  // A step that queued no draw leaves nothing to overlap with, so all results are taken.
  const std::size_t stay = state_->config.args.async_scheduling && queued ? 1 : 0;
  while (state_->under_way.size() > stay) state_->take_drawn();
  return {};
}

std::vector<EngineEvent> NativeEngine::poll() { return state_->answers.take(); }

EngineStats NativeEngine::stats() const {
  const scheduler::PagePool& pool = state_->sequences.pool();
  const std::int64_t started = state_->sequences.started_count();
  const std::int64_t waiting = state_->sequences.open_count() - started + state_->queue.sequences();
  std::optional<messages::GroupProgress> first;
  if (const auto group = state_->sequences.first_group())
    first = {.group = group->first,
             .tokens = group->second,
             .tokens_max = state_->config.max_response_length};
  return {.generation_tokens = state_->generation_tokens,
          .prompt_tokens = state_->prompt_tokens,
          .prefix_cache_queries =
              static_cast<std::uint64_t>(state_->sequences.cache().tokens_queried()),
          .prefix_cache_hits = static_cast<std::uint64_t>(state_->sequences.cache().tokens_hit()),
          .preemptions = state_->sequences.preemptions(),
          .latencies = state_->latencies,
          .sequences_running = static_cast<std::int32_t>(started),
          .sequences_waiting = static_cast<std::int32_t>(waiting),
          .kv_cache_usage = static_cast<double>(pool.total() - pool.available()) / pool.total(),
          .first = first};
}

TokenCounts NativeEngine::tokens() const {
  return {.generation_tokens = state_->generation_tokens, .prompt_tokens = state_->prompt_tokens};
}

std::optional<PolicyVersion> NativeEngine::version() const { return state_->queue.version(); }

std::optional<PolicyVersion> NativeEngine::wants(const VersionOffer& offer) {
  return state_->queue.wants(offer);
}

bool NativeEngine::installs_in_place() const {
  return state_->device.stream.device == device::DeviceKind::kCpu;
}

Result<std::span<std::byte>> NativeEngine::weight_sink() {
  device::Buffer& sink = state_->device.sink;
  if (sink.size() == 0) {
    const device::DeviceKind device = state_->device.stream.device;
    auto made = device::Buffer::allocate(
        state_->device.weights.manifest().bytes_total, "the weights that arrive",
        state_->config.weights_arrive_on_device ? device::operand_memory(device)
                                                : device::staging_memory(device));
    if (!made) return made.error();
    sink = *std::move(made);
  }
  return std::span(sink.data(), sink.size());
}

void NativeEngine::begin_update(PolicyVersion version) { state_->queue.begin_update(version); }

bool NativeEngine::may_finish_update() const { return state_->queue.may_finish_update(); }

Duration NativeEngine::finish_update(std::span<const std::byte> arena) {
  state_->take_all_drawn();  // the old version drew these tokens
  const std::optional<PolicyVersion> before = state_->queue.version();
  const PolicyVersion now = state_->queue.finish_update();
  state_->device.weights.install(state_->device.stream, arena);
  device::synchronize(state_->device.stream);  // the next version may arrive in the same place
  const auto pages = state_->config.kv_on_update == KvOnUpdate::kRecompute
                         ? Sequences::Pages::kRecompute
                         : Sequences::Pages::kKeep;
  if (before) state_->sequences.version_changed(*before, now, pages);
  return {};
}

void NativeEngine::version_gone(PolicyVersion version) {
  refuse_pinned(state_->queue, version, state_->answers);
}

std::int64_t NativeEngine::graphs_recorded() const {
  return state_->device.decoder.graphs_recorded();
}
std::int32_t NativeEngine::pages_free() const { return state_->sequences.pool().available(); }
std::int32_t NativeEngine::pages_total() const { return state_->sequences.pool().total(); }

}  // namespace tandem::rollout
