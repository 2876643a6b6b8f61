// schedule() goes over the jobs in the order of their submission. A queued job is placed as a whole
// (start_job) or stays queued, where the cluster grows with one rollout at least; a job that has
// started places those of its actors that wait and fit (start_waiting). Both take their plan from
// scheduler/fleet and apply it (start_actor).
#include "actors/controller/queue.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "actors/controller/demands.h"
#include "actors/controller/job_progress.h"
#include "actors/controller/room.h"
#include "actors/controller/spawn.h"
#include "actors/controller/transitions.h"
#include "actors/controller/upkeep.h"
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

std::vector<const RankRecord*> living_nccl_ranks(const JobRecord& job) {
  std::vector<const RankRecord*> living;
  for (const auto& [name, actor] : job.actors)
    if (job.shape.nccl_roles.contains(actor.role))
      for (const RankRecord& rank : actor.ranks)
        if (rank.alive) living.push_back(&rank);
  return living;
}

// The version of the living ranks of NCCL; empty if there is none, or none of their nodes is back.
// All ranks of one communicator must have the same version, so living ranks fix it for those that
// start later.
std::string nccl_version_in_use(const ControllerState& state, const JobRecord& job) {
  const bool some_live = std::ranges::any_of(
      job.shape.nccl_roles, [&](const messages::Role& role) { return any_lives(job, role); });
  if (!some_live) return "";
  if (!job.nccl_version.empty()) return job.nccl_version;
  for (const RankRecord* rank : living_nccl_ranks(job))
    if (const std::string version = nccl_version_of(state.nodes.at(rank->node)); !version.empty())
      return version;
  return "";
}

// Set while a living rank of NCCL is on a node that is not back yet, so that its version is not
// known (PL-4). The wait ends with the node's return, or with that rank.
std::optional<std::string> node_of_nccl_awaited(const ControllerState& state,
                                                const JobRecord& job) {
  if (!job.nccl_version.empty()) return std::nullopt;
  for (const RankRecord* rank : living_nccl_ranks(job))
    if (!state.nodes.at(rank->node).up) return rank->node;
  return std::nullopt;
}

// Those actors of the role that could start now wait for that reason. It is news for each of them
// only where its kind is: numbers that change are kept once, for all of them.
void tell_queued(Turn& turn, JobRecord& job, const messages::Role& role, const Reason& why) {
  const auto newest = job.line.why.find(role);
  const bool same = newest != job.line.why.end() && newest->second.index() == why.index();
  job.line.why.insert_or_assign(role, why);
  const std::set<std::string>& those = same ? job.line.fresh : job.line.queued;
  const auto [from, behind] = names_below(job.id + "/" + name(role));
  const std::vector<std::string> told(those.lower_bound(from), those.lower_bound(behind));
  for (const std::string& actor_id : told) {
    ActorRecord& actor = job.actors.at(actor_id);
    enter(turn, actor, ActorState::kQueued, why_not_placed(actor, turn.state.nodes, why));
    job.line.fresh.erase(actor_id);
  }
}

// Gives the job, and every actor of it, the reason for which it waits.
void wait_in_queue(Turn& turn, JobRecord& job, const Reason& why) {
  enter(turn, job, JobState::kQueued, why);
  for (const messages::Role& role : job.shape.roles) tell_queued(turn, job, role, why);
}

void start_actor(Turn& turn, JobRecord& job, ActorRecord& actor,
                 const std::vector<scheduler::RankPlace>& places) {
  enter(turn, actor, ActorState::kPlacing, scheduler::Submitted{});
  actor.incarnation = Incarnation{++turn.state.incarnation_last};
  if (actor.incarnation.value > turn.state.durable.incarnation_last())
    turn.remember(IncarnationsReserved{actor.incarnation.value + kIncarnationsReserved - 1});
  // A new incarnation: no flag or pid of the last one may stay.
  remove_places(turn.state, actor);
  actor.ranks.assign(places.size(), RankRecord{});
  actor.restart_at.reset();
  actor.moved_off.clear();
  actor.report_deadline = turn.now + kReportWait;
  // Without this event no later one might come to notice the deadline.
  check_at(turn, actor, actor.report_deadline);
  enter(turn, actor, ActorState::kStarting, scheduler::WaitingForSpawn{places.front().node});
  for (std::size_t r = 0; r < places.size(); ++r) {
    RankRecord& record = actor.ranks[r];
    record.node = places[r].node;
    record.gpus = places[r].gpus;
    for (const std::int32_t gpu : record.gpus)
      record.gpu_uuids.push_back(
          turn.state.nodes.at(record.node).gpus.at(static_cast<std::size_t>(gpu)).device.uuid);
    record.alive = true;
    // The first rank that starts fixes the version for the others of the job.
    if (job.nccl_version.empty() && job.shape.nccl_roles.contains(actor.role))
      job.nccl_version = nccl_version_of(turn.state.nodes.at(record.node));
    record.need = job.shape.per_rank.at(actor.role);
    lease(turn, record);
    turn.send(spawn_of(job, actor, static_cast<std::int32_t>(r)));
  }
  add_places(turn.state, actor);
  count_living(job, actor.role, static_cast<std::int32_t>(places.size()));
  const bool cancelled = !turn.state.durable.knows(job.id);
  if (!cancelled) turn.remember(started(actor));
}

// Set while nodes for which the job waits may still come back.
std::optional<Reason> waits_for_nodes(const ControllerState& state, const JobRecord& job) {
  std::string names;
  std::optional<Time> last;
  for (const auto& [node, until] : state.nodes_awaited) {
    const bool for_its_ranks = job.former_nodes.contains(node);
    if (!for_its_ranks && !state.nodes_return_until) continue;
    names += (names.empty() ? "" : ", ") + node;
    last = std::max(last.value_or(Time{}), for_its_ranks ? until : *state.nodes_return_until);
  }
  if (!last) return std::nullopt;
  return scheduler::WaitingForNodes{names, *last};
}

// The wait for nodes is over, or that for some of them.
void end_waits_for_nodes(Turn& turn) {
  ControllerState& state = turn.state;
  if (state.nodes_return_until && *state.nodes_return_until <= turn.now) {
    state.nodes_return_until.reset();
    turn.note_change();
  }
  const std::map<std::string, Time> awaited = state.nodes_awaited;
  for (const auto& [node, until] : awaited)
    if (until <= turn.now) give_up_awaited(turn, node);
}

// Why the actor may not start yet, wherever there is room.
std::optional<Reason> may_not_start(const ControllerState& state, const std::string& actor) {
  const auto node = node_of_unwanted(state, actor);
  return node ? std::optional<Reason>(scheduler::FormerEnding{*node}) : std::nullopt;
}

// The same for a job as a whole: the first of its actors that may not.
std::optional<Reason> may_not_start(const ControllerState& state, const JobRecord& job) {
  const auto [from, behind] = names_below(job.id);
  for (auto rank = state.found.unwanted.lower_bound({{.actor = from}, ""});
       rank != state.found.unwanted.end() && rank->first.actor < behind; ++rank)
    if (job.actors.contains(rank->first.actor)) return scheduler::FormerEnding{rank->second};
  return std::nullopt;
}

// How much of a job has to find room for it to start.
enum class Start { kWhole, kLeast };  // kLeast: with one rollout

bool is_needed(Start start, const ActorRecord& actor) {
  return start == Start::kWhole || actor.role != messages::Role::kRollout || actor.index == 0;
}

// Why the nodes cannot have room for the queued job, where their sums show it: a large job that
// waits is not placed on trial at each end of a process.
std::optional<Reason> short_of_room(ControllerState& state, const JobRecord& job, Start start) {
  std::vector<scheduler::Gang> alike = gangs_to_restart(state);
  std::vector<std::int64_t> counts(alike.size(), 1);
  for (const auto& [role, count] : job.desired) {
    const auto [from, behind] = names_below(job.id + "/" + name(role));
    const auto first = job.actors.lower_bound(from);
    if (count == 0 || first == job.actors.end() || first->first >= behind) continue;
    alike.push_back(gang_of(job, first->second));
    const bool one = start == Start::kLeast && role == messages::Role::kRollout;
    counts.push_back(one ? 1 : count);
  }
  return scheduler::short_of(state.found.room, alike, counts);
}

// The job's actors start anew: those of the controller before are over.
void forget_former(Turn& turn, JobRecord& job) {
  for (const ActorEnded& ended : std::exchange(job.former, {})) turn.remember(ended);
}

// Where the actors of a queued job go. The plan also has those of other jobs that are backing off:
// they only hold their room.
struct JobPlan {
  std::vector<scheduler::Gang> gangs;
  std::size_t others = 0;  // the first gangs
  std::vector<scheduler::Assignment> assignments = {};
};
std::variant<JobPlan, Reason> plan_of(ControllerState& state, const JobRecord& job, Start start) {
  if (const auto why = short_of_room(state, job, start)) return *why;
  JobPlan plan{.gangs = gangs_to_restart(state)};
  plan.others = plan.gangs.size();
  for (const auto& [actor_id, actor] : job.actors)
    if (is_needed(start, actor)) plan.gangs.push_back(gang_of(job, actor));
  auto placed = scheduler::place_all(state.found.room, plan.gangs);
  if (const auto* why = std::get_if<Reason>(&placed)) return *why;
  plan.assignments = std::get<0>(std::move(placed));
  return plan;
}

// Places all actors of a queued job at once, or leaves it queued.
void start_job(Turn& turn, JobRecord& job) {
  ControllerState& state = turn.state;
  if (const auto why = may_not_start(state, job)) return wait_in_queue(turn, job, *why);
  job.nccl_version.clear();
  job.shape = settled(state, std::move(job.shape));
  auto planned = plan_of(state, job, Start::kWhole);
  if (state.rules.grows && std::holds_alternative<Reason>(planned))
    planned = plan_of(state, job, Start::kLeast);
  if (const auto* why = std::get_if<Reason>(&planned)) return wait_in_queue(turn, job, *why);
  forget_former(turn, job);
  const auto& [gangs, others, plan] = std::get<JobPlan>(planned);
  for (std::size_t i = 0; i < others; ++i)
    for (const scheduler::RankPlace& place : plan[i].ranks)
      state.found.room.give(place.node, place.gpus, gangs[i].per_rank);
  enter(turn, job, JobState::kStarting,
        scheduler::WaitingForActors{0, static_cast<std::int32_t>(job.actors.size())});
  if (trains(job.shape))
    turn.send(OpenExchange{job.id});
  else if (job.shape.resume_dir)
    turn.send(TakeUpRun{job.id});
  for (std::size_t i = others; i < plan.size(); ++i)
    start_actor(turn, job, job.actors.at(plan[i].actor), plan[i].ranks);
  count_ready(turn, job);
}

// Actors whose pause is over may start again.
void end_backoffs(Turn& turn) {
  for (const auto& [until, name] : turn.state.found.backoffs) {
    if (until > turn.now) break;
    JobRecord& job = *turn.state.job_of(name);
    job.line.queued.insert(name);
    job.line.fresh.insert(name);
  }
}

// Not all of the job's actors were adopted: on a node that has not come back, or still ends its
// ranks, a former incarnation of theirs may live (CC-1).
bool may_have_left_ranks(const JobRecord& job) {
  return trains(job.shape) && (!job.follows || !job.former_nodes.empty());
}

// Places those actors of a running job that wait and fit, in the order of their names, each in the
// room that those before it have left. All actors of a role need the same resources: if there is no
// room for one, there is none for the next.
void start_waiting(Turn& turn, JobRecord& job) {
  if (job.line.queued.empty()) return;
  ControllerState& state = turn.state;
  job.nccl_version = nccl_version_in_use(state, job);
  const auto nccl_awaited = node_of_nccl_awaited(state, job);
  const auto& queued = job.line.queued;
  for (auto next = queued.begin(); next != queued.end();) {
    const std::string actor_id = *next;
    ActorRecord& actor = job.actors.at(actor_id);
    const auto wait_for = [&](const Reason& why) {
      enter(turn, actor, ActorState::kQueued, why);
      job.line.fresh.erase(actor_id);
    };
    if (const auto why = may_not_start(state, actor_id)) {
      wait_for(*why);
    } else if (nccl_awaited && job.shape.nccl_roles.contains(actor.role)) {
      wait_for(scheduler::InfeasibleShape{
          actor_id + " needs the version of NCCL that its job's other processes on node " +
          *nccl_awaited + " have, and that node is not back yet"});
    } else {
      auto placed = scheduler::place_next(state.found.room, gang_of(job, actor));
      if (const auto* assignment = std::get_if<scheduler::Assignment>(&placed)) {
        start_actor(turn, job, actor, assignment->ranks);
      } else if (const Reason& none = std::get<Reason>(placed);
                 std::holds_alternative<scheduler::WaitingForCapacity>(none)) {
        tell_queued(turn, job, actor.role, none);
        next = queued.lower_bound(names_below(job.id + "/" + name(actor.role)).second);
        continue;
      } else {  // an InfeasibleShape names its actor
        wait_for(why_not_placed(actor, state.nodes, none));
        job.line.why.erase(actor.role);
      }
    }
    next = queued.upper_bound(actor_id);
  }
}

// The reason of a job that trains is a lost node while one of its actors waits for another node.
void say_node_lost(Turn& turn, JobRecord& job) {
  if (job.status.state != JobState::kRunning && job.status.state != JobState::kWarmStart) return;
  if (!job.line.lost.empty())
    enter(turn, job, job.status.state,
          Reason(job.actors.at(*job.line.lost.rbegin()).status.reason));
  else if (std::holds_alternative<scheduler::NodeLost>(job.status.reason))
    enter(turn, job, job.status.state, scheduler::Working{});
}

}  // namespace

std::vector<scheduler::Gang> gangs_to_restart(ControllerState& state) {
  std::vector<scheduler::Gang> gangs;
  for (const auto& [until, name] : state.found.backoffs) {
    const JobRecord& job = *state.job_of(name);
    gangs.push_back(gang_of(job, job.actors.at(name)));
  }
  return gangs;
}

void take(Turn& turn, const JournalNews& news) {
  if (std::exchange(turn.state.journal_fails, news.fails) != news.fails) turn.note_change();
}

void await_nodes(Turn& turn) {
  ControllerState& state = turn.state;
  // Where ranks may live that no job has adopted. A job that is not taken up may be resumed.
  std::set<std::string> with_former;
  for (const auto& [id, job] : state.jobs)
    with_former.insert(job.former_nodes.begin(), job.former_nodes.end());
  for (const auto& [name, actor] : state.durable.actors())
    if (!state.jobs.contains(job_of_actor(name)))
      for (const RankPlaced& rank : actor.started.ranks) with_former.insert(rank.node);
  // A node that was lost may have ranks all the same: those that its agent left behind.
  std::set<std::string> former = state.durable.nodes();
  former.insert(with_former.begin(), with_former.end());
  for (const std::string& node : former) {
    const auto known = state.nodes.find(node);
    if (known == state.nodes.end() || !known->second.up) state.nodes_awaited[node];
  }
  if (state.jobs.empty() && with_former.empty()) {
    for (const auto& [node, until] : std::exchange(state.nodes_awaited, {}))
      turn.remember(NodeLeft{node});
    return;
  }
  state.nodes_return_until = turn.now + kNodesReturn;
  turn.send(WakeAt{*state.nodes_return_until});
  for (auto& [node, until] : state.nodes_awaited) {
    known_node(turn, node);
    until = with_former.contains(node) ? turn.now + state.away_max() : *state.nodes_return_until;
    turn.send(WakeAt{until});
  }
}

void give_up_awaited(Turn& turn, const std::string& node) {
  if (turn.state.nodes_awaited.erase(node) == 0) return;
  turn.note_change();
  NodeRecord& known = known_node(turn, node);
  known.awaited = false;
  if (known.up) return;  // it ends ranks
  if (turn.state.durable.nodes().contains(node)) turn.remember(NodeLeft{node});
  turn.send(Announce{"node", node, "has not come back to the new controller",
                     messages::EventLevel::kError});
}

bool schedule(Turn& turn) {
  ControllerState& state = turn.state;
  end_waits_for_nodes(turn);
  const bool pause_over =
      !state.found.backoffs.empty() && state.found.backoffs.begin()->first <= turn.now;
  if (state.scheduled == state.changes && !pause_over) return false;
  state.scheduled = state.changes;
  end_backoffs(turn);
  std::vector<JobRecord*> order;  // of their submission
  for (const auto& [submitted, id] : state.found.wanting) order.push_back(state.job(id));
  std::int32_t queued = 0;
  for (JobRecord* job : order) {
    const std::optional<Reason> nothing_starts =
        state.journal_fails ? std::optional<Reason>(scheduler::WaitingForJournal{})
                            : waits_for_nodes(state, *job);
    if (job->status.state == JobState::kQueued) {
      if (nothing_starts)
        wait_in_queue(turn, *job, *nothing_starts);
      else if (queued == 0)
        start_job(turn, *job);
      else
        wait_in_queue(turn, *job, scheduler::WaitingForJobs{queued});
      if (job->status.state != JobState::kQueued) start_waiting(turn, *job);  // those left out
      // One that waits for nodes of its own holds nobody up.
      const bool waits_alone = nothing_starts && !state.journal_fails && !state.nodes_return_until;
      queued += job->status.state == JobState::kQueued && !waits_alone ? 1 : 0;
      continue;
    }
    // A job that is ending starts nothing more.
    if (job->outcome || scheduler::is_final(job->status.state)) continue;
    if (nothing_starts && (state.journal_fails || may_have_left_ranks(*job))) {
      for (const messages::Role& role : job->shape.roles)
        tell_queued(turn, *job, role, *nothing_starts);
      continue;
    }
    forget_former(turn, *job);
    start_waiting(turn, *job);
    say_node_lost(turn, *job);
  }
  return true;
}

}  // namespace tandem::controller
