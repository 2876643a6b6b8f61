#include "actors/exchange/run_end.h"

#include <utility>

#include "actors/exchange/checkpoints.h"
#include "actors/exchange/run_result.h"
#include "actors/exchange/work_totals.h"
#include "actors/exchange/workers.h"

namespace tandem::exchange {

void enter(Turn& turn, RunStage stage, std::string message) {
  messages::JobPhase phase = messages::JobPhase::kStarting;
  if (stage == RunStage::kWarmStart) phase = messages::JobPhase::kWarmStart;
  if (stage == RunStage::kRunning || stage == RunStage::kFinishing)
    phase = messages::JobPhase::kRunning;
  turn.record(StageEntered{stage, message});
  turn.notify(messages::JobProgress{turn.config.job, phase, std::move(message)});
}

// The first cause is the one that counts.
void take(Turn& turn, const messages::EndJob& end) {
  const auto& asked = turn.facts.end.asked;
  const bool fails = end.outcome == messages::JobOutcome::kFailed;
  if (!asked)
    turn.record(EndAsked{end.outcome, end.reason});
  else if (fails && asked->outcome == messages::JobOutcome::kCancelled &&
           !asked->reason.starts_with(messages::kWhileCancelled))
    turn.record(EndAsked{asked->outcome, messages::kWhileCancelled + end.reason});
  turn.wake();
}

void fail(Turn& turn, std::string reason) {
  // The failure may be one of the save itself.
  if (turn.seen.save_deadline) turn.seen.save_deadline = turn.now;
  take(turn, messages::EndJob{messages::JobOutcome::kFailed, std::move(reason)});
}

void fail_for_reward(Turn& turn, const std::string& reason) {
  fail(turn, "the reward has never worked: each of the first " + std::to_string(kFirstFailuresMax) +
                 " completions failed; the last: " + turn.seen.workers.troubles.explained(reason));
}

// A step whose figures are lost is not saved: a resumed run trains it again, and writes them.
void take(Turn& turn, const RecordFailed& failed) {
  turn.seen.learner.save_due = false;
  turn.seen.learner.restoring.reset();
  fail(turn, failed.message);
}

void take(Turn& turn, const SendFailed& failed) { fail(turn, failed.message); }

// A cancelled job loses no step: the one under way is finished and saved (EX-5). A learner that is
// down, or dies meanwhile, is not waited for.
bool saves_first(Turn& turn) {
  const RunFacts& facts = turn.facts;
  const bool trains = facts.stage == RunStage::kRunning || facts.stage == RunStage::kFinishing;
  if (facts.end.asked->outcome != messages::JobOutcome::kCancelled ||
      turn.config.save_on_cancel <= Duration{} || !facts.learner.who || !trains)
    return false;
  if (!turn.seen.save_deadline) {
    const scheduler::Ledger& ledger = facts.flow.ledger;
    const bool trains_new = facts.learner.training == ledger.next_commit();
    const StepId last{ledger.next_commit().value + (trains_new ? 1 : 0)};
    if (last <= facts.learner.durable) return false;
    turn.seen.save_deadline = turn.now + turn.config.save_on_cancel;
    turn.send(DecideAt{*turn.seen.save_deadline});
    turn.record(LastSaveAsked{last});
    turn.notify(
        messages::JobProgress{turn.config.job, messages::JobPhase::kStopping, saving_text(last)});
    if (facts.learner.checkpoint_awaited != last) {
      turn.record(CheckpointAsked{last});
      if (!facts.learner.owed && !ledger.replaying()) ask_checkpoint(turn);
    }
  }
  return facts.learner.durable < *facts.end.last_save && turn.now < *turn.seen.save_deadline;
}

void end(Turn& turn, messages::JobOutcome outcome, const std::string& reason) {
  LiveDiscarded left{.reason = outcome == messages::JobOutcome::kSucceeded
                                   ? scheduler::DiscardReason::kJobFinished
                                   : scheduler::DiscardReason::kCancelled,
                     .groups = {}};
  for (const auto& [group, facts] : turn.facts.flow.entries)
    if (scheduler::is_live(turn.facts.flow.ledger.find(group)->state)) left.groups.push_back(group);
  if (!left.groups.empty()) turn.record(std::move(left));
  for (const WorkerFacts* worker : turn.facts.workers.all()) hand_back(turn, *worker, {});
  if (turn.seen.statistics.running_since) note_totals(turn, std::nullopt);
  turn.record(RunEnded{reason, outcome});
  turn.record_hash();
  send_end(turn, {reason, outcome});
}

void send_end(Turn& turn, const RunEnded& ended) {
  // An incarnation that never took the run up leaves the result that an earlier one wrote.
  const bool knows_its_run = !turn.config.resume || turn.facts.resumed;
  const auto& [reason, outcome] = ended;
  EndRun run{.result = std::nullopt, .ended = {turn.config.job, outcome, reason, knows_its_run}};
  if (knows_its_run) run.result = result_json(turn.view(), outcome, reason);
  turn.send(std::move(run));
}

}  // namespace tandem::exchange
