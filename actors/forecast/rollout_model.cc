#include "actors/forecast/rollout_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::forecast {
namespace {

// No two rollouts have a version at the same moment: the first one gets the next groups.
constexpr double kFetchSpread_s = 1e-3;

Duration duration_of(double s) { return Duration(std::llround(s * 1e9)); }

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

RolloutModel::~RolloutModel() { shared_.host.leave(config_.self.name); }

void RolloutModel::send(messages::RolloutEvents event) {
  CHECK(exchange_.tell(std::move(event)) != actor::Delivery::kFull);  // one that has ended is gone
}

void RolloutModel::handle(actor::Context& cx, Begin) {
  before_ = *tally_;
  shared_.host.join(config_.self.name, [this, post = cx.turn_poster()] {
    post([this](actor::Context& later) { look(later); });
  });
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
  stats_.generation_tokens = static_cast<std::uint64_t>(tally_->tokens - before_.tokens);
  if (segment_) {  // tokens of the steps so far extend the leases
    const double decoding = seconds(cx.now() - segment_->begun) - segment_->prefill_s;
    const auto steps = static_cast<std::int64_t>(std::max(0.0, decoding / segment_->step_s));
    stats_.generation_tokens += static_cast<std::uint64_t>(steps * batch_.running());
  }
  stats_.requests_running = static_cast<std::int32_t>(batch_.running());
  stats_.requests_waiting = static_cast<std::int32_t>(queue_.sequences());
  stats_.busy_seconds = tally_->busy_s - before_.busy_s;
  send(stats_);
  cx.after(config_.stats_interval, [this](actor::Context& later) { send_stats(later); });
}

// The engine sees what has come after the step that is under way.
void RolloutModel::look(actor::Context& cx) {
  if (installing_) return;
  if (!segment_) return advance(cx);
  const double decoding = seconds(cx.now() - segment_->begun) - segment_->prefill_s;
  const auto done = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(decoding / segment_->step_s - 1e-9)));
  if (done >= segment_->steps) return;
  segment_->steps = done;
  cx.cancel(segment_->timer);
  set_timer(cx);
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
  if (batch_.running() == 0) return shared_.host.work(config_.self.name, 0);
  shared_.host.work(config_.self.name, config_.threads);
  decode(cx);
}

bool RolloutModel::pause_to_install(actor::Context& cx) {
  if (!updating_ || !arrived_ || !queue_.may_finish_update()) return false;
  installing_ = true;
  shared_.host.work(config_.self.name, config_.threads);
  const double pause = config_.costs.install_s * shared_.host.slowdown();
  tally_->install_s += pause;
  cx.after(duration_of(pause), [this, pause](actor::Context& then) {
    installing_ = arrived_ = false;
    updating_.reset();
    const PolicyVersion version = queue_.finish_update();
    if (config_.recompute_kv) prefill_s_ += config_.costs.prompt_token_s * context_tokens();
    send(messages::Installed{config_.self, version, pause, checksum_of(version)});
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
  const double slowdown = shared_.host.slowdown();
  segment_ =
      Segment{.begun = cx.now(),
              .prefill_s = slowdown * std::exchange(prefill_s_, 0),
              .step_s = slowdown * (config_.costs.step_s + config_.costs.sequence_s * running +
                                    config_.costs.context_token_s * context),
              .steps = steps};
  set_timer(cx);
}

void RolloutModel::set_timer(actor::Context& cx) {
  const double length =
      segment_->prefill_s + segment_->step_s * static_cast<double>(segment_->steps);
  const Time end = segment_->begun + duration_of(length);
  segment_->timer = cx.after(end - cx.now(), [this](actor::Context& then) { end_segment(then); });
}

void RolloutModel::end_segment(actor::Context& cx) {
  const Segment segment = *std::exchange(segment_, std::nullopt);
  tally_->tokens += segment.steps * batch_.running();
  tally_->busy_s += seconds(cx.now() - segment.begun);
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
