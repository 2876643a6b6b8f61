// Tokens and lengths are drawn by counter from the seed of each trajectory, never from a shared
// generator: they stay the same whatever else runs and in whichever order (EN-4). Requests start,
// stop and wait by the rules of WorkQueue, so a simulated fleet meets the same orders of events as
// a real one. A request starts whole: its n sequences may exceed max_num_seqs by n - 1.
#include "actors/rollout/fake_engine.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/rng.h"

namespace tandem::rollout {
namespace {

constexpr std::uint64_t kFakeVocabulary = 1000;

std::int32_t wanted_length(const FakeEngineConfig& config, std::uint64_t seed) {
  Rng rng(derive_seed(seed, "length"));
  if (config.long_every > 0 && rng.below(static_cast<std::uint64_t>(config.long_every)) == 0)
    return config.engine.max_response_length;
  const auto choices = static_cast<std::uint64_t>(config.tokens_max - config.tokens_min) + 1;
  return config.tokens_min + static_cast<std::int32_t>(rng.below(choices));
}

// The version spans and `oldest` are kept as a real engine keeps them, so that the checks of the
// exchange and the learner see the same shapes. The log-probability is any value in (-1, 0].
void push_token(messages::Trajectory& trajectory, std::uint64_t seed, PolicyVersion version) {
  const auto position = static_cast<std::int32_t>(trajectory.tokens.size());
  if (trajectory.versions.empty() || trajectory.versions.back().version != version)
    trajectory.versions.push_back({version, position, position});
  trajectory.versions.back().end = position + 1;
  trajectory.oldest = position == 0 ? version : std::min(trajectory.oldest, version);
  const auto draw = philox4x32(seed, static_cast<std::uint64_t>(position));
  trajectory.tokens.push_back(static_cast<std::int32_t>(draw[0] % kFakeVocabulary));
  trajectory.logprobs.push_back(-unit_float(draw[1]));
}

}  // namespace

FakeEngine::FakeEngine(FakeEngineConfig config)
    : config_(std::move(config)),
      queue_(config_.engine.partial_rollout, evaluation_seqs(config_.engine)) {
  CHECK(config_.tokens_min >= 1 && config_.tokens_min <= config_.tokens_max);
}

bool FakeEngine::fails_by(const std::string& prompt) const {
  return !config_.failing_prompt.empty() && prompt == config_.failing_prompt;
}

void FakeEngine::fail() {
  if (config_.hang) return config_.hang();
  cancel_all();
  answers_.fail({ErrorCode::kFailed, "the simulated logits are NaN"});
}

void FakeEngine::submit(messages::GroupWork work) {
  Request request = request_of(std::move(work));
  if (!config_.unservable_prompt.empty() && request.prompt == config_.unservable_prompt)
    return answers_.refuse(request, messages::UnservableReason::kPromptTooLong,
                           "the simulated prompt is too long");
  if (fails_by(request.prompt)) return fail();
  request.submitted = now_;
  queue_.push(std::move(request));
}

void FakeEngine::submit(messages::Evaluate evaluation) {
  if (std::ranges::any_of(evaluation.prompts,
                          [this](const auto& prompt) { return fails_by(prompt.prompt); }))
    return fail();
  answers_.open(std::move(evaluation), [this](Request request) {
    request.submitted = now_;
    queue_.push(std::move(request));
  });
}

void FakeEngine::cancel(std::span<const GroupId> groups) { cancel_those(is_of(groups)); }

void FakeEngine::cancel_evaluations() {
  cancel_those([](const Request& request) { return request.of_evaluation(); });
  answers_.forget_evaluations();
}

void FakeEngine::cancel_those(const std::function<bool(const Request&)>& which) {
  queue_.remove(which);
  std::erase_if(running_, [&](const Running& group) {
    if (!which(group.request)) return false;
    queue_.ended(group.request);
    return true;
  });
}

// The queue counts running requests, so it must hear of the end of each.
void FakeEngine::cancel_all() {
  queue_.remove([](const Request&) { return true; });
  for (const Running& group : running_) queue_.ended(group.request);
  running_.clear();
  answers_.forget_evaluations();
}

std::int64_t FakeEngine::sequences_running() const {
  std::int64_t sequences = 0;
  for (const Running& group : running_) sequences += std::ssize(group.trajectories);
  return sequences;
}

bool FakeEngine::can_step() const {
  return installing() || !running_.empty() || queue_.next() != nullptr;
}

void FakeEngine::start(Request request) {
  Running group{.request = std::move(request)};
  for (std::size_t i = 0; i < static_cast<std::size_t>(group.request.n); ++i) {
    const std::uint64_t seed = group.request.trajectory_seed(i);
    group.lengths.push_back(
        std::min(wanted_length(config_, seed), config_.engine.max_response_length));
    group.trajectories.push_back({.text = std::to_string(seed)});
  }
  SequenceTimes times{.submitted = group.request.submitted};
  note_first_run(counters_.latencies, times, now_, group.trajectories.size());
  group.times.assign(group.trajectories.size(), times);
  // As the native engine does: the first completion computes the prompt, the others find it.
  const std::uint64_t prompt_tokens = group.request.prompt.size();
  counters_.prompt_tokens += prompt_tokens;
  counters_.prefix_cache_queries += prompt_tokens * group.trajectories.size();
  counters_.prefix_cache_hits += prompt_tokens * (group.trajectories.size() - 1);
  running_.push_back(std::move(group));
}

bool FakeEngine::extend(Running& group) {
  bool complete = true;
  for (std::size_t i = 0; i < group.trajectories.size(); ++i) {
    messages::Trajectory& trajectory = group.trajectories[i];
    if (std::ssize(trajectory.tokens) == group.lengths[i]) continue;
    push_token(trajectory, group.request.trajectory_seed(i), *queue_.version());
    ++counters_.generation_tokens;
    note_token(counters_.latencies, group.times[i], now_);
    trajectory.truncated = std::ssize(trajectory.tokens) == config_.engine.max_response_length;
    const bool ended = std::ssize(trajectory.tokens) == group.lengths[i];
    if (ended) note_end(counters_.latencies, group.times[i]);
    complete = complete && ended;
  }
  return complete;
}

Duration FakeEngine::step() {
  CHECK(can_step());
  if (installing()) {
    now_ = now_ + config_.step_time;
    if (--install_steps_left_ == 0) installed_ = queue_.version();
    return config_.step_time;
  }
  while (queue_.next() != nullptr && sequences_running() < config_.engine.args.max_num_seqs)
    start(queue_.take());
  // The clock advances before the tokens, so that their latencies include this step.
  const Duration time = config_.step_time + config_.sequence_time * sequences_running();
  now_ = now_ + time;
  std::erase_if(running_, [this](Running& group) {
    if (!extend(group)) return false;
    finish(group);
    return true;
  });
  return time;
}

void FakeEngine::finish(Running& group) {
  queue_.ended(group.request);
  // One token per byte: the prompt has no tokenizer.
  const std::string& prompt = group.request.prompt;
  group.request.prompt_tokens.assign(prompt.begin(), prompt.end());
  answers_.complete(std::move(group.request), std::move(group.trajectories));
}

std::vector<EngineEvent> FakeEngine::poll() { return answers_.take(); }

EngineStats FakeEngine::stats() const {
  EngineStats stats = counters_;
  stats.sequences_running = static_cast<std::int32_t>(sequences_running());
  stats.sequences_waiting = static_cast<std::int32_t>(queue_.sequences());
  stats.kv_cache_usage = std::min(
      1.0, static_cast<double>(stats.sequences_running) / config_.engine.args.max_num_seqs);
  return stats;
}

Duration FakeEngine::finish_update(std::span<const std::byte>) {
  queue_.finish_update();
  install_steps_left_ = config_.install_steps;
  if (!installing()) installed_ = queue_.version();
  now_ = now_ + config_.install_time;
  return config_.install_time;
}

void FakeEngine::version_gone(PolicyVersion version) { refuse_pinned(queue_, version, answers_); }

}  // namespace tandem::rollout
