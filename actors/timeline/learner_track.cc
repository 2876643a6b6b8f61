#include "actors/timeline/learner_track.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::timeline {

namespace {
constexpr std::size_t kCheckpointsOpenMax = 64;
}  // namespace

TraceRow LearnerTrack::row() { return rows_.row(pool_of(name_), name_); }

void LearnerTrack::turn_to(State state, TraceTime now) {
  if (state_ == State::kDown && state != State::kDown && now > since_)
    window_.span({.name = "down", .category = "down", .row = row()}, since_, now);
  state_ = state;
  since_ = now;
}

void LearnerTrack::came_up(const ActorId& who, TraceTime now) {
  finish(now, "the learner came up anew");
  name_ = short_name(who.name);
  turn_to(State::kIdle, now);
  window_.instant(
      {.name = "up",
       .category = "actor",
       .row = row(),
       .arguments = {{"incarnation", static_cast<std::int64_t>(who.incarnation.value)}}},
      now);
}

void LearnerTrack::died(TraceTime now) {
  finish(now, "the learner ended");
  turn_to(State::kDown, now);
  window_.instant({.name = "ended", .category = "actor", .row = row()}, now);
}

void LearnerTrack::restarted(std::int64_t batches, TraceTime now) {
  window_.instant({.name = "learner restarted",
                   .category = "actor",
                   .row = row(),
                   .arguments = {{"batches_to_train_again", batches}}},
                  now);
}

void LearnerTrack::begins(std::string task, TraceTime now,
                          const std::optional<AwaitedGroup>& last) {
  if (state_ == State::kBusy) return;
  if (state_ == State::kIdle) put_out_wait(now, last);
  turn_to(State::kBusy, now);
  task_ = std::move(task);
}

void LearnerTrack::put_out_wait(TraceTime now, const std::optional<AwaitedGroup>& last) {
  if (now == since_) return;
  TraceEvent wait{.name = "idle", .category = "idle", .row = row()};
  const bool evaluation = evaluated_ && *evaluated_ > since_;
  if (last && last->scored > since_ && (!evaluation || last->scored >= *evaluated_)) {
    wait.name = "waits for samples";
    wait.arguments = {{"last_group", static_cast<std::int64_t>(last->group.value)}};
    if (!last->rollout.empty()) wait.arguments.push_back({"of", last->rollout});
  } else if (evaluation) {
    wait.name = "waits for an evaluation";
  }
  window_.span(std::move(wait), since_, now);
}

bool LearnerTrack::done(TraceTime now, TraceArguments facts) {
  const bool known = state_ == State::kBusy;
  if (known)
    window_.span({.name = task_, .category = "train", .row = row(), .arguments = std::move(facts)},
                 since_, now);
  turn_to(State::kIdle, now);
  return known;
}

void LearnerTrack::published(std::int64_t version, double seconds, TraceTime now) {
  if (!std::isfinite(seconds) || seconds <= 0) return;
  const auto lasted = static_cast<TraceTime>(std::min(seconds, 1e6) * 1e6);
  const TraceTime from = std::max(now - lasted, published_);
  window_.span({.name = "publish v" + std::to_string(version),
                .category = "publish",
                .row = rows_.row(pool_of(name_), name_ + " publishes"),
                .arguments = {{"version", version}, {"seconds", seconds}}},
               from, now);
  published_ = now;
}

void LearnerTrack::checkpoint_asked(StepId step, TraceTime now) {
  if (checkpoints_.size() < kCheckpointsOpenMax) checkpoints_.try_emplace(step, now);
}

void LearnerTrack::checkpoint_kept(StepId step, TraceTime now) {
  const auto asked = checkpoints_.find(step);
  checkpoint_ends(step, asked == checkpoints_.end() ? now : asked->second, now, "kept");
  // A checkpoint covers those that were asked for before.
  checkpoints_.erase(checkpoints_.begin(), checkpoints_.upper_bound(step));
}

void LearnerTrack::checkpoint_ends(StepId step, TraceTime from, TraceTime now, const char* how) {
  window_.span({.name = "checkpoint " + std::to_string(step.value),
                .category = "checkpoint",
                .row = rows_.row(pool_of(name_), name_ + " saves"),
                .arguments = {{"ended", std::string(how)}}},
               std::max(from, kept_), now);
  kept_ = now;
}

void LearnerTrack::finish(TraceTime now, const char* how) {
  if (state_ == State::kBusy) done(now, {{"ended", std::string(how)}});
  if (state_ == State::kIdle) put_out_wait(now, std::nullopt);
  for (const auto& [step, asked] : checkpoints_) checkpoint_ends(step, asked, now, how);
  checkpoints_.clear();
  turn_to(State::kUnknown, now);
}

}  // namespace tandem::timeline
