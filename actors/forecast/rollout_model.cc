#include "actors/forecast/rollout_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::forecast {
namespace {

// No two rollouts have a version at the same moment: the first one gets the next groups.
constexpr double kFetchSpread_s = 1e-3;
// A step is over that lacks less than this share of itself: times are whole nanoseconds.
constexpr double kWhole = 1e-6;

}  // namespace

std::uint64_t checksum_of(PolicyVersion version) {
  return 1000 + static_cast<std::uint64_t>(version.value);
}

RolloutModel::RolloutModel(RolloutModelConfig config, SharedFleet shared,
                           std::shared_ptr<RolloutTally> tally,
                           actor::Ref<messages::RolloutEvents> exchange)
    : config_(std::move(config)),
      shared_(shared),
      tally_(std::move(tally)),
      exchange_(std::move(exchange)),
      queue_(config_.partial_rollout) {
  stats_.from = config_.self;
}

RolloutModel::~RolloutModel() { shared_.host.leave(worker_); }

void RolloutModel::send(messages::RolloutEvents event) {
  CHECK(exchange_.tell(std::move(event)) != actor::Delivery::kFull);  // one that has ended is gone
}

void RolloutModel::handle(actor::Context& cx, Begin) {
  tokens_before_ = tally_->tokens;
  busy_before_s_ = tally_->busy.seconds_at(cx.now());
  worker_ = shared_.host.join(cx, config_.threads);
  send(messages::RolloutUp{config_.self, config_.capacity});
  cx.after(config_.stats_interval, [this](actor::Context& later) { send_stats(later); });
}

void RolloutModel::handle(actor::Context& cx, messages::Assign assign) {
  for (messages::GroupWork& work : assign.groups) queue_.push(rollout::request_of(std::move(work)));
  look(cx);
}

void RolloutModel::handle(actor::Context&, messages::Evaluate) {
  CHECK(false);  // a forecast has no evaluations
}

void RolloutModel::handle(actor::Context& cx, messages::NewVersion offer) {
  offer_ = rollout::VersionOffer{offer.version, offer.oldest_retained};
  look(cx);
}

void RolloutModel::handle(actor::Context& cx, messages::HandBack hand_back) {
  const auto named = [&](const rollout::Request& request) {
    const GroupId group = std::get<rollout::GroupKey>(request.key).group;
    return hand_back.groups.empty() || std::ranges::count(hand_back.groups, group) > 0;
  };
  queue_.remove(named);
  std::erase_if(groups_, [&](const auto& entry) {
    if (!named(entry.second.request)) return false;
    batch_.remove(entry.first);
    queue_.ended(entry.second.request);
    return true;
  });
  look(cx);
}

void RolloutModel::send_stats(actor::Context& cx) {
  stats_.generation_tokens = static_cast<std::uint64_t>(tally_->tokens - tokens_before_);
  if (segment_)  // tokens of the steps so far extend the leases
    stats_.generation_tokens +=
        static_cast<std::uint64_t>(steps_done()) * static_cast<std::uint64_t>(batch_.running());
  stats_.requests_running = static_cast<std::int32_t>(batch_.running());
  stats_.requests_waiting = static_cast<std::int32_t>(queue_.sequences());
  stats_.busy_seconds = tally_->busy.seconds_at(cx.now()) - busy_before_s_;
  send(stats_);
  cx.after(config_.stats_interval, [this](actor::Context& later) { send_stats(later); });
}

// The engine sees what has come after the step that is under way.
void RolloutModel::look(actor::Context& cx) {
  if (installing_) return;
  if (!segment_) return advance(cx);
  const auto begun =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(steps_done() - kWhole)));
  if (begun >= segment_->steps) return;
  segment_->steps = begun;
  shared_.host.resize(segment_->piece, segment_->work_s());
}

double RolloutModel::steps_done() const {
  const double decoding_s = shared_.host.done_s(segment_->piece) - segment_->prefill_s;
  return std::max(0.0, decoding_s / segment_->step_s);
}

void RolloutModel::advance(actor::Context& cx) {
  if (offer_) {
    const auto wanted = queue_.wants(*offer_);
    if (wanted && wanted != updating_) {
      updating_ = wanted;
      arrived_ = false;
      queue_.begin_update(*wanted);
      const double fetch_s = config_.costs.fetch_s + kFetchSpread_s * cx.rng().unit();
      cx.after(duration_of(fetch_s), [this, version = *wanted](actor::Context& then) {
        if (updating_ != version) return;
        arrived_ = true;
        look(then);
      });
    }
  }
  if (pause_to_install(cx)) return;
  fill();
  if (batch_.running() > 0) decode(cx);
}

bool RolloutModel::pause_to_install(actor::Context& cx) {
  if (!updating_ || !arrived_ || !queue_.may_finish_update()) return false;
  installing_ = true;
  tally_->installing.begin(cx.now());
  shared_.host.begin(worker_, config_.costs.install_s, [this](actor::Context& then) {
    const double pause = tally_->installing.end(then.now());
    installing_ = arrived_ = false;
    updating_.reset();
    const PolicyVersion version = queue_.finish_update();
    if (config_.recompute_kv) prefill_s_ += config_.costs.prompt_token_s * context_tokens();
    send(messages::Installed{.from = config_.self,
                             .version = version,
                             .seconds = pause,
                             .checksum = checksum_of(version)});
    advance(then);
  });
  return true;
}

double RolloutModel::context_tokens() const {
  return static_cast<double>(batch_.tokens() + batch_.running() * config_.prompt_tokens);
}

// Sequences of a group that has begun come first, then the next groups, while there is room.
void RolloutModel::fill() {
  while (batch_.running() < config_.max_num_seqs) {
    Group* open = groups_.empty() ? nullptr : &groups_.rbegin()->second;
    if (!open || open->started == open->lengths.size()) {
      if (!queue_.next()) return;
      Group group{.request = queue_.take()};
      group.lengths =
          shared_.lengths.draw(group.request.seed, group.request.n, config_.response_most);
      group.oldest.resize(group.lengths.size());
      const double prompts = config_.prefix_caching ? 1 : group.request.n;
      prefill_s_ += prompts * config_.prompt_tokens * config_.costs.prompt_token_s;
      open = &groups_.emplace(++numbers_, std::move(group)).first->second;
    }
    open->oldest[open->started] = *queue_.version();
    batch_.add(groups_.rbegin()->first, open->lengths[open->started]);
    ++open->started;
  }
}

void RolloutModel::decode(actor::Context& cx) {
  const std::int64_t steps = batch_.steps_to_next_end();
  const auto running = static_cast<double>(batch_.running());
  // Contexts grow by one token a step: the mean over these steps.
  const double context = context_tokens() + running * static_cast<double>(steps - 1) / 2;
  segment_ = Segment{.prefill_s = std::exchange(prefill_s_, 0),
                     .step_s = config_.costs.step_s + config_.costs.sequence_s * running +
                               config_.costs.context_token_s * context,
                     .steps = steps,
                     .piece = {}};
  tally_->busy.begin(cx.now());
  segment_->piece = shared_.host.begin(worker_, segment_->work_s(),
                                       [this](actor::Context& then) { end_segment(then); });
}

void RolloutModel::end_segment(actor::Context& cx) {
  const Segment segment = *std::exchange(segment_, std::nullopt);
  tally_->busy.end(cx.now());
  tally_->tokens += segment.steps * batch_.running();
  for (const std::uint64_t number : batch_.decode(segment.steps)) {
    Group& group = groups_.at(number);
    if (++group.ended == group.lengths.size()) finish(number);
  }
  advance(cx);
}

void RolloutModel::finish(std::uint64_t number) {
  const auto node = groups_.extract(number);
  const Group& group = node.mapped();
  const auto& [id, attempt] = std::get<rollout::GroupKey>(group.request.key);
  messages::GroupHeader header{
      .group = id, .attempt = attempt, .prompt_tokens = config_.prompt_tokens};
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < group.lengths.size(); ++i) {
    tokens += group.lengths[i];
    header.trajectories.push_back({.oldest = group.oldest[i],
                                   .newest = *queue_.version(),
                                   .completion_tokens = group.lengths[i],
                                   .finish = group.lengths[i] == config_.response_most
                                                 ? messages::FinishReason::kLength
                                                 : messages::FinishReason::kStop});
  }
  header.payload = shared_.payloads.put(tokens);
  queue_.ended(group.request);
  send(messages::Generated{config_.self, {std::move(header)}});
}

}  // namespace tandem::forecast
