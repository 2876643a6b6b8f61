#include "actors/exchange/follow.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "actors/exchange/checkpoints.h"
#include "actors/exchange/checks.h"
#include "actors/exchange/publications.h"
#include "actors/exchange/quarantine.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/training.h"
#include "actors/exchange/workers.h"

namespace tandem::exchange {

namespace {

// What is left of the worker's leases: those that it holds go on, the others are leased anew. A
// group that it holds under no lease is handed back to where it was.
void settle_leases(Turn& turn, const WorkerFacts& worker,
                   const std::vector<messages::HeldGroup>& held, Duration lease_time) {
  const ActorId who = worker.who;
  const bool generates = turn.facts.workers.find(messages::Role::kRollout, who) != nullptr;
  std::map<GroupId, std::uint64_t> holds;
  for (const messages::HeldGroup& group : held) holds[group.group] = group.attempt;
  for (const scheduler::Lease& lease : turn.facts.flow.ledger.leases_of(who.incarnation)) {
    const auto found = holds.find(lease.group);
    // A lease that this exchange has given may have met the worker's message on its way.
    if (lease.epoch == turn.config.epoch) {
      if (found != holds.end()) holds.erase(found);
      continue;
    }
    if (found == holds.end() || found->second != lease.id.value) {
      turn.record(LeaseReleased{lease.group, who});
      continue;
    }
    holds.erase(found);
    turn.record(LeaseAdopted{lease.group, lease.id, who});
    if (generates) turn.seen.answers_due.emplace_back(lease.group, lease.id);
    turn.set_deadline({lease.group, lease.id, turn.config.epoch}, turn.now + lease_time);
  }
  std::vector<GroupId> over;
  for (const auto& [group, attempt] : holds) over.push_back(group);
  if (!over.empty()) hand_back(turn, worker, std::move(over));
}

// The worker that has come back; null where it has ended, or its first message was lost.
const WorkerFacts* meet(Turn& turn, const messages::Role& role, const ActorId& who,
                        std::int64_t capacity, const char* said) {
  if (has_ended(turn.facts, who)) return nullptr;
  const WorkerFacts* const worker = turn.facts.workers.find(role, who);
  if (!worker) {
    come_up(turn, role, who, capacity, said);
    return turn.facts.workers.find(role, who);
  }
  if (role == messages::Role::kRollout) turn.seen.fleet.was_there(who.name);
  WorkerSeen& seen = turn.seen.workers.by_actor[who.name];
  if (std::exchange(seen.away, false)) seen.came_back = true;
  // It holds no work of evaluations any more, of whichever exchange it was.
  for (Evaluation& evaluation : turn.seen.evaluations) evaluation.actor_down(who.name);
  seen.worked = turn.now;
  turn.wake();
  return worker;
}

}  // namespace

bool resumes(const RunFacts& facts, bool has_earlier_attempt) {
  const bool may_not_have_begun =
      facts.stage == RunStage::kStarting || facts.stage == RunStage::kEnded;
  return facts.resumed || (has_earlier_attempt && may_not_have_begun);
}

namespace {

// Tells users in which phase the run goes on.
void tell_phase(Turn& turn, StepId done) {
  const RunStage stage = turn.facts.stage;
  if (stage == RunStage::kStarting) return turn.say("the start goes on under a new controller");
  const bool trains = stage != RunStage::kWarmStart;
  turn.notify(messages::JobProgress{
      turn.config.job, trains ? messages::JobPhase::kRunning : messages::JobPhase::kWarmStart,
      trains ? "goes on at step " + std::to_string(done.value) + " under a new controller"
             : "the warm start goes on under a new controller"});
}

}  // namespace

void follow(Turn& turn, FigureHistory before) {
  turn.seen.history = std::move(before);
  const FigureHistory& history = turn.seen.history;
  const RunFacts& facts = turn.facts;
  const StepId done = facts.flow.ledger.next_commit();
  RunStatistics& statistics = turn.seen.statistics;
  statistics = history.statistics(done, turn.config.budget.steps_total, turn.config.best);
  statistics.started = statistics.step_sent = turn.now;
  for (const WorkerFacts* worker : facts.workers.all())
    turn.seen.workers.by_actor[worker->who.name] = {
        .up = turn.now, .worked = turn.now, .away = true};
  if (facts.end.ended) return send_end(turn, *facts.end.ended);
  turn.record(ExchangeFollowed{turn.config.epoch});
  if (facts.stage == RunStage::kRunning || facts.stage == RunStage::kFinishing)
    statistics.running_since = turn.now;
  statistics.work.tokens_generated += history.generated_since_noted();
  note_formed_batch(turn);
  turn.seen.payloads_unsettled = true;
  turn.seen.away_until = turn.now + turn.config.away_max;
  turn.send(DecideAt{turn.seen.away_until});
  remember_quarantined(turn);
  for (const auto& [group, entry] : facts.flow.entries)
    turn.seen.groups[group] = {turn.now, turn.now};
  turn.seen.learner.away = facts.learner.who.has_value();
  for (const auto& [id, running] : facts.evaluations.running)
    turn.seen.evaluations.emplace_back(id, running.kind, running.version, turn.config.evaluation,
                                       turn.now);
  tell_phase(turn, done);
  turn.wake();
}

void take(Turn& turn, const messages::RolloutBack& back) {
  const WorkerFacts* const worker =
      meet(turn, messages::Role::kRollout, back.from, back.capacity, "RolloutBack");
  if (!worker) return;
  if (back.installed && back.installed != worker->installed) {
    take(turn, messages::Installed{
                   .from = back.from, .version = *back.installed, .checksum = back.checksum});
    if (!turn.facts.workers.find(back.from)) return;  // it has installed other weights
  }
  // Of newer versions it may have been told by the exchange before, and it is told once more.
  PolicyVersion& announced = turn.seen.workers.by_actor[back.from.name].announced;
  if (back.installed) announced = std::max(announced, *back.installed);
  settle_leases(turn, *worker, back.held, turn.config.rollout_lease);
}

void meet_again(Turn& turn, const messages::Role& role, const ActorId& who, std::int64_t capacity,
                const std::vector<messages::HeldGroup>& held, Duration lease_time,
                const char* said) {
  if (const WorkerFacts* const worker = meet(turn, role, who, capacity, said))
    settle_leases(turn, *worker, held, lease_time);
}

// The request was lost, or its answer is still to come. The new row takes the rows before it to the
// disk, which a checkpoint needs (checkpoints.h).
void ask_checkpoint_again(Turn& turn, StepId step) {
  turn.record(CheckpointAsked{step});
  ask_checkpoint(turn);
}

// Its answers have come before. So what it still owes it has never heard of, unless it is at work
// on it.
void take(Turn& turn, const messages::LearnerBack& back) {
  const LearnerFacts& learner = turn.facts.learner;
  if (has_ended(turn.facts, back.from)) return;
  if (learner.who != back.from)  // its LearnerUp was lost
    return refuse(turn, back.from, "LearnerBack: it has not come up");
  const scheduler::Ledger& ledger = turn.facts.flow.ledger;
  if (back.step != ledger.replay_next())
    return refuse(turn, back.from,
                  "LearnerBack: at step " + std::to_string(back.step.value) + ", not at " +
                      std::to_string(ledger.replay_next().value));
  LearnerSeen& seen = turn.seen.learner;
  // It says so once more where a controller that died in between had asked it as well.
  if (!std::exchange(seen.away, false)) return;
  if (std::exchange(seen.source, back.source) != back.source) announce_again(turn);
  turn.wake();
  if (learner.owed == LearnerTask::kTrain) {
    if (!back.training) {
      if (learner.checkpoint_awaited == back.step) ask_checkpoint_again(turn, back.step);
      send_again(turn);
    }
    seen.save_due = false;
  } else if (learner.owed == LearnerTask::kPublish) {
    ask_to_publish(turn);
  } else if (learner.owed == LearnerTask::kWarmStart) {
    if (!back.warm_started) turn.tell_learner(messages::WarmStart{});
  } else if (learner.checkpoint_awaited == back.step) {
    ask_checkpoint_again(turn, back.step);
  }
}

namespace {

bool answers_are_due(Turn& turn) {
  auto& due = turn.seen.answers_due;
  while (!due.empty()) {
    const auto& [group, lease] = due.back();
    const scheduler::GroupRecord* const record = turn.facts.flow.ledger.find(group);
    if (record && record->lease && record->lease->id == lease) return true;
    due.pop_back();
  }
  return false;
}

}  // namespace

void settle(Turn& turn) {
  if (!turn.seen.payloads_unsettled) return;
  std::vector<ActorId> away;
  for (const WorkerFacts* worker : turn.facts.workers.all())
    if (is_away(turn.view(), worker->who)) away.push_back(worker->who);
  const auto& learner = turn.facts.learner.who;
  if (learner && turn.seen.learner.away) away.push_back(*learner);
  if (!away.empty() && turn.now < turn.seen.away_until) return;
  // One may live all the same, as a learner amid a very long step does. It ends then, since what it
  // says is of no use any more, and the controller starts the next.
  for (const ActorId& who : away) {
    const std::string why = "it has not come back to the exchange that follows";
    take(turn, messages::ActorDown{who, why});
    refuse(turn, who, why);
  }
  if (answers_are_due(turn)) return;  // each at the end of its lease at the latest
  turn.seen.payloads_unsettled = false;
  turn.send(SettlePayloads{});
}

}  // namespace tandem::exchange
