// Every answer of a worker names an incarnation and a lease. An answer of an incarnation that has
// ended is ignored (EX-6), and one that no honest peer sends ends its sender (checks.h). A worker
// that goes leaves its groups to others: each lease ends by an event of its own, then the
// incarnation does.
#include "actors/exchange/workers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "actors/exchange/checks.h"
#include "actors/exchange/drain.h"
#include "actors/exchange/evaluation_parts.h"
#include "actors/exchange/work_totals.h"

namespace tandem::exchange {

namespace {

constexpr double kPauseMost_s = 3600;  // peers may say what they like

bool is_rollout(const RunFacts& facts, const ActorId& who) {
  return facts.workers.find(messages::Role::kRollout, who) != nullptr;
}

// Settles the things that a worker leaves behind: its leases, its part of evaluations, and its
// time at work. Its incarnation, or the coming up of the next one, is the caller's to record.
void retire(Turn& turn, const WorkerFacts& worker) {
  const ActorId who = worker.who;
  for (const scheduler::Lease& lease : turn.facts.flow.ledger.leases_of(who.incarnation))
    turn.record(LeaseReleased{lease.group, who});
  for (Evaluation& evaluation : turn.seen.evaluations) evaluation.actor_down(who.name);
  WorkersSeen& seen = turn.seen.workers;
  seen.none_since[worker.role] = turn.now;
  const WorkerSeen& gone = seen.by_actor[who.name];
  WorkTotals& work = turn.seen.statistics.work;
  work.rollout_busy_seconds += gone.stats.busy_seconds;
  work.rollout_actor_seconds += reported_seconds(turn.view(), gone);
  if (worker.role == messages::Role::kRollout)
    turn.seen.fleet.ended(who.name, !worker.draining ? RolloutEnd::kDied
                                    : gone.returns   ? RolloutEnd::kReturns
                                                     : RolloutEnd::kLeft);
  seen.by_actor.erase(who.name);
}

void end_incarnation(Turn& turn, const ActorId& who) {
  turn.record(IncarnationEnded{who});
  if (auto& groups = turn.seen.broadcasts.groups) groups->gone(who);
}

// Null: the worker of this incarnation is heard.
const WorkerFacts* silent_holder(const RunView& view,
                                 const std::vector<const WorkerFacts*>& workers,
                                 Incarnation holder) {
  for (const WorkerFacts* worker : workers)
    if (worker->who.incarnation == holder && view.seen.workers.by_actor.at(worker->who.name).silent)
      return worker;
  return nullptr;
}

}  // namespace

void condemn(Turn& turn, const ActorId& rollout, const std::string& why) {
  turn.notify(
      messages::ExchangeEvent{turn.config.job, rollout.name, why, messages::EventLevel::kError});
  retire(turn, *turn.facts.workers.find(rollout));
  end_incarnation(turn, rollout);
  refuse(turn, rollout, why);
}

void come_up(Turn& turn, const messages::Role& role, const ActorId& who, std::int64_t capacity,
             const char* said) {
  if (has_ended(turn.facts, who)) return;
  if (turn.facts.workers.find(role, who))
    return refuse(turn, who, std::string(said) + ": it is up already");
  const WorkersOfRole& workers = turn.facts.workers.of(role);
  if (const auto old = workers.find(who.name); old != workers.end()) retire(turn, old->second);
  turn.record(WorkerCameUp{role, who, capacity});
  turn.seen.workers.by_actor[who.name] = {.up = turn.now, .worked = turn.now};
  if (role == messages::Role::kRollout) turn.seen.fleet.came(who.name);
  turn.wake();
}

void hand_back(Turn& turn, const WorkerFacts& worker, std::vector<GroupId> groups) {
  for (const WorkerRole& role : turn.roles)
    if (role.role == worker.role && role.hand_back)
      return role.hand_back(turn, worker.who, std::move(groups));
}

bool has_ended(const RunFacts& facts, const ActorId& from) {
  const auto it = facts.workers.ended.find(from.name);
  return it != facts.workers.ended.end() && from.incarnation <= it->second;
}

void take(Turn& turn, const messages::ActorDown& down) {
  const ActorId& who = down.who;
  if (const WorkerFacts* worker = turn.facts.workers.find(who)) retire(turn, *worker);
  end_incarnation(turn, who);
  turn.wake();
}

void take(Turn& turn, const messages::ActorSilent& event) {
  if (!turn.facts.workers.find(event.who)) return;
  turn.seen.workers.by_actor[event.who.name].silent = event.silent;
  turn.wake();
}

void take(Turn& turn, const messages::DrainActor& drain) {
  const ActorId& who = drain.who;
  if (turn.facts.learner.who == who) return drain_learner(turn, drain);
  if (auto& groups = turn.seen.broadcasts.groups) groups->leaves(who);
  if (turn.facts.workers.find(who)) {
    if (is_rollout(turn.facts, who) && !drain.returns) turn.seen.fleet.leaves(who.name);
    WorkerSeen& seen = turn.seen.workers.by_actor[who.name];
    seen.returns = drain.returns;
    if (seen.drain_deadline) return;
    const Time deadline = turn.now + std::chrono::milliseconds(drain.deadline_ms);
    seen.drain_deadline = deadline;
    turn.record(WorkerDrains{who});
    turn.wake();
    return turn.send(DecideAt{deadline});
  }
  if (!drain.returns) turn.seen.fleet.leaves(who.name);
  end_incarnation(turn, who);  // the actor never came up, or is down, and now it need not come
  turn.notify(messages::ActorDrained{turn.config.job, who});
  turn.wake();
}

void take(Turn& turn, const messages::Installed& installed) {
  if (!is_rollout(turn.facts, installed.from)) return;
  if (comes_too_early(turn, installed.from)) return;  // RolloutBack tells it
  if (installed.version > turn.facts.versions.published)
    return refuse(turn, installed.from,
                  "Installed: version " + std::to_string(installed.version.value) +
                      ", which is not published");
  if (const auto why = misfit(turn.view(), installed)) return condemn(turn, installed.from, *why);
  const double pause_s =
      std::isfinite(installed.seconds) ? std::clamp(installed.seconds, 0.0, kPauseMost_s) : 0;
  if (pause_s > 0) turn.record(InstallPaused{installed.from, installed.version, pause_s});
  turn.record(VersionInstalled{installed.from, installed.version});
  turn.seen.fleet.installed(installed.from.name, pause_s, installed.bytes);
  WorkerSeen& seen = turn.seen.workers.by_actor[installed.from.name];
  seen.worked = turn.now;
  seen.begin_part(turn.now);
  seen.damaged_in_row = 0;
  if (installed.version == seen.announced) {
    const Duration pause =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(pause_s));
    turn.seen.fleet.delayed(FleetDelay::kFetch,
                            std::max(Duration{0}, turn.now - seen.announced_at - pause));
  }
  turn.wake();
}

void take(Turn& turn, messages::RolloutStats stats) {
  turn.seen.statistics.add_rate_point(turn.now);
  if (!is_rollout(turn.facts, stats.from) || comes_too_early(turn, stats.from)) return;
  WorkerSeen& worker = turn.seen.workers.by_actor[stats.from.name];
  if (stats.generation_tokens > worker.stats.generation_tokens) {
    extend_leases(turn, stats.from, turn.config.rollout_lease);
    worker.begin_part(turn.now);
  }
  if (stats.no_room.empty())
    worker.no_room_since.reset();
  else if (!worker.no_room_since)
    worker.no_room_since = turn.now;
  // An incarnation that is older than this exchange has counted before: its first report only tells
  // from where it counts on.
  const auto since = worker.came_back ? worker.stats_at : worker.stats_at.value_or(worker.up);
  if (since) turn.seen.fleet.worked(stats.from.name, worker.stats, stats, turn.now - *since);
  worker.stats = std::move(stats);
  worker.stats_at = turn.now;
}

void extend_leases(Turn& turn, const ActorId& holder, Duration lease) {
  for (const scheduler::Lease& held : turn.facts.flow.ledger.leases_of(holder.incarnation))
    turn.set_deadline({held.group, held.id, held.epoch}, turn.now + lease);
}

void expire_leases(Turn& turn) {
  const auto expired = turn.facts.flow.ledger.expired(turn.now);
  if (expired.empty()) return;
  const std::vector<const WorkerFacts*> workers = turn.facts.workers.all();
  for (const GroupId group : expired) {
    const Incarnation holder = turn.facts.flow.ledger.find(group)->lease->holder;
    if (const WorkerFacts* const silent = silent_holder(turn.view(), workers, holder)) {
      extend_leases(turn, silent->who, turn.config.rollout_lease);
      continue;
    }
    turn.record(LeaseExpired{group});
    for (const WorkerFacts* worker : workers)
      if (worker->who.incarnation == holder) hand_back(turn, *worker, {group});
  }
}

void end_idle_holders(Turn& turn) {
  std::optional<Time>& due = turn.seen.workers.parts_due;
  if (!due || turn.now < *due) return;
  due.reset();
  std::vector<ActorId> idle;
  for (const auto& [name, rollout] : turn.facts.workers.rollouts()) {
    if (!has_part(turn.view(), name)) continue;
    due = turn.now + turn.config.rollout_lease / kPartLooks;
    WorkerSeen& seen = turn.seen.workers.by_actor[name];
    if (is_held_up(turn.view(), rollout))
      seen.begin_part(turn.now);
    else if (++seen.part_looks > kPartLooks)
      idle.push_back(rollout.who);
  }
  for (const ActorId& rollout : idle)
    condemn(turn, rollout,
            "it has prompts of an evaluation, and has neither generated a token nor answered for " +
                std::to_string(turn.config.rollout_lease / std::chrono::seconds(1)) + " s");
}

// What is told to a silent worker waits in its link, and is the first that it hears.
void relieve_silent(Turn& turn) {
  const auto is_silent = [](const auto& worker) { return worker.second.silent; };
  if (std::ranges::none_of(turn.seen.workers.by_actor, is_silent)) return;
  std::vector<WorkerFacts> relieved;
  const std::vector<const WorkerFacts*> workers = turn.facts.workers.all();
  for (const WorkerFacts* worker : workers) {
    if (!turn.seen.workers.by_actor[worker->who.name].silent) continue;
    const bool replaced = std::ranges::any_of(workers, [&](const WorkerFacts* other) {
      return other->role == worker->role && !other->draining && is_here(turn.view(), other->who);
    });
    if (replaced) relieved.push_back(*worker);
  }
  for (const WorkerFacts& worker : relieved) {
    std::vector<GroupId> groups;
    for (const scheduler::Lease& lease : turn.facts.flow.ledger.leases_of(worker.who.incarnation))
      groups.push_back(lease.group);
    for (const GroupId group : groups) turn.record(LeaseReleased{group, worker.who});
    if (!groups.empty()) hand_back(turn, worker, std::move(groups));
    for (Evaluation& evaluation : turn.seen.evaluations) {
      if (evaluation.held_by(worker.who.name))
        turn.seen.workers.by_actor[worker.who.name].may_evaluate = true;
      evaluation.actor_down(worker.who.name);
    }
  }
}

void finish_drains(Turn& turn) {
  std::vector<std::pair<WorkerFacts, bool>> leaving;  // and whether it still holds anything
  for (const WorkerFacts* worker : turn.facts.workers.all()) {
    if (!worker->draining) continue;
    const std::string& actor = worker->who.name;
    const bool busy =
        turn.facts.flow.ledger.held_by(worker->who.incarnation) > 0 || has_part(turn.view(), actor);
    if (busy && turn.now < turn.seen.workers.by_actor[actor].drain_deadline) continue;
    leaving.emplace_back(*worker, busy);
  }
  for (const auto& [worker, busy] : leaving) {
    const ActorId& who = worker.who;
    if (busy) hand_back(turn, worker, {});
    retire(turn, worker);
    end_incarnation(turn, who);
    turn.notify(messages::ActorDrained{turn.config.job, who});
    turn.seen.workers.troubles.forget(who.name);
  }
}

}  // namespace tandem::exchange
