// The decisions of the controller about room: which jobs could ever run, which actors start now, on
// which node.
//
// Jobs start whole and in the order in which they were submitted: only the first queued job is
// tried, and the others wait for it, so that a large job is not overtaken for ever by small ones.
// Actors of a running job that restart, or were added by scaling, take free room before any later
// job. Room that an actor in backoff will need again counts as taken for queued jobs.
//
// schedule() runs after every event and returns at once unless something that it reads has changed.
#include <algorithm>
#include <utility>

#include "actors/controller/controller_core.h"
#include "runtime/collective/nccl_api.h"
#include "scheduler/fleet/fits_ever.h"
#include "scheduler/fleet/memory_fit.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;
using scheduler::Reason;

namespace {

scheduler::Strategy strategy_of(const JobShape& shape, const messages::Role& role) {
  const auto chosen = shape.strategy.find(role);
  return chosen == shape.strategy.end() ? scheduler::Strategy::kPack : chosen->second;
}

// Why an actor waits. If it ran on a node that is lost, that is the reason, because the return of
// the node ends the wait.
Reason why_not_placed(const ActorRecord& actor, const std::map<std::string, NodeRecord>& nodes,
                      Reason no_room) {
  for (const RankRecord& rank : actor.ranks)
    if (const auto node = nodes.find(rank.node); node != nodes.end() && !node->second.up)
      return scheduler::NodeLost{rank.node};
  return no_room;
}

std::string nccl_version_of(const NodeRecord& node) {
  return node.nccl.version == 0 ? "" : collective::nccl_version_text(node.nccl.version);
}

}  // namespace

std::vector<scheduler::RoleDemand> demands_of(const JobShape& shape) {
  std::vector<scheduler::RoleDemand> demands;
  for (const messages::Role& role : shape.roles) {
    const std::string& key = name(role);
    const bool learner = role == messages::Role::kLearner;
    const bool program = program_of(shape, role) != nullptr;
    const std::string pool = (program ? "actors." : "pools.") + key;
    const auto memory = shape.memory.find(role);
    demands.push_back(
        {.role = key,
         .replicas = learner ? 1 : shape.replicas.at(role),
         .ranks = ranks_of(shape, role),
         .per_rank = shape.per_rank.at(role),
         .strategy = strategy_of(shape, role),
         .nccl = shape.nccl_roles.contains(role),
         .replicas_key = learner ? "" : (program ? "actors." : "") + key + ".replicas",
         .ranks_key = learner ? "learner.ranks" : "",
         .cpus_key = pool + ".cpus_per_actor",
         .gpus_key = role == messages::Role::kReward ? "" : pool + ".gpus_per_actor",
         .memory = memory == shape.memory.end() ? scheduler::MemoryDemand{} : memory->second});
  }
  return demands;
}

// Rows without a paged part are fixed: settle_memory() has nothing to decide.
JobShape as_placed(JobShape shape) {
  shape.memory_options.clear();
  for (auto& [role, demand] : shape.memory) {
    demand.rows = scheduler::shown_rows(demand);
    demand.paged.reset();
  }
  return shape;
}

std::int64_t planned_pages(const JobShape& shape, const messages::Role& role) {
  const auto memory = shape.memory.find(role);
  if (memory == shape.memory.end() || !memory->second.paged) return 0;
  return memory->second.paged->pages;
}

Result<void> ControllerCore::can_ever_run(const JobShape& shape) const {
  std::int64_t gpu_milli = 0;
  for (const scheduler::RoleDemand& role : demands_of(shape))
    gpu_milli += role.per_rank.gpu_milli * role.ranks * role.replicas;
  if (!shape.one_gpu.empty() && gpu_milli > scheduler::kWholeGpu)
    return Error{ErrorCode::kInfeasible,
                 "the job's actors take " +
                     scheduler::text_of_lacking({.gpu_milli = gpu_milli}, {}) +
                     " together, and it keeps to one GPU (" + shape.one_gpu + ")",
                 "", "lower their number or their gpus_per_actor"};
  return scheduler::fits_ever(capacity(), demands_of(shape), shape.memory_options);
}

Result<JobShape> ControllerCore::accepted(const JobShape& asked) const {
  JobShape shape = settled(asked);
  if (const auto fits = can_ever_run(shape); !fits) return fits.error();
  // Options to need less memory are for a refusal alone; the kept shape does not need them.
  shape.memory_options.clear();
  return shape;
}

JobShape ControllerCore::settled(JobShape shape) const {
  std::vector<scheduler::RoleDemand> demands = demands_of(shape);
  scheduler::settle_memory(demands, capacity());
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const auto planned = shape.memory.find(shape.roles[i]);
    if (planned == shape.memory.end()) continue;
    planned->second = std::move(demands[i].memory);
    shape.per_rank.at(shape.roles[i]) = demands[i].per_rank;
  }
  return shape;
}

void ControllerCore::schedule() {
  if (scheduled_ == changes_ && !(restart_next_ && *restart_next_ <= now_)) return;
  scheduled_ = changes_;
  restart_next_.reset();
  std::vector<JobRecord*> order;
  for (auto& [id, job] : jobs_) order.push_back(&job);
  std::sort(order.begin(), order.end(),
            [](const JobRecord* a, const JobRecord* b) { return a->submitted < b->submitted; });
  std::int32_t queued = 0;
  for (JobRecord* job : order) {
    if (job->status.state == JobState::kQueued) {
      if (queued == 0)
        start_job(*job);
      else
        wait_in_queue(*job, scheduler::WaitingForJobs{queued});
      queued += job->status.state == JobState::kQueued ? 1 : 0;
      continue;
    }
    // A job that is ending starts nothing more.
    if (job->outcome || scheduler::is_final(job->status.state)) continue;
    start_waiting(*job);
    say_node_lost(*job);
  }
}

// All ranks of one communicator must have the same version of NCCL, so living ranks fix it for
// those that start later.
std::string ControllerCore::nccl_version_in_use(const JobRecord& job) const {
  if (job.shape.nccl_roles.empty()) return "";
  for (const auto& [name, actor] : job.actors)
    if (job.shape.nccl_roles.contains(actor.role))
      for (const RankRecord& rank : actor.ranks)
        if (rank.alive) return nccl_version_of(nodes_.at(rank.node));
  return "";
}

// Starts actors in the order of their names, each in the room that those before it have left. All
// actors of a role need the same resources: if there is no room for one, there is none for the
// next.
void ControllerCore::start_waiting(JobRecord& job) {
  if (job.waiting.empty()) return;
  job.nccl_version = nccl_version_in_use(job);
  std::vector<scheduler::NodeCapacity> room = capacity();
  std::map<messages::Role, Reason> no_room;
  const std::vector<std::string> waiting(job.waiting.begin(), job.waiting.end());
  for (const std::string& actor_id : waiting) {
    ActorRecord& actor = job.actors.at(actor_id);
    // schedule() must run again when the first of these pauses ends, though nothing else changes.
    if (actor.status.state == ActorState::kBackoff && *actor.restart_at > now_) {
      restart_next_ = std::min(restart_next_.value_or(*actor.restart_at), *actor.restart_at);
      continue;
    }
    if (const auto none = no_room.find(actor.role); none != no_room.end()) {
      set(actor, ActorState::kQueued, why_not_placed(actor, nodes_, none->second));
      continue;
    }
    auto placed = scheduler::place_next(room, gang_of(job, actor));
    if (const auto* assignment = std::get_if<scheduler::Assignment>(&placed)) {
      start_actor(job, actor, assignment->ranks);
      no_room.clear();  // how much is free is part of the reason
    } else {
      const Reason& why = std::get<Reason>(placed);
      if (std::holds_alternative<scheduler::WaitingForCapacity>(why))
        no_room.emplace(actor.role, why);  // an InfeasibleShape names its actor
      set(actor, ActorState::kQueued, why_not_placed(actor, nodes_, why));
    }
  }
}

void ControllerCore::wait_in_queue(JobRecord& job, const Reason& why) {
  set(job, JobState::kQueued, why);
  for (auto& [actor_id, actor] : job.actors) set(actor, ActorState::kQueued, why);
}

// An actor in backoff keeps its place: a queued job may not take it.
std::vector<scheduler::Gang> ControllerCore::gangs_to_restart() const {
  std::vector<scheduler::Gang> gangs;
  for (const auto& [id, job] : jobs_)
    for (const std::string& actor_id : job.waiting) {
      const ActorRecord& actor = job.actors.at(actor_id);
      if (actor.status.state == ActorState::kBackoff) gangs.push_back(gang_of(job, actor));
    }
  return gangs;
}

void ControllerCore::start_job(JobRecord& job) {
  job.nccl_version.clear();
  job.shape = settled(std::move(job.shape));
  std::vector<scheduler::Gang> gangs = gangs_to_restart();
  for (const auto& [actor_id, actor] : job.actors) gangs.push_back(gang_of(job, actor));
  const auto placed = scheduler::place(capacity(), gangs);
  if (const auto* why = std::get_if<Reason>(&placed)) return wait_in_queue(job, *why);
  set(job, JobState::kStarting,
      scheduler::WaitingForActors{0, static_cast<std::int32_t>(job.actors.size())});
  if (trains(job.shape)) effects_.push_back(OpenExchange{job.id});
  // The plan also has the actors of other jobs that are backing off: those only held their room.
  for (const scheduler::Assignment& assignment : std::get<0>(placed))
    if (const auto own = job.actors.find(assignment.actor); own != job.actors.end())
      start_actor(job, own->second, assignment.ranks);
  count_ready(job);
}

void ControllerCore::start_actor(JobRecord& job, ActorRecord& actor,
                                 const std::vector<scheduler::RankPlace>& places) {
  set(actor, ActorState::kPlacing, scheduler::Submitted{});
  actor.incarnation = Incarnation{++incarnation_last_};
  // A new incarnation: no flag or pid of the last one may stay.
  actor.ranks.assign(places.size(), RankRecord{});
  actor.restart_at.reset();
  actor.report_deadline = now_ + kReportWait;
  // Without this event no later one might come to notice the deadline.
  effects_.push_back(WakeAt{actor.report_deadline});
  set(actor, ActorState::kStarting, scheduler::WaitingForSpawn{places.front().node});
  for (std::size_t r = 0; r < places.size(); ++r) {
    RankRecord& record = actor.ranks[r];
    record.node = places[r].node;
    record.gpus = places[r].gpus;
    record.alive = true;
    // The first rank that starts fixes the version for the others of the job.
    if (job.nccl_version.empty() && job.shape.nccl_roles.contains(actor.role))
      job.nccl_version = nccl_version_of(nodes_.at(record.node));
    lease(record, job.shape.per_rank.at(actor.role));
    const auto rank = static_cast<std::int32_t>(r);
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
    for (const std::int32_t gpu : record.gpus)
      spawn.gpus.push_back(nodes_.at(record.node).gpus[static_cast<std::size_t>(gpu)].device.uuid);
    effects_.push_back(std::move(spawn));
  }
}

namespace {

// The share of each GPU that a rank holds. A rank with several GPUs holds each of them whole.
std::int64_t gpu_share(const scheduler::Resources& need) {
  return std::min(need.gpu_milli, scheduler::kWholeGpu);
}

}  // namespace

void ControllerCore::lease(const RankRecord& rank, const scheduler::Resources& need) {
  ++changes_;
  NodeRecord& node = nodes_.at(rank.node);
  node.leased = node.leased + need;
  for (const std::int32_t gpu : rank.gpus)
    node.gpus[static_cast<std::size_t>(gpu)].free_milli -= gpu_share(need);
}

void ControllerCore::give_back(const RankRecord& rank, const scheduler::Resources& need) {
  ++changes_;
  NodeRecord& node = nodes_.at(rank.node);
  node.leased = node.leased - need;
  for (const std::int32_t gpu : rank.gpus)
    node.gpus[static_cast<std::size_t>(gpu)].free_milli += gpu_share(need);
}

std::vector<scheduler::NodeCapacity> ControllerCore::capacity() const {
  std::vector<scheduler::NodeCapacity> nodes;
  for (const auto& [id, node] : nodes_)
    if (node.up) {
      scheduler::NodeCapacity room{.name = id,
                                   .total = node.total,
                                   .free = node.total - node.leased,
                                   .gpus_unusable = node.gpus_unusable,
                                   .gpus_absent = node.gpus_absent,
                                   .nccl = {.version = nccl_version_of(node),
                                            .shares_gpus = node.nccl.shares_gpus,
                                            .absent = node.nccl.absent}};
      for (const GpuRecord& gpu : node.gpus) room.gpus_free_milli.push_back(gpu.free_milli);
      nodes.push_back(std::move(room));
    }
  return nodes;
}

scheduler::Gang ControllerCore::gang_of(const JobRecord& job, const ActorRecord& actor) const {
  return {.actor = actor.name,
          .per_rank = job.shape.per_rank.at(actor.role),
          .ranks = ranks_of(job.shape, actor.role),
          .strategy = strategy_of(job.shape, actor.role),
          .nccl = job.shape.nccl_roles.contains(actor.role),
          .nccl_version = job.nccl_version};
}

}  // namespace tandem::controller
