#include "actors/api/wait_deadlines.h"

#include <algorithm>

namespace tandem::api {

using scheduler::ActorState;

std::optional<Time> deadline_of(const controller::ActorRecord& actor,
                                const controller::WorkByActor& work) {
  if (const auto own = scheduler::deadline_of(actor.status.reason)) return own;
  const ActorState state = actor.status.state;
  if (state == ActorState::kStarting) return actor.report_deadline;
  if (state == ActorState::kStopping) {
    // Nobody can kill a process whose agent is not heard: its node is waited for. Where it is known
    // until when, the view has that as the deadline (views.cc).
    const bool unheard = std::ranges::any_of(actor.ranks, [](const controller::RankRecord& rank) {
      return rank.alive && rank.end_unheard;
    });
    return unheard ? std::nullopt : std::optional(actor.kill_deadline);
  }
  if (state != ActorState::kInitializing) return std::nullopt;
  const auto at_work = work.find(actor.name);
  if (at_work == work.end() || at_work->second.incarnation != actor.incarnation)
    return std::nullopt;
  return at_work->second.hung_at;
}

scheduler::EndedBy ended_by(const controller::ActorRecord& actor) {
  // Here deadline_of() knows no time only if the node is waited for.
  if (actor.status.state == ActorState::kStopping) return scheduler::EndedBy::kNode;
  return scheduler::ended_by(actor.status.reason).value_or(scheduler::EndedBy::kController);
}

std::string actor_named_in(const messages::Wait& wait) {
  return wait.waits_for.substr(0, wait.waits_for.find(' '));
}

std::optional<double> deadline_s(const messages::Wait& wait, const controller::WorkByActor& work,
                                 Time now) {
  if (wait.deadline_s) return std::max(0.0, *wait.deadline_s);
  const auto at_work = work.find(actor_named_in(wait));
  if (at_work == work.end()) return std::nullopt;
  return std::max(0.0, seconds(at_work->second.hung_at - now));
}

}  // namespace tandem::api
