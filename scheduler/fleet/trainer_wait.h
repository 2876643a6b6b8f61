// What a trainer that has no batch waits for, as far as the state of its job tells at one moment.
// Pure. An exchange asks after each decision and sums the times (actors/exchange/fleet_window.h);
// fleet_gap.h says by them why a prediction and a measurement differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/enum_names.h"

namespace tandem::scheduler {

enum class TrainerWait : std::uint8_t {
  kNone,        // it is at work
  kLearner,     // to be up
  kCheckpoint,  // it saves one
  kEvaluation,  // rollouts generate an evaluation, or its version holds a publisher's place
  kScores,      // of groups enough are generated
  kRollouts,    // none is up
  kWeights,     // every group waits until a rollout has newer weights
  kLast,        // all groups that may be are in work: rollouts have room, and the budget has none
  kSamples,     // groups wait for rollouts, which have as many as they take
};
constexpr auto enum_names(TrainerWait) {
  using enum TrainerWait;
  return enum_name_rows<TrainerWait>({{kNone, "none"},
                                      {kLearner, "learner"},
                                      {kCheckpoint, "checkpoint"},
                                      {kEvaluation, "evaluation"},
                                      {kScores, "scores"},
                                      {kRollouts, "rollouts"},
                                      {kWeights, "weights"},
                                      {kLast, "last"},
                                      {kSamples, "samples"}});
}
inline constexpr std::size_t kTrainerWaits = 9;

// Seconds, by TrainerWait.
using WaitSeconds = std::array<double, kTrainerWaits>;

struct TrainerState {
  bool up = false;
  bool trains = false;           // or it publishes: it has been asked for something
  bool saves = false;            // a checkpoint, which it was asked for
  bool held_up = false;          // by the version of an evaluation
  bool evaluates = false;        // an evaluation is not generated yet
  std::int64_t rollouts = 0;     // up
  bool room = false;             // one of them, which does not drain, could take another group
  std::int64_t step_groups = 0;  // of a batch
  // Groups by state: kAdmitted, kRolling, those generated and not scored, kScored.
  std::int64_t admitted = 0, rolling = 0, generated = 0, scored = 0;
};
TrainerWait trainer_wait(const TrainerState& state);

}  // namespace tandem::scheduler
