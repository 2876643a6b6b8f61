#include "actors/controller/adoption.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/controller/actor_end.h"
#include "actors/controller/job_end.h"
#include "actors/controller/job_progress.h"
#include "actors/controller/ranks.h"
#include "actors/controller/room.h"
#include "actors/controller/spawn.h"
#include "actors/controller/stopping.h"
#include "actors/controller/transitions.h"
#include "actors/controller/unwanted.h"
#include "actors/controller/upkeep.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;

namespace {

// The rank has the node's room, which has a record for each GPU that it holds.
void hold_room(Turn& turn, RankRecord& rank) {
  NodeRecord& node = known_node(turn, rank.node);
  for (const std::string& uuid : rank.gpu_uuids) rank.gpus.push_back(index_of_gpu(node, uuid));
  lease(turn, rank);
}

constexpr std::size_t kGpusMax = 1024;  // of a node, as the doors let them in
constexpr std::int64_t kAmountMax = std::int64_t{1} << 50;

// Whether a rank can have been placed so: a damaged journal may tell of other things.
bool can_be(const RankPlaced& place) {
  const auto is_amount = [](std::int64_t amount) { return amount >= 0 && amount <= kAmountMax; };
  const std::set<std::string> gpus(place.gpus.begin(), place.gpus.end());
  const scheduler::Resources& need = place.need;
  return !place.node.empty() && gpus.size() == place.gpus.size() && gpus.size() <= kGpusMax &&
         !gpus.contains("") && gpus.empty() == (need.gpu_milli == 0) && is_amount(need.cpu_milli) &&
         is_amount(need.gpu_milli) && is_amount(need.memory_bytes);
}

scheduler::Reason ending_of(const ActorLeaves& leaves) {
  switch (leaves.why) {
    case Leaving::kDropped:
      break;
    case Leaving::kMoved:
      return scheduler::NodeDrained{leaves.node};
    case Leaving::kRestarted:
      return scheduler::RankError{"it was told to end by the controller before this one"};
    case Leaving::kPreempted:
      return scheduler::Preempted{};
  }
  return scheduler::ScaleDown{};
}

// The actor, which waits, has living ranks at these places.
void adopt(Turn& turn, JobRecord& job, ActorRecord& actor, const DurableState::Actor& known,
           Time until) {
  const std::string& node = known.started.ranks.front().node;
  enter(turn, actor, ActorState::kPlacing, scheduler::Returning{node, until});
  enter(turn, actor, ActorState::kStarting, scheduler::Returning{node, until});
  actor.incarnation = known.started.incarnation;
  actor.restart_at.reset();
  actor.ending.reset();
  actor.moved_off.clear();
  actor.preempted = false;
  if (known.leaves) {
    actor.moved_off = known.leaves->node;
    actor.preempted = known.leaves->why == Leaving::kPreempted;
    actor.ending = ending_of(*known.leaves);
  }
  actor.report_deadline = until;
  check_at(turn, actor, until);
  remove_places(turn.state, actor);
  actor.ranks.resize(known.started.ranks.size());
  count_living(job, actor.role, static_cast<std::int32_t>(actor.ranks.size()));
  for (std::size_t r = 0; r < actor.ranks.size(); ++r) {
    const RankPlaced& place = known.started.ranks[r];
    RankRecord& rank = actor.ranks[r];
    // Its link may never have been lost.
    rank = {.node = place.node,
            .alive = true,
            .connected = rank.connected,
            .gpu_uuids = place.gpus,
            .need = place.need,
            .usage = {}};
    hold_room(turn, rank);
    turn.send(
        ExpectRank{place.node, {actor.name, actor.incarnation, static_cast<std::int32_t>(r)}});
  }
  add_places(turn.state, actor);
}

// It is of an attempt at the run before the one that is followed.
bool is_former(const ControllerState& state, const JobRecord& job, const ActorStarted& started) {
  const JobTaken* const taken = state.durable.job(job.id);
  return taken && started.incarnation.value <= taken->earlier.incarnations;
}

// It goes on: a user's program, or an actor of an exchange that goes on; of a job that is over it
// is waited for, since it is to end. A damaged journal may tell of roles and places that are none.
bool goes_on(const ControllerState& state, const JobRecord& job, const ActorStarted& started) {
  const bool follows = job.follows && !is_former(state, job, started);
  const bool trained = (follows || state.durable.outcome(job.id)) && messages::trains(started.role);
  return (trained || program_of(job.shape, started.role)) &&
         std::ssize(started.ranks) == ranks_of(job.shape, started.role) &&
         std::ranges::all_of(started.ranks, can_be);
}

void note_former(JobRecord& job, const ActorStarted& started) {
  for (const RankPlaced& rank : started.ranks) job.former_nodes.insert(rank.node);
  job.former.push_back(
      {.actor = started.actor, .incarnation = started.incarnation, .how = ActorEnd::kReplaced});
}

void restore_actor(Turn& turn, JobRecord& job, const DurableState::Actor& known) {
  const ActorStarted& started = known.started;
  const bool here = goes_on(turn.state, job, started);
  if (!here) return note_former(job, started);
  if (known.finished && !job.actors.contains(started.actor))
    return turn.remember(ActorEnded{
        .actor = started.actor, .incarnation = started.incarnation, .how = ActorEnd::kDropped});
  // One that was scaled away, and has not ended yet, has no record.
  if (!job.actors.contains(started.actor)) add_actor(turn, job, started.role, started.index);
  ActorRecord& actor = job.actors.at(started.actor);
  if (known.finished) {
    actor.incarnation = started.incarnation;
    return enter(turn, actor, ActorState::kStopped, scheduler::Finished{});
  }
  turn.state.actors_return_until = turn.now + turn.state.away_max();
  turn.send(WakeAt{*turn.state.actors_return_until});
  adopt(turn, job, actor, known, *turn.state.actors_return_until);
}

// Deaths count as before, but for those of a time when the machine was not booted yet.
void restore_deaths(Turn& turn, JobRecord& job) {
  for (const ActorEnded& death : turn.state.durable.deaths_of(job.id)) {
    const auto actor = job.actors.find(death.actor);
    if (death.died > turn.now || actor == job.actors.end()) continue;
    (void)job.ladder.died({.actor = death.actor,
                           .role = name(actor->second.role),
                           .cause = death.cause,
                           .uptime = {death.started, death.died},
                           .memory_kill = death.memory_kill},
                          turn.state.rng);
    actor->second.crash_loop = job.ladder.loop_of(death.actor);
  }
}

// The node has said that the rank lives. An actor that is to end is told so, since an earlier order
// may not have arrived.
void meet(Turn& turn, JobRecord& job, ActorRecord& actor) {
  if (std::exchange(job.unsettled, false)) job.shape = settled(turn.state, std::move(job.shape));
  if (job.outcome) return stop_actor(turn, job, actor, scheduler::JobEnded{});
  if (actor.ending) return stop_actor(turn, job, actor, *actor.ending);
  if (!wanted(job, actor)) return stop_actor(turn, job, actor, scheduler::ScaleDown{});
  actor.report_deadline = turn.now + kReportWait;
  check_at(turn, actor, actor.report_deadline);
}

// The actor has ended here because its node was lost, nothing was started in its place yet, and its
// process is found to live.
bool may_go_on(const JobRecord& job, const ActorRecord& actor) {
  const bool waits =
      actor.status.state == ActorState::kBackoff || actor.status.state == ActorState::kQueued;
  return waits && program_of(job.shape, actor.role) && !job.outcome && wanted(job, actor);
}

void go_on(Turn& turn, JobRecord& job, ActorRecord& actor) {
  const ActorStarted again = started(actor);
  turn.remember(again);
  adopt(turn, job, actor, {.started = again}, turn.now + kReportWait);
  for (std::size_t r = 0; r < actor.ranks.size(); ++r)
    if (actor.ranks[r].connected)
      take(turn, RankConnected{{actor.name, actor.incarnation, static_cast<std::int32_t>(r)}});
}

// The node was not told to start the rank: the controller before, or its link, was gone by then.
bool was_not_ordered(const node::NodeUp& up, const node::RankId& rank) {
  return up.newest_order && comes_later(rank, *up.newest_order);
}

bool may_start_there(const NodeRecord& node, const RankRecord& rank) {
  return !node.cordoned && !node.leaving && std::ranges::all_of(rank.gpus, [&](std::int32_t index) {
    const GpuRecord& gpu = node.gpus.at(static_cast<std::size_t>(index));
    return !gpu.gone && !gpu.cordoned;
  });
}

using Living = std::map<node::RankId, std::int64_t>;  // with the pid

// Takes the actor's ranks out of those that live on the node, and has those started that it was not
// told of.
void meet_actor(Turn& turn, JobRecord& job, ActorRecord& actor, const node::NodeUp& up,
                Living& living) {
  const std::string& node = up.node;
  const bool goes_on = !job.outcome && !actor.ending && wanted(job, actor);
  std::vector<std::int32_t> gone, not_ordered;
  bool met = false;
  for (std::int32_t r = 0; r < std::ssize(actor.ranks); ++r) {
    RankRecord& rank = actor.ranks[static_cast<std::size_t>(r)];
    if (rank.node != node) continue;
    const auto found = living.find({actor.name, actor.incarnation, r});
    const bool lives = found != living.end();
    if (rank.alive && !lives) {
      const bool starts = goes_on && was_not_ordered(up, {actor.name, actor.incarnation, r}) &&
                          may_start_there(known_node(turn, node), rank);
      (starts ? not_ordered : gone).push_back(r);
    }
    if (!lives || (!rank.alive && !may_go_on(job, actor))) continue;
    if (!rank.alive) go_on(turn, job, actor);
    rank.pid = found->second;
    living.erase(found);
    met = true;
  }
  if (gone.empty()) {
    if (met || !not_ordered.empty()) meet(turn, job, actor);
    if (not_ordered.empty()) return;
    if (not_ordered.size() == actor.ranks.size())
      enter(turn, actor, ActorState::kStarting, scheduler::WaitingForSpawn{node});
    for (const std::int32_t rank : not_ordered) turn.send(spawn_of(job, actor, rank));
    return;
  }
  const std::string name = actor.name;
  gone.insert(gone.end(), not_ordered.begin(), not_ordered.end());
  for (const std::int32_t rank : gone)
    if (const auto it = job.actors.find(name); it != job.actors.end())
      rank_gone(turn, job, it->second, rank, scheduler::NodeLost{node});
}

// The actors on the node, in the order in which a node is told to start them (comes_later).
std::vector<std::string> in_order_of_start(ControllerState& state, const std::string& node) {
  std::vector<std::pair<Incarnation, std::string>> order;
  for (const std::string& name : actors_on(state, node))
    if (const JobRecord* const job = state.job_of(name))
      if (const auto actor = job->actors.find(name); actor != job->actors.end())
        order.emplace_back(actor->second.incarnation, name);
  std::ranges::sort(order);
  std::vector<std::string> names;
  for (auto& [incarnation, name] : order) names.push_back(std::move(name));
  return names;
}

}  // namespace

void note_former(const ControllerState& state, JobRecord& job) {
  for (const auto& [name, known] : state.durable.actors_of(job.id)) note_former(job, known.started);
}

void restore(Turn& turn, JobRecord& job) {
  restore_deaths(turn, job);
  for (const auto& [name, known] : turn.state.durable.actors_of(job.id))
    restore_actor(turn, job, known);
  const bool began = job.stopped > 0 || std::ranges::any_of(job.actors, [](const auto& actor) {
                       return alive(actor.second);
                     });
  const JobOver* const over = turn.state.durable.outcome(job.id);
  if (!began && !over) return;
  enter(turn, job, JobState::kStarting,
        scheduler::WaitingForActors{0, static_cast<std::int32_t>(job.actors.size())});
  if (over) return conclude(turn, job, {job.id, over->outcome, over->reason, over->has_result});
  job.unsettled = true;
  if (trains(job.shape)) turn.send(OpenExchange{job.id});
  count_ready(turn, job);
  count_finished(turn, job);
}

void meet_ranks(Turn& turn, NodeRecord& node, const node::NodeUp& up) {
  Living living;
  for (const node::LivingRank& rank : up.ranks) living.emplace(rank.id, rank.pid);
  for (const node::RankExited& ended : up.ended) take(turn, ended);
  for (const std::string& name : in_order_of_start(turn.state, up.node)) {
    JobRecord* const job = turn.state.job_of(name);
    if (!job) continue;
    // The end of an actor may take it out.
    if (const auto actor = job->actors.find(name); actor != job->actors.end())
      meet_actor(turn, *job, actor->second, up, living);
  }
  std::vector<node::RankId> unwanted;
  for (const auto& [id, pid] : living) unwanted.push_back(id);
  end_unwanted(turn, node, unwanted);
}

}  // namespace tandem::controller
