#include "actors/controller/actor_end.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "actors/controller/automatic_cordon.h"
#include "actors/controller/job_end.h"
#include "actors/controller/job_progress.h"
#include "actors/controller/rank_end.h"
#include "actors/controller/room.h"
#include "actors/controller/stopping.h"
#include "actors/controller/transitions.h"
#include "actors/controller/unwanted.h"
#include "actors/controller/upkeep.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::Reason;

namespace {

using namespace std::chrono_literals;

// One that was preempted sooner than this after it was ready starts again after a pause, since
// whatever ends it may end each at once. It counts as no death all the same.
constexpr Duration kPreemptedEarly = 1min;
constexpr Duration kPreemptedPause = 15s;

// The incarnation is over. A job that its user has cancelled is not remembered any more.
void remember_end(Turn& turn, const ActorRecord& actor, ActorEnded end) {
  if (!turn.state.durable.knows(actor.job)) return;
  end.actor = actor.name;
  end.incarnation = actor.incarnation;
  turn.remember(std::move(end));
}

// The program of the actor has ended with code 0.
void finish_actor(Turn& turn, JobRecord& job, ActorRecord& actor) {
  remember_end(turn, actor, {.how = ActorEnd::kFinished});
  // The actor passes through Stopping, as every actor does that was at work.
  if (actor.status.state == ActorState::kReady || actor.status.state == ActorState::kBusy)
    enter(turn, actor, ActorState::kStopping, scheduler::Finished{});
  enter(turn, actor, ActorState::kStopped, scheduler::Finished{});
  job.ladder.forget(actor.name);
  actor.crash_loop = {};
  count_ready(turn, job);
  count_finished(turn, job);
}

void wait_for_disk(Turn& turn, ActorRecord& actor,
                   const scheduler::RestartLadder::WaitForDisk& wait, const std::string& cause) {
  remember_end(turn, actor, {.how = ActorEnd::kReplaced});
  actor.restart_at = wait.until;
  enter(turn, actor, ActorState::kBackoff,
        scheduler::WaitingForDisk{wait.until, wait.give_up, cause});
  turn.send(WakeAt{wait.until});
}

void back_off(Turn& turn, ActorRecord& actor, const scheduler::Restart& next,
              const std::string& cause) {
  actor.restart_at = next.until;
  enter(turn, actor, ActorState::kBackoff, scheduler::Backoff{next.until, next.n, next.max, cause});
  turn.send(WakeAt{next.until});
}

// Follows the restart ladder: this actor, or its whole role, starts again after a pause, or the
// job fails.
void restart(Turn& turn, JobRecord& job, ActorRecord& actor, const Reason& why) {
  const std::string cause = scheduler::message(why, turn.now);
  const scheduler::RestartBudget::Uptime uptime{actor.ready_since.value_or(turn.now), turn.now};
  actor.ready_since.reset();
  const bool memory_kill = std::holds_alternative<scheduler::OOMKilled>(why);
  const auto decision = job.ladder.died({.actor = actor.name,
                                         .role = name(actor.role),
                                         .cause = cause,
                                         .uptime = uptime,
                                         .memory_kill = memory_kill,
                                         .disk = is_of_disk(why)},
                                        turn.state.rng);
  actor.crash_loop = job.ladder.loop_of(actor.name);
  if (const auto* wait = std::get_if<scheduler::RestartLadder::WaitForDisk>(&decision))
    return wait_for_disk(turn, actor, *wait, cause);
  remember_end(turn, actor,
               {.how = ActorEnd::kDied,
                .cause = cause,
                .started = uptime.started,
                .died = uptime.died,
                .memory_kill = memory_kill});
  if (const auto* one = std::get_if<scheduler::RestartLadder::RestartActor>(&decision)) {
    back_off(turn, actor, one->restart, cause);
  } else if (const auto* all = std::get_if<scheduler::RestartLadder::RestartRole>(&decision)) {
    back_off(turn, actor, all->restart, cause);
    const auto [from, behind] = names_below(job.id + "/" + name(actor.role));
    for (auto at = job.actors.lower_bound(from); at != job.actors.lower_bound(behind); ++at)
      if (ActorRecord& other = at->second; alive(other))
        kill(turn, other, scheduler::RestartsExhausted{all->restart.n, all->root_cause},
             kStopGraceMs);
  } else if (std::holds_alternative<scheduler::RestartLadder::FailJobForMemory>(decision)) {
    enter(turn, actor, ActorState::kFailed, why);
    fail_job(turn, job,
             actor.name + " was " + cause + ", for the second time in a row; " +
                 memory_advice(actor.role));
  } else {
    const auto& end = std::get<scheduler::RestartLadder::FailJob>(decision);
    enter(turn, actor, ActorState::kFailed,
          scheduler::RestartsExhausted{end.restarts, end.root_cause});
    fail_job(turn, job, actor.name + " died too often; the first cause: " + end.root_cause);
  }
}

// The actor has left a node that is drained, in whatever way, or was preempted, and waits for
// room, after a pause if there is one. It counts as no death.
void move(Turn& turn, ActorRecord& actor, const Reason& why, std::optional<Time> pause_until) {
  remember_end(turn, actor, {.how = ActorEnd::kReplaced});
  actor.moved_off.clear();
  actor.preempted = false;
  actor.ready_since.reset();
  if (actor.status.state != ActorState::kStopping) enter(turn, actor, ActorState::kStopping, why);
  actor.restart_at = pause_until;
  enter(turn, actor, pause_until ? ActorState::kBackoff : ActorState::kQueued, why);
  if (pause_until) turn.send(WakeAt{*pause_until});
}

void replace_preempted(Turn& turn, ActorRecord& actor) {
  std::optional<Time> until;
  Reason why = scheduler::Preempted{};
  if (!actor.ready_since || turn.now - *actor.ready_since < kPreemptedEarly) {
    until = turn.now + kPreemptedPause;
    why = scheduler::PreemptedSoon{*until};
    turn.announce(actor, "was ready for less than a minute: it starts again in 15 s");
  }
  move(turn, actor, why, until);
}

// Nobody here has told it to end, and it has met no failure: it ended by a signal, by its own exit
// after one, or by the loss of its node.
bool was_preempted(const JobRecord& job, const ActorRecord& actor, const Reason& why) {
  if (actor.preempted) return !std::holds_alternative<scheduler::JobFailed>(why);
  if (!job.shape.preemptible.contains(actor.role)) return false;
  const auto* const code = std::get_if<scheduler::ExitCode>(&why);
  const auto* const by_signal = std::get_if<scheduler::ExitSignal>(&why);
  return std::holds_alternative<scheduler::NodeLost>(why) || (code && code->code == 0) ||
         (by_signal && by_signal->signal == SIGTERM);
}

void fail_actor(Turn& turn, ActorRecord& actor, const Reason& why) {
  remember_end(turn, actor, {.how = ActorEnd::kDropped});
  enter(turn, actor, ActorState::kFailed, why);
}

// Called when the last process of an incarnation has ended; may erase the record of the actor.
void actor_gone(Turn& turn, JobRecord& job, ActorRecord& actor) {
  const Reason why = *std::exchange(actor.ending, std::nullopt);
  turn.announce(actor, "ended: " + scheduler::message(why, turn.now), level_of(why));
  actor.gang_endpoint.clear();
  actor.gang_secret.clear();
  if (job.outcome || scheduler::is_final(job.status.state)) {
    remember_end(turn, actor, {.how = ActorEnd::kDropped});
    enter(turn, actor, ActorState::kStopped, scheduler::JobEnded{});
    return finish_job_if_gone(turn, job);
  }
  if (!actor.moved_off.empty() && wanted(job, actor)) {
    if (std::holds_alternative<scheduler::JobFailed>(why))  // another node does not mend that
      return fail_actor(turn, actor, why);
    return move(turn, actor, scheduler::NodeDrained{actor.moved_off}, std::nullopt);
  }
  if (wanted(job, actor) && was_preempted(job, actor, why)) return replace_preempted(turn, actor);
  const bool scaled_down = actor.status.state == ActorState::kDraining ||
                           std::holds_alternative<scheduler::ScaleDown>(why);
  if (scaled_down || !wanted(job, actor)) {
    remember_end(turn, actor, {.how = ActorEnd::kDropped});
    enter(turn, actor, ActorState::kStopped, scheduler::ScaleDown{});
    job.ladder.forget(actor.name);
    const bool again = wanted(job, actor);  // it was scaled up while this incarnation was ending
    const messages::Role role = actor.role;
    const std::int32_t index = actor.index;
    remove_actor(turn, job, actor.name);
    if (again) add_actor(turn, job, role, index);
    return count_finished(turn, job);
  }
  if (std::holds_alternative<scheduler::Finished>(why)) return finish_actor(turn, job, actor);
  if (std::holds_alternative<scheduler::JobFailed>(why))  // a restart would fail the same way
    return fail_actor(turn, actor, why);
  restart(turn, job, actor, why);
}

bool is_lost(const ActorRecord& actor, const RankRecord& rank, Lost which) {
  if (which == Lost::kAll) return true;
  if (!rank.connected) return which == Lost::kGivenUp || !comes_back(actor);
  return which != Lost::kUnlinked && rank.silent;
}

}  // namespace

bool comes_back(const ActorRecord& actor) {
  return actor.status.state == ActorState::kStarting &&
         std::holds_alternative<scheduler::Returning>(actor.status.reason);
}

void rank_gone(Turn& turn, JobRecord& job, ActorRecord& actor, std::int32_t rank, Reason why) {
  RankRecord& record = actor.ranks[static_cast<std::size_t>(rank)];
  if (!std::exchange(record.alive, false)) return;
  count_living(job, actor.role, -1);
  give_back(turn, record);
  const bool first = std::count_if(actor.ranks.begin(), actor.ranks.end(),
                                   [](const RankRecord& r) { return !r.alive; }) == 1;
  if (actor.ending && explains(why, *actor.ending)) actor.ending = why;
  if (first) {
    if (!actor.ending) actor.ending = why;
    if (!job.outcome && !scheduler::is_final(job.status.state))
      note_death(turn, job, actor, record, *actor.ending);
    const std::string cause = scheduler::message(*actor.ending, turn.now);
    if (program_of(job.shape, actor.role))
      turn.send(FailAsks{{actor.name, actor.incarnation, rank}, cause});
    else if (!job.outcome)
      turn.send(TellExchange{
          job.id, messages::ActorDown{
                      {actor.name, actor.incarnation}, cause, may_be_of_a_prompt(*actor.ending)}});
  }
  if (alive(actor))
    kill(turn, actor, scheduler::GangMemberDied{rank}, 0);
  else
    actor_gone(turn, job, actor);
}

std::vector<node::RankId> ranks_left(ControllerState& state, const std::string& node, Lost lost) {
  std::vector<node::RankId> ranks;
  for (const std::string& name : actors_on(state, node)) {
    const ActorRecord& actor = state.job_of(name)->actors.at(name);
    for (std::size_t r = 0; r < actor.ranks.size(); ++r)
      if (const RankRecord& rank = actor.ranks[r];
          rank.alive && rank.node == node && !is_lost(actor, rank, lost))
        ranks.push_back({name, actor.incarnation, static_cast<std::int32_t>(r)});
  }
  return ranks;
}

void lose_ranks(Turn& turn, const std::string& node, Lost which) {
  std::vector<node::RankId> gone;
  for (const std::string& name : actors_on(turn.state, node)) {
    const ActorRecord& actor = turn.state.job_of(name)->actors.at(name);
    for (std::size_t r = 0; r < actor.ranks.size(); ++r)
      if (const RankRecord& rank = actor.ranks[r];
          rank.alive && rank.node == node && is_lost(actor, rank, which)) {
        gone.push_back({name, actor.incarnation, static_cast<std::int32_t>(r)});
        if (rank.connected) turn.send(CutLink{gone.back()});
      }
  }
  for (const node::RankId& rank : gone)
    if (turn.state.rank_of(rank))
      rank_gone(turn, *turn.state.job_of(rank.actor),
                *turn.state.actor_of({rank.actor, rank.incarnation}), rank.rank,
                scheduler::NodeLost{node});
}

void give_up_unreturned(Turn& turn) {
  auto& until = turn.state.actors_return_until;
  if (!until || turn.now < *until) return;
  until.reset();
  for (const auto& [name, node] : turn.state.nodes)
    if (!node.up && !node.agent_until) lose_ranks(turn, name, Lost::kAll);
}

void give_up_agents(Turn& turn) {
  for (const std::string& name : due(turn.state.found.node_checks, turn.now)) {
    const auto found = turn.state.nodes.find(name);
    if (found == turn.state.nodes.end()) continue;
    NodeRecord& node = found->second;
    if (!node.agent_until || turn.now < *node.agent_until) continue;
    node.agent_until.reset();
    turn.announce(node, "its agent has not come back", messages::EventLevel::kError);
    lose_ranks(turn, name, Lost::kAll);
  }
}

void take(Turn& turn, const node::RankSpawnFailed& failed) {
  if (!turn.state.rank_of(failed.id)) return;
  JobRecord& job = *turn.state.job_of(failed.id.actor);
  ActorRecord& actor = *turn.state.actor_of({failed.id.actor, failed.id.incarnation});
  rank_gone(turn, job, actor, failed.id.rank,
            scheduler::SpawnFailed{failed.message, failed.disk && has_worked(job, actor)});
}

void take(Turn& turn, const node::RankExited& exited) {
  if (take_end_of_unwanted(turn, exited.id)) return;
  const RankRecord* rank = turn.state.rank_of(exited.id);
  if (!rank) return;
  JobRecord& job = *turn.state.job_of(exited.id.actor);
  ActorRecord& actor = *turn.state.actor_of({exited.id.actor, exited.id.incarnation});
  const auto node = turn.state.nodes.find(rank->node);
  const std::int64_t room = node == turn.state.nodes.end() ? 0 : node->second.total.memory_bytes;
  Reason why = reason_of(exited, room);
  if (exited.code == 0 && program_of(job.shape, actor.role)) why = scheduler::Finished{};
  rank_gone(turn, job, actor, exited.id.rank, std::move(why));
}

}  // namespace tandem::controller
