#include "actors/exchange/checkpoints.h"

#include <algorithm>
#include <set>
#include <vector>

#include "actors/exchange/checks.h"

namespace tandem::exchange {

namespace {

// The checkpoints that pruning must leave: the best one, and each whose evaluation is under way.
std::vector<StepId> steps_to_keep(const RunView& view) {
  if (view.config.best.key.empty()) return {};
  std::set<StepId> steps;
  if (const auto& best = view.seen.statistics.best) steps.insert(StepId{best->version.value});
  for (const auto& [id, running] : view.facts.evaluations.running)
    if (running.version >= PolicyVersion{0}) steps.insert(StepId{running.version.value});
  return {steps.begin(), steps.end()};
}

// Whether the step's batch ends an epoch, or several: a step may train more groups than one has.
bool ends_epochs(const RunView& view, std::int64_t step) {
  const auto prompts = static_cast<std::int64_t>(view.config.train.size());
  const std::int64_t size = view.config.save.epochs * prompts;
  const std::int64_t groups = view.config.budget.groups_per_step;
  return size > 0 && step * groups / size > (step - 1) * groups / size;
}

}  // namespace

bool falls_due(std::int64_t frequency, std::int64_t step) {
  return frequency > 0 && step % frequency == 0;
}

bool save_is_due(const RunView& view, StepId done) {
  const SaveSchedule& save = view.config.save;
  if (falls_due(save.steps, done.value) || ends_epochs(view, done.value)) return true;
  if (save.time <= Duration{}) return false;
  const auto since = std::max(view.seen.learner.save_asked, view.seen.statistics.running_since);
  return since && view.now - *since >= save.time;
}

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
  if (turn.seen.learner.away) return;  // it is asked once it is back (follow.h)
  turn.survive_power_cut();
  turn.seen.learner.save_asked = turn.now;
  turn.tell_learner(
      messages::SaveCheckpoint{*turn.facts.learner.checkpoint_awaited, steps_to_keep(turn.view())});
}

void take(Turn& turn, const messages::CheckpointSaved& saved) {
  const LearnerFacts& learner = turn.facts.learner;
  if (!learner.who || learner.who->incarnation != saved.from.incarnation) return;
  // It is told once more (LearnerBack).
  if (saved.step <= learner.durable && learner.checkpoint_awaited != saved.step) return;
  if (const auto why = misfit(turn.view(), saved)) return refuse(turn, saved.from, *why);
  turn.seen.statistics.weights_sha256 = saved.weights_sha256;
  const GroupFlow& flow = turn.facts.flow;
  if (saved.step > learner.durable) {
    // With the last checkpoint the run is over, and nothing is trained again.
    const bool falls_back = turn.config.checkpoints_kept > 1 && !turn.facts.end.asked &&
                            saved.step.value < turn.config.budget.steps_total;
    const StepId from = falls_back ? learner.durable : saved.step;
    for (const auto& [group, facts] : flow.entries) {
      const scheduler::GroupRecord& record = *flow.ledger.find(group);
      if (record.state != scheduler::GroupState::kTrained || *record.step >= from) continue;
      turn.send(ReleasePayload{facts.header->payload});
      turn.seen.groups.erase(group);
    }
    turn.record(BatchesKept{from});
  }
  turn.record(CheckpointKept{saved.step, saved.directory, saved.weights_sha256});
  if (const auto best = best_saved(turn.view()); best && best->version.value == saved.step.value)
    name_best(turn);
  turn.record_hash();
  turn.wake();
}

}  // namespace tandem::exchange
