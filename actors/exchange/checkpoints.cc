#include "actors/exchange/checkpoints.h"

#include <set>
#include <vector>

#include "actors/exchange/checks.h"

namespace tandem::exchange {

namespace {

// The checkpoints that pruning must leave: the best one, and each whose evaluation is under way.
std::vector<StepId> steps_to_keep(const RunView& view) {
  if (view.config.keep_best.empty()) return {};
  std::set<StepId> steps;
  if (const auto& best = view.seen.statistics.best) steps.insert(StepId{best->version.value});
  for (const auto& [id, running] : view.facts.evaluations.running)
    if (running.version >= PolicyVersion{0}) steps.insert(StepId{running.version.value});
  return {steps.begin(), steps.end()};
}

}  // namespace

std::optional<BestCheckpoint> best_saved(const RunView& view) {
  const auto& best = view.seen.statistics.best;
  if (!best || best->version.value > view.facts.learner.durable.value) return std::nullopt;
  return best;
}

void name_best(Turn& turn) {
  if (const auto best = best_saved(turn.view())) turn.send(NameBest{StepId{best->version.value}});
}

// A checkpoint is worth nothing without the events that tell which groups it covers: those are on
// the disk first.
void ask_checkpoint(Turn& turn) {
  turn.survive_power_cut();
  turn.seen.learner.save_asked = turn.now;
  turn.tell_learner(
      messages::SaveCheckpoint{*turn.facts.learner.checkpoint_awaited, steps_to_keep(turn.view())});
}

void take(Turn& turn, const messages::CheckpointSaved& saved) {
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
  if (const auto best = best_saved(turn.view()); best && best->version.value == saved.step.value)
    name_best(turn);
  turn.record_hash();
  turn.wake();
}

}  // namespace tandem::exchange
