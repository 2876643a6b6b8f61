#include "actors/exchange/checkpoints.h"

#include "actors/exchange/checks.h"

namespace tandem::actors {

// A checkpoint is worth nothing without the events that tell which groups it covers: those are on
// the disk first.
void ask_checkpoint(Turn& turn) {
  turn.survive_power_cut();
  turn.seen.learner.save_asked = turn.now;
  turn.tell_learner(SaveCheckpoint{*turn.facts.learner.checkpoint_awaited});
}

void take(Turn& turn, const CheckpointSaved& saved) {
  const LearnerFacts& learner = turn.facts.learner;
  if (!learner.who || learner.who->incarnation != saved.from.incarnation) return;
  if (const auto why = misfit(turn.view(), saved)) return refuse(turn, saved.from, *why);
  turn.seen.statistics.weights_sha256 = saved.weights_sha256;
  const GroupFlow& flow = turn.facts.flow;
  if (saved.step > learner.durable)
    for (const auto& [group, facts] : flow.entries) {
      const scheduler::GroupRecord& record = *flow.ledger.find(group);
      if (record.state != scheduler::GroupState::kTrained || *record.step >= saved.step) continue;
      turn.send(ReleasePayload{facts.header->payload});
      turn.seen.admitted.erase(group);
    }
  turn.record(CheckpointKept{saved.step, saved.directory, saved.weights_sha256});
  turn.record_hash();
  turn.wake();
}

}  // namespace tandem::actors
