#include "actors/controller/transitions.h"

#include <algorithm>
#include <utility>

#include "actors/controller/rank_end.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;
using scheduler::Reason;

void enter(Turn& turn, ActorRecord& actor, ActorState to, Reason reason) {
  const ActorState from = actor.status.state;
  scheduler::enter(actor.status, to, std::move(reason), turn.now);
  if (from == to) return;
  JobRecord& job = turn.state.jobs.at(actor.job);
  job.ready += (to == ActorState::kReady ? 1 : 0) - (from == ActorState::kReady ? 1 : 0);
  job.stopped += to == ActorState::kStopped ? 1 : 0;  // which is final
  const bool waits = to == ActorState::kQueued || to == ActorState::kBackoff;
  if (waits) job.waiting.insert(actor.name);
  if (waits || job.waiting.erase(actor.name) > 0) turn.note_change();
  turn.announce(actor,
                std::string(name(to)) + ": " + scheduler::message(actor.status.reason, turn.now),
                level_of(actor.status.reason));
}

void enter(Turn& turn, JobRecord& job, JobState to, Reason reason) {
  const bool changed = job.status.state != to;
  scheduler::enter(job.status, to, std::move(reason), turn.now);
  if (!changed) return;
  turn.note_change();
  turn.announce(job, std::string(name(to)) + ": " + scheduler::message(job.status.reason, turn.now),
                level_of(job.status.reason));
}

Reason at_work(const ControllerState& state, const ActorRecord& actor) {
  for (const RankRecord& rank : actor.ranks)
    if (const auto node = state.nodes.find(rank.node);
        rank.alive && node != state.nodes.end() && node->second.agent_until)
      return scheduler::AgentLost{rank.node, node->second.since, *node->second.agent_until,
                                  node->second.silent};
  return scheduler::Working{};
}

void renew_reasons(Turn& turn, const std::string& node) {
  for (auto& [id, job] : turn.state.jobs)
    for (auto& [name, actor] : job.actors)
      if (actor.status.state == ActorState::kReady &&
          std::ranges::any_of(actor.ranks, [&](const RankRecord& r) { return r.node == node; }))
        enter(turn, actor, ActorState::kReady, at_work(turn.state, actor));
}

void leave(Turn& turn, const std::string& job) {
  if (turn.state.durable.job(job)) turn.remember(JobLeft{job});
}

ActorStarted started(const ActorRecord& actor) {
  ActorStarted event{.actor = actor.name,
                     .role = actor.role,
                     .index = actor.index,
                     .incarnation = actor.incarnation,
                     .ranks = {}};
  for (const RankRecord& rank : actor.ranks)
    event.ranks.push_back({rank.node, rank.gpus, rank.need});
  return event;
}

void add_actor(Turn& turn, JobRecord& job, const messages::Role& role, std::int32_t index) {
  const std::string id = actor_name(job.id, role, index);
  job.waiting.insert(id);
  turn.note_change();
  job.actors.emplace(id, ActorRecord{.name = id,
                                     .job = job.id,
                                     .role = role,
                                     .index = index,
                                     .status = {.state = ActorState::kQueued, .since = turn.now},
                                     .created = turn.now});
}

void remove_actor(JobRecord& job, std::string actor) {
  job.stopped -= job.actors.at(actor).status.state == ActorState::kStopped ? 1 : 0;
  job.waiting.erase(actor);
  job.actors.erase(actor);
}

}  // namespace tandem::controller
