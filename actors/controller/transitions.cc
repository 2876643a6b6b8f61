#include "actors/controller/transitions.h"

#include <optional>
#include <utility>

#include "actors/controller/rank_end.h"
#include "actors/controller/upkeep.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;
using scheduler::Reason;

void enter(Turn& turn, ActorRecord& actor, ActorState to, Reason reason) {
  const ActorState from = actor.status.state;
  scheduler::enter(actor.status, to, std::move(reason), turn.now);
  JobRecord& job = turn.state.jobs.at(actor.job);
  const bool waited = job.waiting.contains(actor.name);
  const bool waits = to == ActorState::kQueued || to == ActorState::kBackoff;
  if (waited || waits) note_waiting(turn.state, job, actor, from);
  if (from == to) return;
  job.ready += (to == ActorState::kReady ? 1 : 0) - (from == ActorState::kReady ? 1 : 0);
  job.stopped += to == ActorState::kStopped ? 1 : 0;  // which is final
  if (waited || waits) turn.note_change();
  turn.announce(actor,
                std::string(name(to)) + ": " + scheduler::message(actor.status.reason, turn.now),
                level_of(actor.status.reason));
}

void enter(Turn& turn, JobRecord& job, JobState to, Reason reason) {
  const bool changed = job.status.state != to;
  scheduler::enter(job.status, to, std::move(reason), turn.now);
  note_wanting(turn.state, job);
  if (scheduler::is_final(to)) note_ended(turn.state, job);
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
  for (const std::string& name : actors_on(turn.state, node))
    if (JobRecord* const job = turn.state.job_of(name))
      if (ActorRecord& actor = job->actors.at(name); actor.status.state == ActorState::kReady)
        enter(turn, actor, ActorState::kReady, at_work(turn.state, actor));
}

void leave(Turn& turn, const std::string& job) {
  if (turn.state.durable.knows(job)) turn.remember(JobLeft{job});
}

ActorStarted started(const ActorRecord& actor) {
  ActorStarted event{.actor = actor.name,
                     .role = actor.role,
                     .index = actor.index,
                     .incarnation = actor.incarnation,
                     .ranks = {}};
  for (const RankRecord& rank : actor.ranks)
    event.ranks.push_back({rank.node, rank.gpu_uuids, rank.need});
  return event;
}

void add_actor(Turn& turn, JobRecord& job, const messages::Role& role, std::int32_t index) {
  const std::string id = actor_name(job.id, role, index);
  turn.note_change();
  const auto [added, is_new] = job.actors.emplace(
      id, ActorRecord{.name = id,
                      .job = job.id,
                      .role = role,
                      .index = index,
                      .status = {.state = ActorState::kQueued, .since = turn.now},
                      .created = turn.now});
  if (is_new) note_waiting(turn.state, job, added->second, std::nullopt);
}

void remove_actor(Turn& turn, JobRecord& job, const std::string& name) {
  const auto actor = job.actors.find(name);
  job.stopped -= actor->second.status.state == ActorState::kStopped ? 1 : 0;
  drop_waiting(turn.state, job, actor->second);
  remove_places(turn.state, actor->second);
  job.actors.erase(actor);
}

}  // namespace tandem::controller
