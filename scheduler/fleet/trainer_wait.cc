#include "scheduler/fleet/trainer_wait.h"

namespace tandem::scheduler {

// The first answer that holds: a learner that saves would not train a batch that were there, and
// while enough groups are generated the rollouts hold nothing up.
TrainerWait trainer_wait(const TrainerState& state) {
  using enum TrainerWait;
  if (!state.up) return kLearner;
  if (state.trains) return kNone;
  if (state.saves) return kCheckpoint;
  if (state.held_up) return kEvaluation;
  if (state.scored < state.step_groups && state.scored + state.generated >= state.step_groups)
    return kScores;
  if (state.evaluates) return kEvaluation;
  if (state.rollouts == 0) return kRollouts;
  if (state.admitted == 0) return kLast;
  if (state.rolling == 0) return kWeights;
  // A rollout with room may not have a group where the budget waits for those in work.
  return state.room ? kLast : kSamples;
}

}  // namespace tandem::scheduler
