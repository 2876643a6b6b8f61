// Points that are closer to each other than kPointsApart are thinned as they come: the newest one
// takes the place of the one before. So 64 points cover kRateTime at least, and a window that is
// some steps longer than was asked for is the price.
#include "actors/exchange/fleet_window.h"

#include <algorithm>
#include <utility>

namespace tandem::exchange {
namespace {

constexpr Duration kPointsApart = kRateTime / kRateSteps;

// Peers may send what they like.
template <class Number>
Number growth(Number from, Number to) {
  return to > from ? to - from : Number{0};
}

// Calls change(a, b) for each sum of the one and the same sum of the other.
void each_sum(RolloutSums& one, const RolloutSums& other, const auto& change) {
  change(one.tokens, other.tokens);
  change(one.prefix_queries, other.prefix_queries);
  change(one.prefix_hits, other.prefix_hits);
  change(one.busy_seconds, other.busy_seconds);
  change(one.observed_seconds, other.observed_seconds);
  change(one.pause_seconds, other.pause_seconds);
  change(one.installs, other.installs);
  change(one.install_bytes, other.install_bytes);
  change(one.steps, other.steps);
}

RolloutSums between(const RolloutSums& from, RolloutSums to) {
  each_sum(to, from, [](auto& sum, const auto& before) { sum -= before; });
  return to;
}

void add(RolloutSums& to, const RolloutSums& more) {
  each_sum(to, more, [](auto& sum, const auto& growth) { sum += growth; });
}

double share(double part, double whole) {
  return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
}

double ratio(double over, double under) { return under > 0 ? over / under : 0; }

scheduler::RolloutRate rate_of(const std::string& rollout, const RolloutSums& sums) {
  return {.actor = rollout,
          .tokens_per_s = ratio(static_cast<double>(sums.tokens), sums.busy_seconds),
          .busy_fraction = share(sums.busy_seconds, sums.observed_seconds),
          .install_fraction = share(sums.pause_seconds, sums.observed_seconds),
          .sequences = ratio(sums.steps.x1, sums.steps.count)};
}

}  // namespace

FleetWindow::Place& FleetWindow::place_of(const std::string& rollout) {
  const auto [found, is_new] = place_by_rollout_.try_emplace(rollout, places_.size());
  if (is_new && !free_.empty()) {
    found->second = free_.back();
    free_.pop_back();
  } else if (is_new) {
    places_.emplace_back();
  }
  Place& place = places_[found->second];
  if (is_new) place.rollout = rollout;
  return place;
}

void FleetWindow::worked(const std::string& rollout, const messages::RolloutStats& before,
                         const messages::RolloutStats& now, Duration time) {
  Place& place = place_of(rollout);
  place.up = true;
  FitSums steps;
  if (before.step_seconds.may_become(now.step_seconds)) {
    steps = now.step_seconds;
    steps -= before.step_seconds;
  }
  add(place.sums, {.tokens = growth(before.generation_tokens, now.generation_tokens),
                   .prefix_queries = growth(before.prefix_cache_queries, now.prefix_cache_queries),
                   .prefix_hits = growth(before.prefix_cache_hits, now.prefix_cache_hits),
                   .busy_seconds = growth(before.busy_seconds, now.busy_seconds),
                   .observed_seconds = seconds(time),
                   .steps = steps});
}

void FleetWindow::installed(const std::string& rollout, double pause_seconds, std::uint64_t bytes) {
  if (pause_seconds <= 0) return;
  Place& place = place_of(rollout);
  place.up = true;
  add(place.sums,
      {.pause_seconds = pause_seconds, .installs = 1, .install_bytes = static_cast<double>(bytes)});
}

void FleetWindow::ended(const std::string& rollout, RolloutEnd end) {
  sums_.rollout_deaths += end == RolloutEnd::kDied ? 1 : 0;
  sums_.rollout_returns += end == RolloutEnd::kReturns ? 1 : 0;
  if (end == RolloutEnd::kLeft) {
    fleet_.erase(rollout);
    fleet_changed_ = true;  // it has worked for as long as it drained
  }
  const auto found = place_by_rollout_.find(rollout);
  if (found != place_by_rollout_.end()) places_[found->second].up = false;
}

void FleetWindow::came(const std::string& rollout) {
  if (fleet_.insert(rollout).second) fleet_changed_ = true;
}

void FleetWindow::leaves(const std::string& rollout) {
  if (fleet_.erase(rollout) > 0) fleet_changed_ = true;
}

void FleetWindow::delayed(FleetDelay what, Duration time) {
  DelaySums& sums = sums_.delays[static_cast<std::size_t>(what)];
  ++sums.count;
  sums.seconds += seconds(time);
}

void FleetWindow::trained(Duration time) {
  ++sums_.trainings;
  sums_.training_seconds += seconds(time);
  sums_.learner_seconds += seconds(time);
}

void FleetWindow::waits(scheduler::TrainerWait wait, Time now) {
  sums_.waits[static_cast<std::size_t>(wait_)] += seconds(now - wait_since_);
  wait_ = wait;
  wait_since_ = now;
}

void FleetWindow::evaluates(bool one, Time now) {
  if (evaluates_) sums_.evaluation_seconds += seconds(now - evaluates_since_);
  evaluates_ = one;
  evaluates_since_ = now;
}

void FleetWindow::free_places() {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.rollout.empty() || place.up || place.sums != points_.front().of(i)) continue;
    place_by_rollout_.erase(place.rollout);
    place.rollout.clear();
    free_.push_back(i);
  }
}

bool FleetWindow::covers(std::int64_t from, Time at, std::int64_t steps) const {
  const Point& newest = points_.back();
  return newest.sums.steps - from >= steps && newest.at - at >= kRateTime;
}

bool FleetWindow::ends_window(std::int64_t steps) {
  if (!window_start_ || !covers(window_start_->steps, window_start_->at, steps)) return false;
  window_start_ = {points_.back().sums.steps, points_.back().at};
  return true;
}

void FleetWindow::committed(std::uint64_t tokens, std::int64_t completions, Time now) {
  waits(wait_, now);
  evaluates(evaluates_, now);
  ++sums_.steps;
  sums_.tokens_trained += tokens;
  sums_.completions += completions;
  if (std::exchange(fleet_changed_, false) && !points_.empty()) {
    points_.clear();
    window_start_.reset();
    begins_at_change_ = true;
  }
  const bool close =
      points_.size() > 1 && points_.back().at - points_[points_.size() - 2].at < kPointsApart;
  if (!close) points_.emplace_back();
  Point& point = points_.back();
  point.at = now;
  point.sums = sums_;
  point.rollouts.resize(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) point.rollouts[i] = places_[i].sums;
  if (!window_start_) window_start_ = {sums_.steps, now};
  while (points_.size() > 2 && covers(points_[1].sums.steps, points_[1].at, kRateSteps)) {
    points_.pop_front();
    begins_at_change_ = false;
  }
  up_.clear();
  for (const auto& [rollout, i] : place_by_rollout_)
    if (places_[i].up) up_.push_back(i);
  free_places();
}

const FleetWindow::Point* FleetWindow::start_of(std::int64_t steps) const {
  if (points_.size() < 2) return nullptr;
  const Point* from = &points_.front();
  for (const Point& point : points_)
    if (covers(point.sums.steps, point.at, steps)) from = &point;
  return points_.back().at - from->at < kRateTimeLeast ? nullptr : from;
}

scheduler::WaitSeconds FleetWindow::waits_from(const Point& from) const {
  scheduler::WaitSeconds waits = points_.back().sums.waits;
  const auto count = static_cast<double>(points_.back().sums.steps - from.sums.steps);
  for (std::size_t i = 0; i < waits.size(); ++i) waits[i] = (waits[i] - from.sums.waits[i]) / count;
  return waits;
}

double FleetWindow::evaluation_fraction(std::int64_t steps) const {
  const Point* const from = start_of(steps);
  if (!from) return 0;
  const Point& to = points_.back();
  return share(to.sums.evaluation_seconds - from->sums.evaluation_seconds,
               seconds(to.at - from->at));
}

std::optional<scheduler::FleetRates> FleetWindow::rates(std::int64_t steps) const {
  const Point* const from = start_of(steps);
  if (!from) return std::nullopt;
  const Point& to = points_.back();
  scheduler::FleetRates rates{.steps = to.sums.steps - from->sums.steps,
                              .seconds = seconds(to.at - from->at)};
  RolloutSums all;
  for (std::size_t i = 0; i < to.rollouts.size(); ++i) add(all, between(from->of(i), to.of(i)));
  for (const std::size_t i : up_) {
    const RolloutSums sums = between(from->of(i), to.of(i));
    if (sums.tokens > 0 && sums.busy_seconds > 0 &&
        sums.observed_seconds >= seconds(kRateTimeLeast))
      rates.rollouts.push_back(rate_of(places_[i].rollout, sums));
  }
  const auto count = static_cast<double>(rates.steps);
  const auto trained = static_cast<double>(to.sums.tokens_trained - from->sums.tokens_trained);
  const auto wasted = static_cast<double>(to.sums.tokens_wasted - from->sums.tokens_wasted);
  rates.step_seconds = ratio(to.sums.training_seconds - from->sums.training_seconds,
                             static_cast<double>(to.sums.trainings - from->sums.trainings));
  rates.step_tokens = trained / count;
  rates.completions_per_step =
      static_cast<double>(to.sums.completions - from->sums.completions) / count;
  if (trained > 0) rates.generated_per_trained = 1 + wasted / trained;
  const auto [step_s, sequence_s, prompt_token_s] = fit_nonnegative(all.steps);
  rates.engine = {step_s, sequence_s, prompt_token_s};
  const auto mean = [&](FleetDelay what) {
    const auto place = static_cast<std::size_t>(what);
    const DelaySums &now = to.sums.delays[place], &before = from->sums.delays[place];
    return ratio(now.seconds - before.seconds, static_cast<double>(now.count - before.count));
  };
  rates.fetch_seconds = mean(FleetDelay::kFetch);
  rates.score_seconds = mean(FleetDelay::kScore);
  rates.turnaround_seconds = mean(FleetDelay::kTurnaround);
  rates.install_seconds = ratio(all.pause_seconds, static_cast<double>(all.installs));
  rates.install_bytes = ratio(all.install_bytes, static_cast<double>(all.installs));
  if (all.prefix_queries > 0)
    rates.prefix_hit_ratio =
        share(static_cast<double>(all.prefix_hits), static_cast<double>(all.prefix_queries));
  rates.trainer_idle_fraction =
      1 - share(to.sums.learner_seconds - from->sums.learner_seconds, rates.seconds);
  if (all.observed_seconds > 0)
    rates.rollout_idle_fraction = 1 - share(all.busy_seconds, all.observed_seconds);
  rates.rollout_deaths = to.sums.rollout_deaths - from->sums.rollout_deaths;
  rates.rollout_returns = to.sums.rollout_returns - from->sums.rollout_returns;
  rates.waits = waits_from(*from);
  rates.since_resize = begins_at_change_ && from == &points_.front();
  return rates;
}

}  // namespace tandem::exchange
