// Handlers of events, in this order: nodes and processes, exchanges. Requests of users are in
// controller_requests.cc, the programs of users and jobs without an exchange in
// controller_programs.cc. step() ends with schedule() (controller_placement.cc); a handler only
// changes records and adds effects.
//
// The end of an actor has one path, whatever began it: kill() asks agents to end its processes,
// rank_gone() hears of each end, and actor_gone() acts after the last one (CC-1). A reason is kept
// in `ending` from the first sign, so that the end of the processes does not hide its cause. A job
// that trains ends through its exchange: EndJob to it, JobEnded from it, and only then do the
// actors stop.
#include "actors/controller/controller_core.h"

#include <algorithm>
#include <utility>

#include "actors/controller/rank_end.h"
#include "actors/exchange/run_result.h"
#include "scheduler/fleet/failure.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;
using scheduler::Reason;

namespace {

std::optional<std::int32_t> unlinked_rank(const ActorRecord& actor) {
  for (std::size_t r = 0; r < actor.ranks.size(); ++r)
    if (!actor.ranks[r].connected) return static_cast<std::int32_t>(r);
  return std::nullopt;
}

}  // namespace

Result<std::vector<ControllerEffect>> ControllerCore::step(const ControllerEvent& event, Time now) {
  now_ = now;
  effects_.clear();
  const Result<void> taken = std::visit([this](const auto& e) { return on(e); }, event);
  if (!taken) return taken.error();
  schedule();
  return std::move(effects_);
}

Result<void> ControllerCore::on(const node::NodeUp& up) {
  const auto known = nodes_.find(up.node);
  // A node keeps its GPUs while it is up: ranks hold them by their index.
  if (known != nodes_.end() && known->second.up && known->second.incarnation == up.incarnation &&
      up.gpus.size() < known->second.gpus.size())
    return {};
  NodeRecord& node = nodes_[up.node];
  // The agent that is up keeps the name, because it owns the processes there. A new agent of a node
  // whose old agent died asks again until the loss of the old one is known.
  if (node.up && node.incarnation != up.incarnation) {
    effects_.push_back(RefuseNode{up.node, up.incarnation, node.pid});
    if (std::exchange(node.refused, up.incarnation) != up.incarnation)
      effects_.push_back(Announce{"node", up.node,
                                  "a second agent, pid " + std::to_string(up.pid) +
                                      ", is refused: pid " + std::to_string(node.pid) +
                                      " has this name",
                                  messages::EventLevel::kWarning});
    return {};
  }
  if (!node.up) node.since = now_;
  node.name = up.node;
  node.incarnation = up.incarnation;
  node.total = scheduler::resources({.cpus = up.cpus,
                                     .gpus = static_cast<double>(up.gpus.size()),
                                     .memory_bytes = up.memory_bytes});
  node.gpus.resize(up.gpus.size());  // the shares that living ranks hold stay held
  for (std::size_t i = 0; i < up.gpus.size(); ++i) node.gpus[i].device = up.gpus[i];
  node.gpus_unusable = up.gpus_unusable;
  node.gpus_absent = up.gpus_absent;
  node.nccl = up.nccl;
  node.pid = up.pid;
  node.up = true;
  ++changes_;
  effects_.push_back(Announce{"node", up.node, "up"});
  return {};
}

Result<void> ControllerCore::on(const NodeDown& down) {
  const auto it = nodes_.find(down.node);
  if (it == nodes_.end() || it->second.incarnation != down.incarnation) return {};
  lose_node(down.node);
  return {};
}

void ControllerCore::lose_node(const std::string& node) {
  nodes_.at(node).up = false;
  ++changes_;
  nodes_.at(node).since = now_;
  effects_.push_back(Announce{"node", node, "lost", messages::EventLevel::kError});
  for (auto& [id, job] : jobs_) {
    std::vector<std::pair<std::string, std::int32_t>> gone;
    for (auto& [actor_id, actor] : job.actors)
      for (std::size_t r = 0; r < actor.ranks.size(); ++r)
        if (actor.ranks[r].alive && actor.ranks[r].node == node)
          gone.emplace_back(actor_id, static_cast<std::int32_t>(r));
    for (const auto& [actor_id, rank] : gone)
      if (const auto actor = job.actors.find(actor_id); actor != job.actors.end())
        rank_gone(job, actor->second, rank, scheduler::NodeLost{node});
  }
}

// The reason of a job that trains is a lost node while one of its actors waits for another node.
void ControllerCore::say_node_lost(JobRecord& job) {
  if (job.status.state != JobState::kRunning && job.status.state != JobState::kWarmStart) return;
  const Reason* lost = nullptr;
  for (const std::string& waiting : job.waiting)
    if (const Reason& why = job.actors.at(waiting).status.reason;
        std::holds_alternative<scheduler::NodeLost>(why))
      lost = &why;
  if (lost)
    set(job, job.status.state, *lost);
  else if (std::holds_alternative<scheduler::NodeLost>(job.status.reason))
    set(job, job.status.state, scheduler::Working{});
}

Result<void> ControllerCore::on(const node::RankSpawned& spawned) {
  if (RankRecord* rank = rank_of(spawned.id)) rank->pid = spawned.pid;
  return {};
}

void ControllerCore::note_usage(const node::UsageReport& report) {
  for (const node::RankUsage& usage : report.ranks)
    if (RankRecord* rank = rank_of(usage.id)) rank->usage = usage;
}

Result<void> ControllerCore::on(const node::RankSpawnFailed& failed) {
  if (rank_of(failed.id))
    rank_gone(*job_of(failed.id.actor), *actor_of(failed.id.actor, failed.id.incarnation),
              failed.id.rank, scheduler::SpawnFailed{failed.message});
  return {};
}

Result<void> ControllerCore::on(const node::RankExited& exited) {
  const RankRecord* rank = rank_of(exited.id);
  if (!rank) return {};
  JobRecord& job = *job_of(exited.id.actor);
  ActorRecord& actor = *actor_of(exited.id.actor, exited.id.incarnation);
  Reason why = reason_of(exited, nodes_.at(rank->node).total.memory_bytes);
  if (exited.code == 0 && program_of(job.shape, actor.role)) why = scheduler::Finished{};
  rank_gone(job, actor, exited.id.rank, std::move(why));
  return {};
}

Result<void> ControllerCore::on(const RankConnected& connected) {
  ActorRecord* actor = actor_of(connected.id.actor, connected.id.incarnation);
  RankRecord* rank = rank_of(connected.id);
  if (!actor || !rank || actor->ending) return {};
  rank->connected = true;
  if (actor->status.state == ActorState::kStarting)
    set(*actor, ActorState::kInitializing, initialising(*job_of(connected.id.actor), *actor));
  start_ranks(*job_of(connected.id.actor), *actor);
  return {};
}

Result<void> ControllerCore::on(const messages::RankListening& listening) {
  ActorRecord* actor = actor_of(listening.actor, listening.incarnation);
  if (!actor || actor->ending) return {};
  actor->gang_endpoint = listening.gang_endpoint;
  actor->gang_secret = listening.gang_secret;
  start_ranks(*job_of(listening.actor), *actor);
  return {};
}

// A gang starts when all of its ranks are up, so that no rank waits in its rendezvous for one that
// is still being spawned.
void ControllerCore::start_ranks(JobRecord& job, ActorRecord& actor) {
  if (unlinked_rank(actor)) return;
  if (program_of(job.shape, actor.role)) return start_program(job, actor);
  for (std::size_t r = 0; r < actor.ranks.size(); ++r) {
    RankRecord& rank = actor.ranks[r];
    if (rank.started || (r > 0 && actor.gang_endpoint.empty())) continue;
    rank.started = true;
    const auto index = static_cast<std::int32_t>(r);
    effects_.push_back(SendStart{
        {actor.name, actor.incarnation, index},
        messages::StartRank{.job = job.id,
                            .actor = actor.name,
                            .role = actor.role,
                            .incarnation = actor.incarnation,
                            .rank = index,
                            .ranks = static_cast<std::int32_t>(actor.ranks.size()),
                            .run_dir = job.run_dir,
                            .job_yaml = job.shape.yaml,
                            .gang_endpoint = actor.gang_endpoint,
                            .gang_secret = actor.gang_secret,
                            .pages = planned_pages(job.shape, actor.role),
                            .resume = actor.ever_ready || job.shape.resume_dir.has_value()}});
  }
}

Result<void> ControllerCore::on(const messages::RankReady& ready) {
  ActorRecord* actor = actor_of(ready.actor, ready.incarnation);
  RankRecord* rank = rank_of({ready.actor, ready.incarnation, ready.rank});
  if (!rank || actor->ending || actor->status.state != ActorState::kInitializing) return {};
  rank->ready = true;
  const auto count = std::count_if(actor->ranks.begin(), actor->ranks.end(),
                                   [](const RankRecord& r) { return r.ready; });
  if (count == std::ssize(actor->ranks)) {
    actor->ready_since = now_;
    actor->ever_ready = true;
    set(*actor, ActorState::kReady, scheduler::Working{});
  } else {
    set(*actor, actor->status.state,
        scheduler::WaitingForGang{static_cast<std::int32_t>(count),
                                  static_cast<std::int32_t>(actor->ranks.size())});
  }
  count_ready(*job_of(ready.actor));
  return {};
}

Result<void> ControllerCore::on(const messages::RankFailed& failed) {
  ActorRecord* actor = actor_of(failed.actor, failed.incarnation);
  if (!actor || actor->ending) return {};
  if (scheduler::worth_another_start(failed.code, actor->ever_ready)) {
    // The end of the processes starts the actor again; if they have ended, it waits for that.
    Reason why = scheduler::RankError{failed.message};
    if (failed.code == ErrorCode::kOutOfMemory) why = scheduler::OutOfMemory{failed.message};
    if (alive(*actor)) kill(*actor, std::move(why), kStopGraceMs);
    return {};
  }
  if (alive(*actor)) actor->ending = scheduler::JobFailed{failed.message};
  effects_.push_back(
      Announce{"actor", failed.actor, "failed: " + failed.message, messages::EventLevel::kError});
  fail_job(*job_of(failed.actor), failed.actor + ": " + failed.message);
  return {};
}

Result<void> ControllerCore::on(const RankHung& hung) {
  ActorRecord* actor = actor_of(hung.id.actor, hung.id.incarnation);
  if (!actor || !alive(*actor) || actor->ending) return {};
  const bool unlinked = hung.silent_s <= 0;
  if (unlinked && program_of(job_of(hung.id.actor)->shape, actor->role))
    link_lost(*actor);
  else
    kill(*actor, scheduler::Hung{hung.silent_s}, 0);
  return {};
}

void ControllerCore::kill(ActorRecord& actor, Reason why, std::int64_t grace_ms) {
  if (!actor.ending) actor.ending = std::move(why);
  for (std::size_t r = 0; r < actor.ranks.size(); ++r)
    if (actor.ranks[r].alive)
      effects_.push_back(KillRankOn{actor.ranks[r].node,
                                    {actor.name, actor.incarnation, static_cast<std::int32_t>(r)},
                                    grace_ms});
  if (alive(actor) && actor.status.state != ActorState::kStopping)
    set(actor, ActorState::kStopping, *actor.ending);
}

void ControllerCore::rank_gone(JobRecord& job, ActorRecord& actor, std::int32_t rank, Reason why) {
  RankRecord& record = actor.ranks[static_cast<std::size_t>(rank)];
  if (!std::exchange(record.alive, false)) return;
  give_back(record, job.shape.per_rank.at(actor.role));
  const bool first = std::count_if(actor.ranks.begin(), actor.ranks.end(),
                                   [](const RankRecord& r) { return !r.alive; }) == 1;
  if (actor.ending && explains(why, *actor.ending)) actor.ending = why;
  if (first) {
    if (!actor.ending) actor.ending = why;
    const std::string cause = scheduler::message(*actor.ending, now_);
    if (program_of(job.shape, actor.role))
      effects_.push_back(FailAsks{{actor.name, actor.incarnation, rank}, cause});
    else
      effects_.push_back(
          TellExchange{job.id, messages::ActorDown{actor.name, actor.incarnation, cause}});
  }
  if (alive(actor))
    kill(actor, scheduler::GangMemberDied{rank}, 0);
  else
    actor_gone(job, actor);
}

void ControllerCore::actor_gone(JobRecord& job, ActorRecord& actor) {
  const Reason why = *std::exchange(actor.ending, std::nullopt);
  const std::string cause = scheduler::message(why, now_);
  effects_.push_back(Announce{"actor", actor.name, "ended: " + cause, level_of(why)});
  actor.gang_endpoint.clear();
  actor.gang_secret.clear();
  if (job.outcome || scheduler::is_final(job.status.state)) {
    set(actor, ActorState::kStopped, scheduler::JobEnded{});
    return finish_job_if_gone(job);
  }
  const bool scaled_down = actor.status.state == ActorState::kDraining ||
                           std::holds_alternative<scheduler::ScaleDown>(why);
  if (scaled_down || !wanted(job, actor)) {
    set(actor, ActorState::kStopped, scheduler::ScaleDown{});
    job.ladder.forget(actor.name);
    const bool again = wanted(job, actor);  // it was scaled up while this incarnation was ending
    const messages::Role role = actor.role;
    const std::int32_t index = actor.index;
    remove_actor(job, actor.name);
    if (again) add_actor(job, role, index);
    return count_finished(job);
  }
  if (std::holds_alternative<scheduler::Finished>(why)) return finish_actor(job, actor);
  if (std::holds_alternative<scheduler::JobFailed>(why))  // a restart would fail the same way
    return set(actor, ActorState::kFailed, why);
  restart(job, actor, why);
}

void ControllerCore::restart(JobRecord& job, ActorRecord& actor, const Reason& why) {
  const std::string cause = scheduler::message(why, now_);
  const scheduler::RestartBudget::Uptime uptime{actor.ready_since.value_or(now_), now_};
  actor.ready_since.reset();
  const auto decision =
      job.ladder.died({.actor = actor.name,
                       .role = name(actor.role),
                       .cause = cause,
                       .uptime = uptime,
                       .memory_kill = std::holds_alternative<scheduler::OOMKilled>(why)},
                      rng_);
  actor.crash_loop = job.ladder.loop_of(actor.name);
  const auto back_off = [&](ActorRecord& whom, const scheduler::Restart& restart) {
    whom.restart_at = restart.until;
    set(whom, ActorState::kBackoff,
        scheduler::Backoff{restart.until, restart.n, restart.max, cause});
    effects_.push_back(WakeAt{restart.until});
  };
  if (const auto* one = std::get_if<scheduler::RestartLadder::RestartActor>(&decision)) {
    back_off(actor, one->restart);
  } else if (const auto* all = std::get_if<scheduler::RestartLadder::RestartRole>(&decision)) {
    back_off(actor, all->restart);
    for (auto& [other_name, other] : job.actors)
      if (other.role == actor.role && alive(other))
        kill(other, scheduler::RestartsExhausted{all->restart.n, all->root_cause}, kStopGraceMs);
  } else if (std::holds_alternative<scheduler::RestartLadder::FailJobForMemory>(decision)) {
    set(actor, ActorState::kFailed, why);
    fail_job(job, actor.name + " was " + cause + ", for the second time in a row; " +
                      memory_advice(actor.role));
  } else {
    const auto& end = std::get<scheduler::RestartLadder::FailJob>(decision);
    set(actor, ActorState::kFailed, scheduler::RestartsExhausted{end.restarts, end.root_cause});
    fail_job(job, actor.name + " died too often; the first cause: " + end.root_cause);
  }
}

Result<void> ControllerCore::on(const messages::JobProgress& progress) {
  const auto it = jobs_.find(progress.job);
  if (it == jobs_.end() || it->second.outcome) return {};
  JobRecord& job = it->second;
  job.message = progress.message;
  effects_.push_back(Announce{"job", job.id, progress.message});
  const JobState from = job.status.state;
  if (progress.phase == messages::JobPhase::kWarmStart &&
      scheduler::allowed(from, JobState::kWarmStart))
    set(job, JobState::kWarmStart, scheduler::Working{});
  if (progress.phase == messages::JobPhase::kRunning &&
      scheduler::allowed(from, JobState::kRunning))
    set(job, JobState::kRunning, scheduler::Working{});
  if (progress.phase == messages::JobPhase::kStopping &&
      scheduler::allowed(from, JobState::kStopping))
    set(job, JobState::kStopping, scheduler::CancelledByUser{});
  return {};
}

Result<void> ControllerCore::on(const messages::ActorDrained& drained) {
  ActorRecord* actor = actor_of(drained.actor, drained.incarnation);
  if (actor && actor->status.state == ActorState::kDraining)
    kill(*actor, scheduler::ScaleDown{}, kStopGraceMs);
  return {};
}

Result<void> ControllerCore::on(const messages::JobEnded& ended) {
  const auto it = jobs_.find(ended.job);
  if (it != jobs_.end() && !it->second.outcome) job_ended(it->second, ended);
  return {};
}

void ControllerCore::job_ended(JobRecord& job, const messages::JobEnded& ended) {
  job.outcome = ended;
  ++changes_;
  const bool failed = ended.outcome == messages::JobOutcome::kFailed;
  effects_.push_back(Announce{"job", job.id, ended.reason,
                              failed ? messages::EventLevel::kError : messages::EventLevel::kInfo});
  stop_job(job);
}

// Ends actors whose processes live and have not reported, or drained, in time.
Result<void> ControllerCore::on(const Tick&) {
  for (auto& [id, job] : jobs_)
    for (auto& [actor_id, actor] : job.actors) {
      end_overdue_program(job, actor);
      const bool starts = actor.status.state == ActorState::kStarting ||
                          actor.status.state == ActorState::kInitializing;
      if (!starts || now_ < actor.report_deadline || actor.ending) continue;
      if (const auto missing = unlinked_rank(actor))
        kill(actor,
             scheduler::SpawnFailed{"rank " + std::to_string(*missing) + " did not report within " +
                                    std::to_string(kReportWait / std::chrono::seconds(1)) +
                                    " s of its start"},
             0);
    }
  return {};
}

void ControllerCore::fail_job(JobRecord& job, const std::string& why) {
  end_job(job, messages::JobOutcome::kFailed, why);
}

void ControllerCore::end_job(JobRecord& job, messages::JobOutcome outcome, const std::string& why) {
  if (job.outcome) return;
  if (trains(job.shape))
    effects_.push_back(TellExchange{job.id, messages::EndJob{outcome, why}});
  else
    job_ended(job, messages::JobEnded{job.id, outcome, why});
}

void ControllerCore::stop_job(JobRecord& job) {
  Reason why = exchange::reason_of(job.outcome->outcome, job.outcome->reason);
  if (job.outcome->outcome == messages::JobOutcome::kSucceeded && !trains(job.shape))
    why = scheduler::Finished{.job = true};
  set(job, JobState::kStopping, why);  // a job that is being cancelled may end for another cause
  for (auto& [actor_id, actor] : job.actors) {
    if (alive(actor))
      stop_actor(job, actor, scheduler::JobEnded{});
    else if (!scheduler::is_final(actor.status.state))
      set(actor, ActorState::kStopped, scheduler::JobEnded{});
  }
  finish_job_if_gone(job);
}

void ControllerCore::finish_job_if_gone(JobRecord& job) {
  if (job.status.state != JobState::kStopping) return;
  for (const auto& [actor_id, actor] : job.actors)
    if (alive(actor)) return;
  Reason why = job.status.reason;
  switch (job.outcome->outcome) {
    case messages::JobOutcome::kSucceeded:
      set(job, JobState::kSucceeded, why);
      break;
    case messages::JobOutcome::kFailed:
      set(job, JobState::kFailed, why);
      break;
    case messages::JobOutcome::kCancelled:
      set(job, JobState::kCancelled, why);
      break;
  }
  if (!trains(job.shape) || !job.outcome->has_result) effects_.push_back(WriteResult{job.id});
  effects_.push_back(CloseExchange{job.id});
}

void ControllerCore::set(ActorRecord& actor, ActorState to, Reason reason) {
  const ActorState from = actor.status.state;
  scheduler::enter(actor.status, to, std::move(reason), now_);
  if (from == to) return;
  JobRecord& job = jobs_.at(actor.job);
  job.ready += (to == ActorState::kReady ? 1 : 0) - (from == ActorState::kReady ? 1 : 0);
  job.stopped += to == ActorState::kStopped ? 1 : 0;  // which is final
  const bool waits = to == ActorState::kQueued || to == ActorState::kBackoff;
  if (waits) job.waiting.insert(actor.name);
  if (waits || job.waiting.erase(actor.name) > 0) ++changes_;
  effects_.push_back(
      Announce{"actor", actor.name,
               std::string(name(to)) + ": " + scheduler::message(actor.status.reason, now_),
               level_of(actor.status.reason)});
}

void ControllerCore::set(JobRecord& job, JobState to, Reason reason) {
  const bool changed = job.status.state != to;
  scheduler::enter(job.status, to, std::move(reason), now_);
  changes_ += changed ? 1 : 0;
  if (changed)
    effects_.push_back(Announce{
        "job", job.id, std::string(name(to)) + ": " + scheduler::message(job.status.reason, now_),
        level_of(job.status.reason)});
}

ActorRecord& ControllerCore::add_actor(JobRecord& job, const messages::Role& role,
                                       std::int32_t index) {
  const std::string id = actor_name(job.id, role, index);
  job.waiting.insert(id);
  ++changes_;
  return job.actors
      .emplace(id, ActorRecord{.name = id,
                               .job = job.id,
                               .role = role,
                               .index = index,
                               .status = {.state = ActorState::kQueued, .since = now_},
                               .created = now_})
      .first->second;
}

// `actor` is passed by value: a caller may pass the name in the record that is erased.
void ControllerCore::remove_actor(JobRecord& job, std::string actor) {
  job.stopped -= job.actors.at(actor).status.state == ActorState::kStopped ? 1 : 0;
  job.waiting.erase(actor);
  job.actors.erase(actor);
}

JobRecord* ControllerCore::job_of(const std::string& actor) {
  const auto it = jobs_.find(actor.substr(0, actor.find('/')));
  return it == jobs_.end() ? nullptr : &it->second;
}

ActorRecord* ControllerCore::actor_of(const std::string& actor, Incarnation incarnation) {
  JobRecord* job = job_of(actor);
  if (!job) return nullptr;
  const auto it = job->actors.find(actor);
  return it != job->actors.end() && it->second.incarnation == incarnation ? &it->second : nullptr;
}

RankRecord* ControllerCore::rank_of(const node::RankId& id) {
  ActorRecord* actor = actor_of(id.actor, id.incarnation);
  if (!actor || id.rank < 0 || id.rank >= std::ssize(actor->ranks)) return nullptr;
  return &actor->ranks[static_cast<std::size_t>(id.rank)];
}

bool ControllerCore::idle() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& job) { return scheduler::is_final(job.second.status.state); });
}

}  // namespace tandem::controller
