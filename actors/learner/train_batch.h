// A training batch as the learner's ranks see it: tokens, log-probabilities and rewards, without
// texts. Rank 0 makes it from a TrainStep and the payloads that the TrainStep refers to, and then
// broadcasts it to the other ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/messages/learner.h"
#include "actors/messages/payload.h"
#include "runtime/base/result.h"

namespace tandem::learner {

struct TrainTrajectory {
  std::vector<std::int32_t> tokens;  // [T] completion, T >= 1
  std::vector<float> logprobs;       // [T] the behaviour policy's
  PolicyVersion oldest;              // as Trajectory's in actors/messages/payload.h
  float reward = 0;
  bool truncated = false;  // ended by max_response_length
};
TANDEM_WIRE(TrainTrajectory, tokens, logprobs, oldest, reward, truncated)

struct BatchGroup {
  GroupId group;
  std::vector<std::int32_t> prompt;           // >= 1 token
  std::vector<TrainTrajectory> trajectories;  // [n]
};
TANDEM_WIRE(BatchGroup, group, prompt, trajectories)

struct TrainBatch {
  StepId step;
  std::vector<BatchGroup> groups;  // [B], in the order of the TrainStep
};
TANDEM_WIRE(TrainBatch, step, groups)

// Makes a batch. `payloads` are encoded GroupPayloads in the order of step.groups. The error
// (kFailed) names the group whose payload cannot be decoded, belongs to another group, has another
// number of trajectories than rewards, or contradicts itself.
Result<TrainBatch> make_train_batch(const messages::TrainStep& step,
                                    std::vector<std::string> payloads);

// Checks the limits that the decoder CHECKs, since a batch comes from other processes. kInvalid: a
// token is not in the model's vocabulary, or a trajectory with its prompt is longer than
// positions_max.
Result<void> check_batch(const TrainBatch& batch, std::int64_t vocab_size,
                         std::int64_t positions_max);

}  // namespace tandem::learner
