// schedule() goes over the jobs in the order of their submission. A queued job is placed as a whole
// (start_job) or stays queued; a job that has started places those of its actors that wait and fit
// (start_waiting). Both take their plan from scheduler/fleet and apply it (start_actor).
#include "actors/controller/queue.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "actors/controller/demands.h"
#include "actors/controller/job_progress.h"
#include "actors/controller/room.h"
#include "actors/controller/transitions.h"
#include "scheduler/fleet/placement.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;
using scheduler::Reason;

namespace {

constexpr std::uint64_t kIncarnationsReserved = 1000;  // at a time

// Why an actor waits. If it ran on a node that is lost, that is the reason, because the return of
// the node ends the wait.
Reason why_not_placed(const ActorRecord& actor, const std::map<std::string, NodeRecord>& nodes,
                      Reason no_room) {
  for (const RankRecord& rank : actor.ranks)
    if (const auto node = nodes.find(rank.node); node != nodes.end() && !node->second.up)
      return scheduler::NodeLost{rank.node};
  return no_room;
}

// The version of the living ranks of NCCL; empty if there is none. All ranks of one communicator
// must have the same version, so living ranks fix it for those that start later.
std::string nccl_version_in_use(const ControllerState& state, const JobRecord& job) {
  if (job.shape.nccl_roles.empty()) return "";
  for (const auto& [name, actor] : job.actors)
    if (job.shape.nccl_roles.contains(actor.role))
      for (const RankRecord& rank : actor.ranks)
        if (rank.alive) return nccl_version_of(state.nodes.at(rank.node));
  return "";
}

// Gives the job, and every actor of it, the reason for which it waits.
void wait_in_queue(Turn& turn, JobRecord& job, const Reason& why) {
  enter(turn, job, JobState::kQueued, why);
  for (auto& [actor_id, actor] : job.actors) enter(turn, actor, ActorState::kQueued, why);
}

// The actors in backoff of all jobs, whose room a queued job must leave free.
std::vector<scheduler::Gang> gangs_to_restart(const ControllerState& state) {
  std::vector<scheduler::Gang> gangs;
  for (const auto& [id, job] : state.jobs)
    for (const std::string& actor_id : job.waiting) {
      const ActorRecord& actor = job.actors.at(actor_id);
      if (actor.status.state == ActorState::kBackoff) gangs.push_back(gang_of(job, actor));
    }
  return gangs;
}

SpawnRankOn spawn_of(const ControllerState& state, const JobRecord& job, const ActorRecord& actor,
                     std::int32_t rank) {
  const RankRecord& record = actor.ranks[static_cast<std::size_t>(rank)];
  std::string file = messages::rank_name(actor.name.substr(job.id.size() + 1), rank);
  // One log per incarnation of a rank: "rollout.0.3.log".
  std::replace(file.begin(), file.end(), '/', '.');
  SpawnRankOn spawn{
      record.node,
      {actor.name, actor.incarnation, rank},
      job.run_dir + "/logs/" + file + "." + std::to_string(actor.incarnation.value) + ".log",
      {}};
  if (const RoleProgram* program = program_of(job.shape, actor.role)) {
    spawn.program = *program;
    spawn.working_directory = job.run_dir;
  }
  const NodeRecord& node = state.nodes.at(record.node);
  for (const std::int32_t gpu : record.gpus)
    spawn.gpus.push_back(node.gpus[static_cast<std::size_t>(gpu)].device.uuid);
  return spawn;
}

void start_actor(Turn& turn, JobRecord& job, ActorRecord& actor,
                 const std::vector<scheduler::RankPlace>& places) {
  enter(turn, actor, ActorState::kPlacing, scheduler::Submitted{});
  actor.incarnation = Incarnation{++turn.state.incarnation_last};
  if (actor.incarnation.value > turn.state.durable.incarnation_last())
    turn.remember(IncarnationsReserved{actor.incarnation.value + kIncarnationsReserved - 1});
  // A new incarnation: no flag or pid of the last one may stay.
  actor.ranks.assign(places.size(), RankRecord{});
  actor.restart_at.reset();
  actor.moved_off.clear();
  actor.report_deadline = turn.now + kReportWait;
  // Without this event no later one might come to notice the deadline.
  turn.send(WakeAt{actor.report_deadline});
  enter(turn, actor, ActorState::kStarting, scheduler::WaitingForSpawn{places.front().node});
  actor.outlived = false;
  for (std::size_t r = 0; r < places.size(); ++r) {
    RankRecord& record = actor.ranks[r];
    record.node = places[r].node;
    record.gpus = places[r].gpus;
    record.alive = true;
    // The first rank that starts fixes the version for the others of the job.
    if (job.nccl_version.empty() && job.shape.nccl_roles.contains(actor.role))
      job.nccl_version = nccl_version_of(turn.state.nodes.at(record.node));
    record.need = job.shape.per_rank.at(actor.role);
    lease(turn, record);
    turn.send(spawn_of(turn.state, job, actor, static_cast<std::int32_t>(r)));
  }
  const bool cancelled = !turn.state.durable.job(job.id);
  if (!cancelled) turn.remember(started(actor));
}

// Set while nodes of the controller before this one may still come back.
std::optional<Reason> waits_for_nodes(const ControllerState& state) {
  if (state.nodes_awaited.empty()) return std::nullopt;
  std::string names;
  for (const std::string& node : state.nodes_awaited) names += (names.empty() ? "" : ", ") + node;
  return scheduler::WaitingForNodes{names, state.nodes_awaited_until};
}

void go_on_without(Turn& turn) {
  for (const std::string& node : std::exchange(turn.state.nodes_awaited, {})) {
    NodeRecord& known = known_node(turn, node);
    known.awaited = false;
    if (known.up) continue;  // it ends ranks
    turn.remember(NodeLeft{node});
    turn.send(Announce{"node", node, "has not come back to the new controller",
                       messages::EventLevel::kError});
  }
  turn.note_change();
}

// Why the actor may not start yet, wherever there is room.
std::optional<Reason> may_not_start(const ControllerState& state, const std::string& actor) {
  const auto node = node_of_unwanted(state, actor);
  return node ? std::optional<Reason>(scheduler::FormerEnding{*node}) : std::nullopt;
}

// Places all actors of a queued job at once, or leaves it queued.
void start_job(Turn& turn, JobRecord& job) {
  for (const auto& [actor_id, actor] : job.actors)
    if (const auto why = may_not_start(turn.state, actor_id)) return wait_in_queue(turn, job, *why);
  job.nccl_version.clear();
  job.shape = settled(turn.state, std::move(job.shape));
  std::vector<scheduler::Gang> gangs = gangs_to_restart(turn.state);
  for (const auto& [actor_id, actor] : job.actors) gangs.push_back(gang_of(job, actor));
  const auto placed = scheduler::place(capacity(turn.state), gangs);
  if (const auto* why = std::get_if<Reason>(&placed)) return wait_in_queue(turn, job, *why);
  enter(turn, job, JobState::kStarting,
        scheduler::WaitingForActors{0, static_cast<std::int32_t>(job.actors.size())});
  if (trains(job.shape)) turn.send(OpenExchange{job.id});
  // The plan also has the actors of other jobs that are backing off: those only held their room.
  for (const scheduler::Assignment& assignment : std::get<0>(placed))
    if (const auto own = job.actors.find(assignment.actor); own != job.actors.end())
      start_actor(turn, job, own->second, assignment.ranks);
  count_ready(turn, job);
}

// The actor waits for the end of its pause: schedule() must run again when the first of these ends,
// though nothing else changes.
bool backs_off(Turn& turn, const ActorRecord& actor) {
  if (actor.status.state != ActorState::kBackoff || *actor.restart_at <= turn.now) return false;
  std::optional<Time>& next = turn.state.restart_next;
  next = std::min(next.value_or(*actor.restart_at), *actor.restart_at);
  return true;
}

// The job's actors were not adopted: on a node that has not come back, or still ends its ranks, a
// former incarnation of theirs may live (CC-1).
bool may_have_left_ranks(const JobRecord& job) { return trains(job.shape) && !job.follows; }

// Those actors of a running job that could start now wait for that reason.
void let_wait(Turn& turn, JobRecord& job, const Reason& why) {
  for (const std::string& actor_id : job.waiting)
    if (ActorRecord& actor = job.actors.at(actor_id); !backs_off(turn, actor))
      enter(turn, actor, ActorState::kQueued, why);
}

// Places those actors of a running job that wait and fit, in the order of their names, each in the
// room that those before it have left. All actors of a role need the same resources: if there is no
// room for one, there is none for the next.
void start_waiting(Turn& turn, JobRecord& job) {
  if (job.waiting.empty()) return;
  ControllerState& state = turn.state;
  job.nccl_version = nccl_version_in_use(state, job);
  std::vector<scheduler::NodeCapacity> room = capacity(state);
  std::map<messages::Role, Reason> no_room;
  const std::vector<std::string> waiting(job.waiting.begin(), job.waiting.end());
  for (const std::string& actor_id : waiting) {
    ActorRecord& actor = job.actors.at(actor_id);
    if (backs_off(turn, actor)) continue;
    if (const auto why = may_not_start(state, actor_id)) {
      enter(turn, actor, ActorState::kQueued, *why);
      continue;
    }
    if (const auto none = no_room.find(actor.role); none != no_room.end()) {
      enter(turn, actor, ActorState::kQueued, why_not_placed(actor, state.nodes, none->second));
      continue;
    }
    auto placed = scheduler::place_next(room, gang_of(job, actor));
    if (const auto* assignment = std::get_if<scheduler::Assignment>(&placed)) {
      start_actor(turn, job, actor, assignment->ranks);
      no_room.clear();  // how much is free is part of the reason
    } else {
      const Reason& why = std::get<Reason>(placed);
      if (std::holds_alternative<scheduler::WaitingForCapacity>(why))
        no_room.emplace(actor.role, why);  // an InfeasibleShape names its actor
      enter(turn, actor, ActorState::kQueued, why_not_placed(actor, state.nodes, why));
    }
  }
}

// The reason of a job that trains is a lost node while one of its actors waits for another node.
void say_node_lost(Turn& turn, JobRecord& job) {
  if (job.status.state != JobState::kRunning && job.status.state != JobState::kWarmStart) return;
  const Reason* lost = nullptr;
  for (const std::string& waiting : job.waiting)
    if (const Reason& why = job.actors.at(waiting).status.reason;
        std::holds_alternative<scheduler::NodeLost>(why))
      lost = &why;
  if (lost)
    enter(turn, job, job.status.state, *lost);
  else if (std::holds_alternative<scheduler::NodeLost>(job.status.reason))
    enter(turn, job, job.status.state, scheduler::Working{});
}

}  // namespace

void take(Turn& turn, const JournalNews& news) {
  if (std::exchange(turn.state.journal_fails, news.fails) != news.fails) turn.note_change();
}

void await_nodes(Turn& turn) {
  ControllerState& state = turn.state;
  for (const std::string& node : state.durable.nodes()) {
    const auto known = state.nodes.find(node);
    if (known == state.nodes.end() || !known->second.up) state.nodes_awaited.insert(node);
  }
  if (state.jobs.empty()) {
    for (const std::string& node : std::exchange(state.nodes_awaited, {}))
      turn.remember(NodeLeft{node});
    return;
  }
  for (const std::string& node : state.nodes_awaited) known_node(turn, node);
  state.nodes_awaited_until = turn.now + kNodesReturn;
  turn.send(WakeAt{state.nodes_awaited_until});
}

void schedule(Turn& turn) {
  ControllerState& state = turn.state;
  if (!state.nodes_awaited.empty() && turn.now >= state.nodes_awaited_until) go_on_without(turn);
  if (state.scheduled == state.changes && !(state.restart_next && *state.restart_next <= turn.now))
    return;
  state.scheduled = state.changes;
  state.restart_next.reset();
  std::vector<JobRecord*> order;
  for (auto& [id, job] : state.jobs) order.push_back(&job);
  std::sort(order.begin(), order.end(),
            [](const JobRecord* a, const JobRecord* b) { return a->submitted < b->submitted; });
  std::int32_t queued = 0;
  const std::optional<Reason> nodes_missing = waits_for_nodes(state);
  const std::optional<Reason> nothing_starts =
      state.journal_fails ? std::optional<Reason>(scheduler::WaitingForJournal{}) : nodes_missing;
  for (JobRecord* job : order) {
    if (job->status.state == JobState::kQueued) {
      if (nothing_starts)
        wait_in_queue(turn, *job, *nothing_starts);
      else if (queued == 0)
        start_job(turn, *job);
      else
        wait_in_queue(turn, *job, scheduler::WaitingForJobs{queued});
      queued += job->status.state == JobState::kQueued ? 1 : 0;
      continue;
    }
    // A job that is ending starts nothing more.
    if (job->outcome || scheduler::is_final(job->status.state)) continue;
    if (nothing_starts && (state.journal_fails || may_have_left_ranks(*job))) {
      let_wait(turn, *job, *nothing_starts);
      continue;
    }
    start_waiting(turn, *job);
    say_node_lost(turn, *job);
  }
}

}  // namespace tandem::controller
