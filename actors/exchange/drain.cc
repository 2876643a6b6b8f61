#include "actors/exchange/drain.h"

#include "actors/exchange/checkpoints.h"

namespace tandem::exchange {

namespace {

void let_go(Turn& turn) {
  turn.seen.learner.let_go = true;
  turn.notify(messages::ActorDrained{turn.config.job, *turn.facts.learner.who});
}

}  // namespace

void drain_learner(Turn& turn, const messages::DrainActor& drain) {
  const Time deadline = turn.now + std::chrono::milliseconds(drain.deadline_ms);
  turn.seen.learner.drain_deadline = deadline;
  turn.wake();
  turn.send(DecideAt{deadline});
}

bool learner_drains(const RunView& view) { return view.seen.learner.drain_deadline.has_value(); }

void finish_learner_drain(Turn& turn) {
  const LearnerSeen& seen = turn.seen.learner;
  const LearnerFacts& learner = turn.facts.learner;
  if (!seen.drain_deadline || seen.let_go || !learner.who) return;
  // Before training there is nothing to save, and a learner that repeats steps has saved them.
  const bool trains = turn.facts.stage == RunStage::kRunning && !turn.facts.flow.ledger.replaying();
  const bool finishes = turn.facts.stage == RunStage::kFinishing;  // the run ends with it
  if (turn.now >= *seen.drain_deadline || (!trains && !finishes)) return let_go(turn);
  if (finishes || learner.owed) return;
  const StepId done = turn.facts.flow.ledger.next_commit();
  if (learner.durable == done) return let_go(turn);
  if (learner.checkpoint_awaited) return;
  turn.record(CheckpointAsked{done});
  ask_checkpoint(turn);
}

}  // namespace tandem::exchange
