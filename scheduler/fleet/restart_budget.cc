#include "scheduler/fleet/restart_budget.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

constexpr std::int32_t kMemoryKillsMax = 2;  // in a row (RB-6)

}  // namespace

FailureClass class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kFailed:
    case ErrorCode::kTimedOut:
    case ErrorCode::kUnreachable:
    case ErrorCode::kUnauthorised:  // in a gang another process may have taken its port by then
      return FailureClass::kMendable;
    case ErrorCode::kOutOfMemory:
      return FailureClass::kMemory;
    case ErrorCode::kInvalid:
    case ErrorCode::kInfeasible:
    case ErrorCode::kNotFound:
      return FailureClass::kInput;
  }
  CHECK(false);
}

bool worth_another_start(ErrorCode code, bool was_ready) {
  switch (class_of(code)) {
    case FailureClass::kMendable:
      return true;
    case FailureClass::kMemory:
      return was_ready;
    case FailureClass::kInput:
      return false;
  }
  CHECK(false);
}

RestartBudget::RestartBudget(const RestartPolicy& policy) : policy_(policy) {}

std::variant<Restart, Exhausted> RestartBudget::died(const Uptime& uptime, Rng& rng) {
  if (uptime.died - uptime.started >= policy_.healthy_after) consecutive_ = 0;
  // The window slides with the deaths: only restarts granted within one period before this death
  // count.
  while (!granted_.empty() && uptime.died - granted_.front() >= policy_.period)
    granted_.pop_front();
  // Deaths without a Ready are counted apart from the window: starts that take longer than period /
  // intensity to fail would never fill it (RB-5).
  never_ready_ = uptime.started < uptime.died ? 0 : never_ready_ + 1;
  if (std::ssize(granted_) >= policy_.intensity || never_ready_ > policy_.intensity)
    return Exhausted{std::max(static_cast<std::int32_t>(granted_.size()), never_ready_ - 1)};
  granted_.push_back(uptime.died);
  ++restarts_total_;

  const double first = seconds(policy_.backoff_first);
  const double delay = std::min(std::ldexp(first, consecutive_), seconds(policy_.backoff_max));
  ++consecutive_;
  const double swing = 1.0 + policy_.jitter * (2.0 * rng.unit() - 1.0);
  const Duration wait(static_cast<std::int64_t>(delay * swing * 1e9));
  return Restart{uptime.died + wait, static_cast<std::int32_t>(granted_.size()), policy_.intensity};
}

RestartLadder::RestartLadder(const Policies& policies) : policies_(policies) {}

RestartLadder::Decision RestartLadder::died(const Death& death, Rng& rng) {
  Actor& actor = actors_.try_emplace(death.actor, Actor{RestartBudget(policies_.actor), death.role})
                     .first->second;
  if (death.disk) {
    if (!actor.disk_since) actor.disk_since = death.uptime.died;
    actor.memory_kills = 0;
    const Time give_up = *actor.disk_since + kDiskWaitMax;
    const int doubled = std::min(actor.disk_failures++, 10);
    const Duration pause = std::min(kDiskPauseFirst * (1 << doubled), kDiskPauseMax);
    if (death.uptime.died < give_up) return WaitForDisk{death.uptime.died + pause, give_up};
  } else {
    end_row(actor);
  }
  if (death.uptime.died - death.uptime.started >= policies_.actor.healthy_after) actor.loop = {};
  if (actor.loop.deaths++ == 0) actor.loop.since = death.uptime.died;
  actor.loop.cause = death.cause;
  // Another cause between two kills by the kernel starts the count anew: they must be in a row.
  actor.memory_kills = death.memory_kill ? actor.memory_kills + 1 : 0;
  if (actor.memory_kills >= kMemoryKillsMax) return FailJobForMemory{death.cause};

  const auto own = actor.budget.died(death.uptime, rng);
  if (const auto* restart = std::get_if<Restart>(&own)) return RestartActor{*restart};

  RestartBudget& role = roles_.try_emplace(death.role, policies_.role).first->second;
  const auto whole = role.died(death.uptime, rng);
  if (const auto* exhausted = std::get_if<Exhausted>(&whole))
    return FailJob{exhausted->restarts, death.cause};
  // All actors of the role are started again with fresh budgets; their counts of restarts go on.
  for (auto& [name, peer] : actors_) {
    if (peer.role != death.role) continue;
    peer.restarts_before += peer.budget.restarts_total() + 1;  // the restart of the role is one
    peer.budget = RestartBudget(policies_.actor);
  }
  return RestartRole{std::get<Restart>(whole), death.cause};
}

void RestartLadder::ready(const std::string& actor) {
  if (const auto found = actors_.find(actor); found != actors_.end()) end_row(found->second);
}

void RestartLadder::end_row(Actor& actor) {
  actor.disk_since.reset();
  actor.disk_failures = 0;
}

std::int32_t RestartLadder::restarts_of(const std::string& actor) const {
  const auto found = actors_.find(actor);
  if (found == actors_.end()) return 0;
  return found->second.restarts_before + found->second.budget.restarts_total();
}

CrashLoop RestartLadder::loop_of(const std::string& actor) const {
  const auto found = actors_.find(actor);
  return found == actors_.end() ? CrashLoop{} : found->second.loop;
}

void RestartLadder::forget(const std::string& actor) { actors_.erase(actor); }

}  // namespace tandem::scheduler
