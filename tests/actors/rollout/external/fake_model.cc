#include "tests/actors/rollout/external/fake_model.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/model/decoder.h"
#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "actors/rollout/native_engine.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace tandem::rollout {

struct FakeModel::State {
  explicit State(model::ModelInfo of)
      : info(std::move(of)),
        tokenizer(std::make_shared<const model::Tokenizer>(std::move(info.tokenizer))) {}

  model::ModelInfo info;
  std::shared_ptr<const model::Tokenizer> tokenizer;
  std::int64_t sequences_max = 0;

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool paused = false, computing = false, ends = false;
  // How many more completions become whole before the model waits for an update.
  std::optional<std::ptrdiff_t> until_wait;
  bool waits() const { return until_wait && *until_wait <= 0 && !open.empty(); }
  std::vector<std::byte> arena;
  std::vector<std::string> labels{"default"};                    // of version i
  std::map<std::string, std::unique_ptr<NativeEngine>> engines;  // by how they sample
  struct Open {
    std::string id, engine;
    Done done;
  };
  std::map<GroupId, Open> open;
  std::uint64_t group_last = 0;
  std::thread thread;

  void install(NativeEngine& engine) const {
    engine.begin_update(PolicyVersion{std::ssize(labels) - 1});
    engine.finish_update(arena);
  }
  NativeEngine* engine_for(const std::string& key, const FakeRequest& request);
  void run();
  void answer(messages::GroupPayload payload);
};

NativeEngine* FakeModel::State::engine_for(const std::string& key, const FakeRequest& request) {
  if (const auto found = engines.find(key); found != engines.end()) return found->second.get();
  const auto positions = static_cast<std::int32_t>(info.config.max_position_embeddings);
  const auto longest = static_cast<std::int32_t>(request.max_tokens);
  EngineConfig config{.sampling = {.temperature = request.temperature > 0 ? request.temperature : 1,
                                   .top_p = request.top_p,
                                   .top_k = request.temperature > 0 ? request.top_k : 1,
                                   .min_p = request.min_p,
                                   .min_tokens = request.min_tokens,
                                   .stop = request.stop,
                                   .stop_token_ids = request.stop_token_ids},
                      .args = {.max_num_seqs = sequences_max, .async_scheduling = false},
                      .max_prompt_length = positions - longest,
                      .max_response_length = longest};
  auto made = NativeEngine::make({info.config, tokenizer}, config, {});
  if (!made) return nullptr;
  install(**made);
  return engines.emplace(key, *std::move(made)).first->second.get();
}

void FakeModel::State::answer(messages::GroupPayload payload) {
  const auto found = open.find(payload.group);
  if (found == open.end()) return;
  std::vector<ServedCompletion> completions;
  for (messages::Trajectory& t : payload.trajectories) {
    ServedCompletion completion{.tokens = std::move(t.tokens),
                                .logprobs = std::move(t.logprobs),
                                .end = t.truncated ? ServedEnd::kLength : ServedEnd::kStop};
    for (const messages::VersionSpan& span : t.versions)
      completion.versions.push_back(
          {labels[static_cast<std::size_t>(span.version.value)], span.begin, span.end});
    completions.push_back(std::move(completion));
  }
  const Done done = std::move(found->second.done);
  open.erase(found);
  if (until_wait) *until_wait -= std::ssize(completions);
  done(std::move(completions));
}

void FakeModel::State::run() {
  std::unique_lock lock(mutex);
  const auto ready = [this] {
    if (ends) return true;
    if (paused || waits()) return false;
    return std::ranges::any_of(engines, [](const auto& one) { return one.second->can_step(); });
  };
  for (;;) {
    changed.wait(lock, ready);
    if (ends) return;
    for (auto& [key, engine] : engines) {
      if (!engine->can_step()) continue;
      engine->step();
      for (EngineEvent& event : engine->poll())
        if (auto* payload = std::get_if<messages::GroupPayload>(&event))
          answer(std::move(*payload));
    }
    lock.unlock();  // a step at a time, so that pauses and aborts get their turn
    std::this_thread::yield();
    lock.lock();
  }
}

FakeModel::FakeModel(model::ModelInfo info, std::int64_t sequences_max)
    : state_(std::make_shared<State>(std::move(info))) {
  state_->sequences_max = sequences_max;
  const device::Manifest manifest = model::published_manifest(state_->info.config);
  state_->arena.resize(manifest.bytes_total);
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

FakeModel::~FakeModel() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

const model::ModelInfo& FakeModel::info() const { return state_->info; }

std::optional<std::string> FakeModel::generate(FakeRequest request, Done done) {
  // An engine of ours takes texts.
  std::string text = state_->tokenizer->decode(request.prompt, model::SpecialTokens::kKeep);
  const auto again = state_->tokenizer->encode_prompt(text);
  if (!again || *again != request.prompt) return "this prompt has no text that gives these tokens";
  const std::string key =
      dump_json({request.temperature, request.top_p, request.top_k, request.min_p,
                 request.min_tokens, request.max_tokens, request.stop_token_ids, request.stop});
  {
    const std::lock_guard lock(state_->mutex);
    NativeEngine* const engine = state_->engine_for(key, request);
    if (!engine) return "these sampling parameters are not supported";
    const GroupId group{++state_->group_last};
    state_->open[group] = {request.id, key, std::move(done)};
    engine->submit(messages::GroupWork{.group = group,
                                       .attempt = 1,
                                       .seed = request.seed,
                                       .n = request.n,
                                       .prompt = std::move(text)});
  }
  state_->changed.notify_all();
  return {};
}

bool FakeModel::abort(const std::string& id) {
  const std::lock_guard lock(state_->mutex);
  for (auto& [group, open] : state_->open) {
    if (open.id != id) continue;
    const std::vector<GroupId> groups{group};
    state_->engines.at(open.engine)->cancel(groups);
    const Done done = std::move(open.done);
    state_->open.erase(group);
    done({});
    return true;
  }
  return false;
}

bool FakeModel::busy() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->open.empty();
}

void FakeModel::pause() {
  const std::lock_guard lock(state_->mutex);  // held by the model's thread while it computes
  state_->paused = true;
}

void FakeModel::resume() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->paused = false;
  }
  state_->changed.notify_all();
}

bool FakeModel::paused() const {
  const std::lock_guard lock(state_->mutex);
  return state_->paused;
}

void FakeModel::wait_for_update(std::ptrdiff_t completions) {
  const std::lock_guard lock(state_->mutex);
  state_->until_wait = completions;
}

void FakeModel::update(std::span<const std::byte> arena, std::string label) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->arena.assign(arena.begin(), arena.end());
    state_->labels.push_back(std::move(label));
    for (auto& [key, engine] : state_->engines) state_->install(*engine);
    if (!state_->open.empty()) state_->until_wait.reset();
  }
  state_->changed.notify_all();
}

TokenCounts FakeModel::tokens() const {
  const std::lock_guard lock(state_->mutex);
  TokenCounts sum;
  for (const auto& [key, engine] : state_->engines) {
    const TokenCounts one = engine->tokens();
    sum.generation_tokens += one.generation_tokens;
    sum.prompt_tokens += one.prompt_tokens;
  }
  return sum;
}

std::int64_t FakeModel::sequences_running() const {
  const std::lock_guard lock(state_->mutex);
  std::int64_t sum = 0;
  for (const auto& [key, engine] : state_->engines) sum += engine->stats().sequences_running;
  return sum;
}

void FakeModel::relabel(std::string label) {
  const std::lock_guard lock(state_->mutex);
  state_->labels.push_back(std::move(label));
  for (auto& [key, engine] : state_->engines) state_->install(*engine);
}

std::vector<float> FakeModel::score(std::span<const std::int32_t> tokens) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<model::LogprobItem> items;
  for (std::size_t row = 0; row + 1 < tokens.size(); ++row)
    items.push_back({static_cast<std::int32_t>(row), tokens[row + 1]});
  const auto rows = static_cast<std::int32_t>(tokens.size());
  const model::ModelConfig& config = state_->info.config;
  auto decoder = model::TrainDecoder::make(
      config, {.rows_max = rows, .items_max = std::ssize(items), .positions_max = rows}, {});
  auto weights = model::Weights::allocate(config, model::WeightsUse::kTraining, {});
  CHECK(decoder && weights);
  weights->install({}, state_->arena);
  const kernels::Segment segment{.begin = 0, .len = rows};
  std::vector<float> logprobs(items.size());
  decoder->forward({}, *weights,
                   {.tokens = tokens, .segments = std::span(&segment, 1), .items = items}, logprobs,
                   {});
  return logprobs;
}

std::string FakeModel::label() const {
  const std::lock_guard lock(state_->mutex);
  return state_->labels.back();
}

}  // namespace tandem::rollout
