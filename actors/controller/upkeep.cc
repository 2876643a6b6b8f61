#include "actors/controller/upkeep.h"

#include <algorithm>
#include <vector>

#include "actors/controller/cordon_mark.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;

void add_places(ControllerState& state, const ActorRecord& actor) {
  for (const RankRecord& rank : actor.ranks)
    if (!rank.node.empty()) state.found.actors_on[rank.node].insert(actor.name);
}

void remove_places(ControllerState& state, const ActorRecord& actor) {
  for (const RankRecord& rank : actor.ranks) {
    const auto on = state.found.actors_on.find(rank.node);
    if (on == state.found.actors_on.end()) continue;
    on->second.erase(actor.name);
    if (on->second.empty()) state.found.actors_on.erase(on);
  }
}

std::set<std::string> actors_on(const ControllerState& state, const std::string& node) {
  const auto on = state.found.actors_on.find(node);
  return on == state.found.actors_on.end() ? std::set<std::string>{} : on->second;
}

void look_again_on(ControllerState& state, const std::string& node) {
  const auto on = state.found.actors_on.find(node);
  if (on == state.found.actors_on.end()) return;
  for (const std::string& actor : on->second)
    if (JobRecord* const job = state.job_of(actor); job && job->line.queued.contains(actor))
      job->line.fresh.insert(actor);
}

void check_at(Turn& turn, const ActorRecord& actor, Time when) {
  turn.state.found.actor_checks.emplace(when, actor.name);
  turn.send(WakeAt{when});
}

void check_actors_on(ControllerState& state, const std::string& node) {
  for (const std::string& name : actors_on(state, node))
    if (const JobRecord* const job = state.job_of(name))
      if (const ActorRecord& actor = job->actors.at(name); alive(actor))
        state.found.actor_checks.emplace(actor.report_deadline, name);
}

std::set<std::string> due(Lookups::Deadlines& deadlines, Time now) {
  std::set<std::string> names;
  while (!deadlines.empty() && deadlines.begin()->first <= now)
    names.insert(std::move(deadlines.extract(deadlines.begin()).value().second));
  return names;
}

void count_living(JobRecord& job, const messages::Role& role, std::int32_t by) {
  job.living[role] += by;
}

bool any_lives(const JobRecord& job) {
  return std::ranges::any_of(job.living, [](const auto& role) { return role.second > 0; });
}

bool any_lives(const JobRecord& job, const messages::Role& role) {
  const auto living = job.living.find(role);
  return living != job.living.end() && living->second > 0;
}

// The names of a job's actors lie together in the order of the ranks.
bool has_unwanted(const ControllerState& state, const std::string& job) {
  const auto [from, behind] = names_below(job);
  const auto first = state.found.unwanted.lower_bound({{.actor = from}, ""});
  return first != state.found.unwanted.end() && first->first.actor < behind;
}

std::optional<std::string> node_of_unwanted(const ControllerState& state,
                                            const std::string& actor) {
  const auto first = state.found.unwanted.lower_bound({{.actor = actor}, ""});
  if (first == state.found.unwanted.end() || first->first.actor != actor) return std::nullopt;
  return first->second;
}

void note_waiting(ControllerState& state, JobRecord& job, const ActorRecord& actor,
                  std::optional<ActorState> before) {
  const ActorState now = actor.status.state;
  WaitingActors& line = job.line;
  const bool waits = now == ActorState::kQueued || now == ActorState::kBackoff;
  if (before == ActorState::kBackoff && now != ActorState::kBackoff && actor.restart_at)
    state.found.backoffs.erase({*actor.restart_at, actor.name});
  if (now == ActorState::kBackoff && before != now)
    state.found.backoffs.emplace(*actor.restart_at, actor.name);
  if (waits)
    job.waiting.insert(actor.name);
  else
    job.waiting.erase(actor.name);
  if (now == ActorState::kQueued) {
    line.queued.insert(actor.name);
    if (before != now) line.fresh.insert(actor.name);
  } else {
    line.queued.erase(actor.name);
    line.fresh.erase(actor.name);
  }
  if (waits && std::holds_alternative<scheduler::NodeLost>(actor.status.reason))
    line.lost.insert(actor.name);
  else
    line.lost.erase(actor.name);
  note_wanting(state, job);
}

void drop_waiting(ControllerState& state, JobRecord& job, const ActorRecord& actor) {
  if (actor.restart_at) state.found.backoffs.erase({*actor.restart_at, actor.name});
  job.waiting.erase(actor.name);
  job.line.queued.erase(actor.name);
  job.line.fresh.erase(actor.name);
  job.line.lost.erase(actor.name);
  note_wanting(state, job);
}

void note_wanting(ControllerState& state, const JobRecord& job) {
  const bool over = scheduler::is_final(job.status.state) || job.outcome;
  const bool wants = !over && (job.status.state == JobState::kQueued || !job.waiting.empty() ||
                               std::holds_alternative<scheduler::NodeLost>(job.status.reason));
  if (wants)
    state.found.wanting.emplace(job.submitted, job.id);
  else
    state.found.wanting.erase({job.submitted, job.id});
}

void note_ended(ControllerState& state, const JobRecord& job) {
  if (!state.found.ended.emplace(job.status.since, job.id).second) return;
  state.found.ended_actors += job.actors.size();
  for (const auto& [name, actor] : job.actors) remove_places(state, actor);
}

void forget_job(ControllerState& state, const std::string& id) {
  const auto it = state.jobs.find(id);
  JobRecord& job = it->second;
  if (state.found.ended.erase({job.status.since, id}) > 0)
    state.found.ended_actors -= job.actors.size();
  state.found.wanting.erase({job.submitted, id});
  state.jobs.erase(it);
}

namespace {

// Nothing refers to the node: no process may live there.
bool may_be_forgotten(ControllerState& state, const NodeRecord& node) {
  if (node.up || node.awaited || node.agent_until || !node.unwanted.empty()) return false;
  const auto on = state.found.actors_on.find(node.name);
  if (on == state.found.actors_on.end()) return true;
  return std::ranges::none_of(on->second, [&](const std::string& name) {
    const JobRecord* const job = state.job_of(name);
    return job && alive(job->actors.at(name));
  });
}

}  // namespace

void forget_old_jobs(ControllerState& state) {
  const Lookups& found = state.found;
  while (found.ended.size() > kEndedJobsKept ||
         (found.ended.size() > 1 && found.ended_actors > kEndedActorsKept))
    forget_job(state, std::string(found.ended.begin()->second));
}

void forget_lost_nodes(Turn& turn) {
  ControllerState& state = turn.state;
  std::size_t too_many =
      state.found.lost.size() - std::min(state.found.lost.size(), kLostNodesKept);
  for (auto next = state.found.lost.begin(); too_many > 0 && next != state.found.lost.end();) {
    const auto lost = next++;
    const auto node = state.nodes.find(lost->second);
    if (!may_be_forgotten(state, node->second)) continue;
    // A user's mark stays: it is for an agent that may come back.
    if (is_automatic(state, node->second)) turn.remember(NodeUncordoned{node->first});
    state.node_deaths.forget({node->first});
    look_again_on(state, node->first);
    state.found.lost.erase(lost);
    state.nodes.erase(node);
    --too_many;
  }
}

const scheduler::Reason& reason_shown(const JobRecord& job, const ActorRecord& actor) {
  const scheduler::Reason& own = actor.status.reason;
  if (actor.status.state != ActorState::kQueued) return own;
  const auto newest = job.line.why.find(actor.role);
  const bool same = newest != job.line.why.end() && newest->second.index() == own.index();
  return same ? newest->second : own;
}

void show_reasons(JobRecord& copy) {
  for (const std::string& name : copy.line.queued) {
    ActorRecord& actor = copy.actors.at(name);
    actor.status.reason = scheduler::Reason(reason_shown(copy, actor));
  }
}

}  // namespace tandem::controller
