// A rank is spawned, connects, is told what to be, and reports that it is ready. An actor is told
// once all of its ranks are connected, and is ready when all of them are. A rank that fails, hangs
// or says nothing has its actor ended; actor_end.h decides what follows after that.
#include "actors/controller/ranks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "actors/controller/actor_end.h"
#include "actors/controller/demands.h"
#include "actors/controller/job_end.h"
#include "actors/controller/job_progress.h"
#include "actors/controller/programs.h"
#include "actors/controller/stopping.h"
#include "actors/controller/transitions.h"
#include "actors/controller/upkeep.h"
#include "scheduler/fleet/restart_budget.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::Reason;

namespace {

std::optional<std::int32_t> unlinked_rank(const ActorRecord& actor) {
  for (std::size_t r = 0; r < actor.ranks.size(); ++r)
    if (!actor.ranks[r].connected) return static_cast<std::int32_t>(r);
  return std::nullopt;
}

// The reason for which an actor whose processes are connected is not ready yet.
Reason initialising(const JobRecord& job, const ActorRecord& actor) {
  if (program_of(job.shape, actor.role)) return scheduler::WaitingForProgram{};
  if (holds_model(actor.role)) return scheduler::LoadingModel{};
  return scheduler::StartingVerifier{};
}

// The nodes of a gang, as text; empty where it has one.
std::string several_nodes(const ActorRecord& actor) {
  std::set<std::string> nodes;
  for (const RankRecord& rank : actor.ranks) nodes.insert(rank.node);
  std::string text;
  for (const std::string& node : nodes) text += (text.empty() ? "" : ", ") + node;
  return nodes.size() > 1 ? text : "";
}

// Whether the gang that is about to start may send its gradients between hosts. Its ranks encrypt
// them, unless the network is trusted; but those on GPUs use NCCL, which cannot. If not, the job
// fails.
bool may_talk(Turn& turn, ActorRecord& actor) {
  const std::string nodes = several_nodes(actor);
  if (nodes.empty() || actor.ranks.front().started) return true;
  if (turn.state.rules.plaintext_gang) {
    turn.announce(actor, "its ranks on " + nodes + " exchange gradients unencrypted, as allowed",
                  messages::EventLevel::kWarning);
    return true;
  }
  if (actor.ranks.front().gpus.empty()) return true;
  const std::string why = "the ranks of " + actor.name + " are on " + nodes +
                          ", and NCCL would carry their gradients between these hosts unencrypted: "
                          "start the controller with --allow-plaintext-gang where you trust that "
                          "network, or let one host have room for all of them";
  actor.ending = scheduler::JobFailed{why};
  turn.announce(actor, "failed: " + why, messages::EventLevel::kError);
  fail_job(turn, *turn.state.job_of(actor.name), why);
  return false;
}

// A gang starts when all of its ranks are up, so that no rank waits in its rendezvous for one that
// is still being spawned. May end the job.
void start_ranks(Turn& turn, const JobRecord& job, ActorRecord& actor) {
  if (unlinked_rank(actor)) return;
  if (program_of(job.shape, actor.role)) return start_program(turn, job, actor);
  if (!may_talk(turn, actor)) return;
  for (std::size_t r = 0; r < actor.ranks.size(); ++r) {
    RankRecord& rank = actor.ranks[r];
    if (rank.started || (r > 0 && actor.gang_endpoint.empty())) continue;
    rank.started = true;
    const auto index = static_cast<std::int32_t>(r);
    turn.send(SendStart{
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
                            .resume = actor.ever_ready || job.shape.resume_dir.has_value(),
                            .gang_plain = turn.state.rules.plaintext_gang}});
  }
}

// A process that ends loses its link before its end is known: to kill it at once would hide the
// cause of its death.
void link_lost(Turn& turn, ActorRecord& actor) {
  actor.report_deadline = turn.now + std::chrono::milliseconds(kStopGraceMs);
  check_at(turn, actor, actor.report_deadline);
}

// The agent of the rank has died or is silent, so that nobody can end the process or report its
// end.
bool has_no_agent(const Turn& turn, const RankRecord& rank) {
  return !turn.state.has_agent(rank.node);
}

// A process that hangs, or whose host is cut off, does not hear that its link is cut. It may live
// until an agent tells, or its node is lost for good. Of a job that is over nothing could meet it.
bool may_not_have_heard(const JobRecord& job, const RankRecord& rank) {
  return rank.end_unheard && !job.outcome;
}

// The rank may be cut off and work on: its node is waited for.
bool is_cut_off(const Turn& turn, const RankRecord& rank) {
  return rank.connected && rank.silent && has_no_agent(turn, rank);
}

// Ends an actor that lives on without its link. May erase the record of the actor.
void end_unlinked(Turn& turn, JobRecord& job, ActorRecord& actor) {
  if (!alive(actor) || turn.now < actor.report_deadline) return;
  const ActorId id{actor.name, actor.incarnation};
  for (std::size_t r = 0; r < actor.ranks.size(); ++r) {
    const RankRecord& rank = actor.ranks[r];
    const bool heard = rank.connected && !rank.silent;
    if (!rank.alive || !rank.started || heard || is_cut_off(turn, rank)) continue;
    if (has_no_agent(turn, rank)) {  // which could end it, or the others of its gang
      if (may_not_have_heard(job, rank)) continue;
      rank_gone(turn, job, actor, static_cast<std::int32_t>(r), scheduler::NodeLost{rank.node});
      if (!turn.state.actor_of(id)) return;
      continue;
    }
    if (!actor.ending) return kill(turn, actor, scheduler::Hung{}, 0);
  }
}

// The rank of an actor that starts has no link, and its time is over.
Reason why_unlinked(const ActorRecord& actor, std::int32_t rank) {
  if (comes_back(actor)) return scheduler::Hung{.unreturned_s = seconds(kReportWait)};
  if (actor.ranks[static_cast<std::size_t>(rank)].started) return scheduler::Hung{};  // it had one
  return scheduler::SpawnFailed{"rank " + std::to_string(rank) + " did not report within " +
                                std::to_string(kReportWait / std::chrono::seconds(1)) +
                                " s of its start"};
}

void end_unreported(Turn& turn, ActorRecord& actor) {
  const bool starts = actor.status.state == ActorState::kStarting ||
                      actor.status.state == ActorState::kInitializing;
  if (!starts || turn.now < actor.report_deadline || actor.ending) return;
  if (turn.state.journal_fails) {  // its start may be held back until the journal has it
    actor.report_deadline = turn.now + kReportWait;
    return check_at(turn, actor, actor.report_deadline);
  }
  if (const auto missing = unlinked_rank(actor))
    kill(turn, actor, why_unlinked(actor, *missing), 0);
}

}  // namespace

void take(Turn& turn, const node::RankSpawned& spawned) {
  if (RankRecord* rank = turn.state.rank_of(spawned.id)) rank->pid = spawned.pid;
}

void take(Turn& turn, const RankConnected& connected) {
  ActorRecord* actor = turn.state.actor_of({connected.id.actor, connected.id.incarnation});
  RankRecord* rank = turn.state.rank_of(connected.id);
  if (!actor || !rank || actor->ending) return;
  const JobRecord& job = *turn.state.job_of(connected.id.actor);
  // An actor that trains has lost messages with its former link, so that it cannot go on.
  const bool again = rank->alive && rank->started && !rank->connected;
  if (again && !program_of(job.shape, actor->role)) return kill(turn, *actor, scheduler::Hung{}, 0);
  rank->connected = true;
  rank->silent = false;
  const bool others_come_back = comes_back(*actor) && unlinked_rank(*actor);
  if (actor->status.state == ActorState::kStarting && !others_come_back)
    enter(turn, *actor, ActorState::kInitializing, initialising(job, *actor));
  start_ranks(turn, job, *actor);
}

void take(Turn& turn, const messages::RankListening& listening) {
  ActorRecord* actor = turn.state.actor_of({listening.actor, listening.incarnation});
  if (!actor || actor->ending) return;
  actor->gang_endpoint = listening.gang_endpoint;
  actor->gang_secret = listening.gang_secret;
  start_ranks(turn, *turn.state.job_of(listening.actor), *actor);
}

void take(Turn& turn, const messages::RankReady& ready) {
  ActorRecord* actor = turn.state.actor_of({ready.actor, ready.incarnation});
  RankRecord* rank = turn.state.rank_of({ready.actor, ready.incarnation, ready.rank});
  if (!rank || actor->ending || actor->status.state != ActorState::kInitializing) return;
  rank->ready = true;
  if (ready.rank == 0) actor->sandbox = ready.sandbox;
  const auto count = std::count_if(actor->ranks.begin(), actor->ranks.end(),
                                   [](const RankRecord& r) { return r.ready; });
  if (count == std::ssize(actor->ranks)) {
    actor->ready_since = turn.now;
    actor->ever_ready = true;
    turn.state.job_of(ready.actor)->ladder.ready(ready.actor);
    enter(turn, *actor, ActorState::kReady, at_work(turn.state, *actor));
  } else {
    enter(turn, *actor, actor->status.state,
          scheduler::WaitingForGang{static_cast<std::int32_t>(count),
                                    static_cast<std::int32_t>(actor->ranks.size())});
  }
  count_ready(turn, *turn.state.job_of(ready.actor));
}

void take(Turn& turn, const messages::RankFailed& failed) {
  ActorRecord* actor = turn.state.actor_of({failed.actor, failed.incarnation});
  if (!actor || actor->ending) return;
  const bool waits_for_disk = failed.disk && has_worked(*turn.state.job_of(failed.actor), *actor);
  if (waits_for_disk || scheduler::worth_another_start(failed.code, actor->ever_ready)) {
    // The end of the processes starts the actor again; if they have ended, it waits for that.
    Reason why = scheduler::RankError{failed.message, waits_for_disk};
    if (failed.code == ErrorCode::kOutOfMemory) why = scheduler::OutOfMemory{failed.message};
    if (alive(*actor)) kill(turn, *actor, std::move(why), kStopGraceMs);
    return;
  }
  if (alive(*actor)) actor->ending = scheduler::JobFailed{failed.message};
  turn.announce(*actor, "failed: " + failed.message, messages::EventLevel::kError);
  fail_job(turn, *turn.state.job_of(failed.actor), failed.actor + ": " + failed.message);
}

void take(Turn& turn, const RankHung& hung) {
  ActorRecord* actor = turn.state.actor_of({hung.id.actor, hung.id.incarnation});
  const bool unlinked = hung.silent_s <= 0;
  // Also of one that has ended here: it may be found to live (adoption.h).
  if (RankRecord* rank = turn.state.rank_of(hung.id); rank && unlinked)
    rank->connected = rank->silent = false;
  if (!actor || !alive(*actor)) return;
  const RankRecord* const rank = turn.state.rank_of(hung.id);
  if (actor->ending && !(unlinked && rank && has_no_agent(turn, *rank))) return;
  if (unlinked)
    link_lost(turn, *actor);
  else
    kill(turn, *actor, scheduler::Hung{hung.silent_s, hung.phase, hung.longest_s}, 0);
}

void take(Turn& turn, const RankSilent& event) {
  RankRecord* const rank = turn.state.rank_of(event.id);
  if (!rank || !rank->connected || rank->silent == event.silent) return;
  rank->silent = event.silent;
  ActorRecord& actor = *turn.state.actor_of({event.id.actor, event.id.incarnation});
  const JobRecord& job = *turn.state.job_of(event.id.actor);
  // The exchange speaks with rank 0.
  if (event.id.rank == 0 && !program_of(job.shape, actor.role) && !job.outcome)
    turn.send(
        TellExchange{job.id, messages::ActorSilent{{actor.name, actor.incarnation}, event.silent}});
  if (!event.silent || actor.status.state == ActorState::kStarting) return;
  actor.report_deadline = turn.now + kRankSilenceMax;
  check_at(turn, actor, actor.report_deadline);
}

void take(Turn& turn, const Tick&) {
  give_up_unreturned(turn);
  give_up_agents(turn);
  for (const std::string& name : due(turn.state.found.actor_checks, turn.now)) {
    JobRecord* const job = turn.state.job_of(name);
    if (!job) continue;
    const auto actor = job->actors.find(name);
    if (actor == job->actors.end()) continue;
    end_overdue_program(turn, *job, actor->second);
    end_unreported(turn, actor->second);
    end_unlinked(turn, *job, actor->second);
  }
}

}  // namespace tandem::controller
