#include "actors/controller/controller_core.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "actors/controller/actor_end.h"
#include "actors/controller/automatic_cordon.h"
#include "actors/controller/autoscaling.h"
#include "actors/controller/cordon.h"
#include "actors/controller/job_end.h"
#include "actors/controller/job_progress.h"
#include "actors/controller/nodes.h"
#include "actors/controller/programs.h"
#include "actors/controller/queue.h"
#include "actors/controller/ranks.h"
#include "actors/controller/requests.h"
#include "actors/controller/room.h"
#include "actors/controller/stopping.h"
#include "actors/controller/turn.h"
#include "actors/controller/upkeep.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::controller {

namespace {

// Gives an event to its part. Only a part that takes requests of users returns a Result.
template <class Event>
Result<void> taken(Turn& turn, const Event& event) {
  if constexpr (std::is_void_v<decltype(take(turn, event))>) {
    take(turn, event);
    return {};
  } else {
    return take(turn, event);
  }
}

}  // namespace

Result<std::vector<ControllerEffect>> ControllerCore::step(const ControllerEvent& event, Time now) {
  std::vector<ControllerEffect> effects;
  state_.now_last = now;
  Turn turn(state_, now, effects);
  forget_old_jobs(state_);
  const Result<void> done = std::visit([&](const auto& e) { return taken(turn, e); }, event);
  if (!done) return done.error();
  if (const auto* up = std::get_if<node::NodeUp>(&event)) heed_leaving(turn, *up);
  while (schedule(turn) && lift_needed_cordon(turn)) {  // there are only so many
  }
  return effects;
}

std::vector<RankHung> ControllerCore::note_usage(const node::UsageReport& report) {
  std::vector<RankHung> hung;
  for (const node::RankUsage& usage : report.ranks) {
    RankRecord* const rank = state_.rank_of(usage.id);
    if (!rank) continue;
    rank->usage = usage;
    // In its own unit: a peer may tell any number.
    if (rank->alive && usage.stopped_ms >= scheduler::kHungStopped / std::chrono::milliseconds(1))
      hung.push_back({.id = usage.id,
                      .silent_s = static_cast<double>(usage.stopped_ms) / 1000,
                      .phase = std::string(scheduler::kStoppedPhase)});
  }
  return hung;
}

Result<void> ControllerCore::can_ever_run(const JobShape& shape) const {
  return controller::can_ever_run(state_, shape);
}

Result<JobShape> ControllerCore::accepted(const JobShape& shape) const {
  return controller::accepted(state_, shape);
}

JobShape ControllerCore::settled(JobShape shape) const {
  return controller::settled(state_, std::move(shape));
}

Result<node::RankId> ControllerCore::program_to_ask(const std::string& actor) const {
  return controller::program_to_ask(state_, actor);
}

bool ControllerCore::lives(const node::RankId& rank) {
  const RankRecord* const record = state_.rank_of(rank);
  return record && record->alive;
}

bool ControllerCore::idle() const { return controller::idle(state_); }

}  // namespace tandem::controller
