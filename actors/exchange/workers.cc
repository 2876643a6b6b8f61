// Every answer of a worker names an incarnation and a lease. An answer of an incarnation that has
// ended is ignored (EX-6), and one that no honest peer sends ends its sender (checks.h). A worker
// that goes leaves its groups to others: each lease ends by an event of its own, then the
// incarnation does.
#include "actors/exchange/workers.h"

#include <algorithm>
#include <vector>

#include "actors/exchange/checks.h"
#include "actors/exchange/work_totals.h"

namespace tandem::exchange {

namespace {

bool is_rollout(const RunFacts& facts, const messages::Sender& who) {
  return find(facts.workers.rollouts, who) != nullptr;
}

// Settles the things that a worker leaves behind: its leases, its part of evaluations, and its
// time at work. Its incarnation, or the coming up of the next one, is the caller's to record.
void retire(Turn& turn, const messages::Sender& who) {
  const bool generates = is_rollout(turn.facts, who);
  for (const scheduler::Lease& lease : turn.facts.flow.ledger.leases_of(who.incarnation))
    turn.record(LeaseReleased{lease.group, who});
  for (Evaluation& evaluation : turn.seen.evaluations) evaluation.actor_down(who.actor);
  WorkersSeen& seen = turn.seen.workers;
  (generates ? seen.no_rollout_since : seen.no_reward_since) = turn.now;
  if (generates) {
    const WorkerSeen& worker = seen.by_actor[who.actor];
    WorkTotals& work = turn.seen.statistics.work;
    work.rollout_busy_seconds += worker.stats.busy_seconds;
    work.rollout_actor_seconds += reported_seconds(turn.view(), worker);
  }
  seen.by_actor.erase(who.actor);
}

void end_incarnation(Turn& turn, const messages::Sender& who) {
  turn.record(IncarnationEnded{who});
  if (auto& groups = turn.seen.broadcasts.groups) groups->gone(who.actor, who.incarnation);
}

void come_up(Turn& turn, messages::Role role, const messages::Sender& who, std::int64_t capacity) {
  const auto& workers =
      role == messages::Role::kRollout ? turn.facts.workers.rollouts : turn.facts.workers.rewards;
  if (const auto old = workers.find(who.actor); old != workers.end())
    retire(turn, messages::Sender(old->second.who));
  turn.record(WorkerCameUp{role, who, capacity});
  turn.seen.workers.by_actor[who.actor] = {.up = turn.now, .worked = turn.now};
  turn.wake();
}

// Ends a rollout that installed wrong weights (EX-7): its groups are leased again, its later
// messages are ignored, and its link is cut.
void condemn(Turn& turn, const messages::Sender& rollout, const std::string& why) {
  turn.notify(
      messages::ExchangeEvent{turn.config.job, rollout.actor, why, messages::EventLevel::kError});
  retire(turn, rollout);
  end_incarnation(turn, rollout);
  refuse(turn, rollout, why);
}

}  // namespace

const WorkerFacts* find(const std::map<std::string, WorkerFacts>& role,
                        const messages::Sender& from) {
  const auto it = role.find(from.actor);
  if (it == role.end() || it->second.who.incarnation != from.incarnation) return nullptr;
  return &it->second;
}

bool has_ended(const RunFacts& facts, const messages::Sender& from) {
  const auto it = facts.workers.ended.find(from.actor);
  return it != facts.workers.ended.end() && from.incarnation <= it->second;
}

void take(Turn& turn, const messages::RolloutUp& up) {
  if (has_ended(turn.facts, up.from)) return;
  if (find(turn.facts.workers.rollouts, up.from))
    return refuse(turn, up.from, "RolloutUp: it is up already");
  come_up(turn, messages::Role::kRollout, up.from, up.capacity);
}

void take(Turn& turn, const messages::RewardUp& up) {
  if (has_ended(turn.facts, up.from)) return;
  if (find(turn.facts.workers.rewards, up.from))
    return refuse(turn, up.from, "RewardUp: it is up already");
  come_up(turn, messages::Role::kReward, up.from, up.capacity);
}

void take(Turn& turn, const messages::ActorDown& down) {
  const messages::Sender who{down.actor, down.incarnation};
  if (is_rollout(turn.facts, who) || find(turn.facts.workers.rewards, who)) retire(turn, who);
  end_incarnation(turn, who);
  turn.wake();
}

void take(Turn& turn, const messages::DrainActor& drain) {
  const messages::Sender who{drain.actor, drain.incarnation};
  if (auto& groups = turn.seen.broadcasts.groups) groups->leaves(who.actor, who.incarnation);
  if (is_rollout(turn.facts, who) || find(turn.facts.workers.rewards, who)) {
    const Time deadline = turn.now + std::chrono::milliseconds(drain.deadline_ms);
    turn.record(WorkerDrains{who});
    turn.seen.workers.by_actor[who.actor].drain_deadline = deadline;
    turn.wake();
    return turn.send(DecideAt{deadline});
  }
  end_incarnation(turn, who);  // the actor never came up, and now it need not
  turn.notify(messages::ActorDrained{turn.config.job, who.actor, who.incarnation});
  turn.wake();
}

void take(Turn& turn, const messages::Installed& installed) {
  if (!is_rollout(turn.facts, installed.from)) return;
  if (installed.version > turn.facts.versions.published)
    return refuse(turn, installed.from,
                  "Installed: version " + std::to_string(installed.version.value) +
                      ", which is not published");
  if (const auto why = misfit(turn.view(), installed)) return condemn(turn, installed.from, *why);
  turn.record(VersionInstalled{installed.from, installed.version});
  turn.seen.statistics.pause_seconds += installed.seconds;
  turn.seen.workers.by_actor[installed.from.actor].worked = turn.now;
  turn.wake();
}

void take(Turn& turn, messages::RolloutStats stats) {
  turn.seen.statistics.add_rate_point(turn.now);
  if (!is_rollout(turn.facts, stats.from)) return;
  WorkerSeen& worker = turn.seen.workers.by_actor[stats.from.actor];
  if (stats.generation_tokens > worker.stats.generation_tokens)
    extend_leases(turn, stats.from, turn.config.rollout_lease);
  worker.stats = std::move(stats);
  worker.stats_at = turn.now;
}

void extend_leases(Turn& turn, const messages::Sender& holder, Duration lease) {
  for (const scheduler::Lease& held : turn.facts.flow.ledger.leases_of(holder.incarnation))
    turn.set_deadline({held.group, held.id, held.epoch}, turn.now + lease);
}

void expire_leases(Turn& turn) {
  for (const GroupId group : turn.facts.flow.ledger.expired(turn.now)) {
    const Incarnation holder = turn.facts.flow.ledger.find(group)->lease->holder;
    turn.record(LeaseExpired{group});
    for (const auto& [name, worker] : turn.facts.workers.rollouts)
      if (worker.who.incarnation == holder)
        turn.tell_rollout(worker.who, messages::HandBack{{group}});
  }
}

void finish_drains(Turn& turn) {
  std::vector<std::pair<messages::Sender, bool>> leaving;  // and whether it still holds anything
  for (const auto* role : {&turn.facts.workers.rollouts, &turn.facts.workers.rewards})
    for (const auto& [name, worker] : *role) {
      if (!worker.draining) continue;
      const bool busy = turn.facts.flow.ledger.held_by(worker.who.incarnation) > 0 ||
                        std::ranges::any_of(turn.seen.evaluations,
                                            [&who = worker.who](const Evaluation& evaluation) {
                                              return evaluation.held_by(who.actor);
                                            });
      if (busy && turn.now < turn.seen.workers.by_actor[name].drain_deadline) continue;
      leaving.emplace_back(worker.who, busy);
    }
  for (const auto& [who, busy] : leaving) {
    if (busy && is_rollout(turn.facts, who)) turn.tell_rollout(who, messages::HandBack{});
    retire(turn, who);
    end_incarnation(turn, who);
    turn.notify(messages::ActorDrained{turn.config.job, who.actor, who.incarnation});
    turn.seen.workers.troubles.forget(who.actor);
  }
}

}  // namespace tandem::exchange
