#include "actors/learner/train_batch.h"

#include <algorithm>
#include <utility>

#include "runtime/wire/codec.h"

namespace tandem::learner {
namespace {

Error refuse(const messages::TrainGroup& group, const std::string& why) {
  return {.message = "the payload of group " + std::to_string(group.group.value) +
                     " cannot be trained on: " + why};
}

// Texts and version spans are dropped here: ranks do not need them, and the batch is broadcast.
Result<BatchGroup> make_group(const messages::TrainGroup& header, messages::GroupPayload payload) {
  if (const auto why = misfit(payload, header.group)) return refuse(header, *why);
  if (payload.trajectories.size() != header.rewards.size())
    return refuse(header, std::to_string(payload.trajectories.size()) + " trajectories, but " +
                              std::to_string(header.rewards.size()) + " rewards");
  BatchGroup group{header.group, std::move(payload.prompt_tokens), {}};
  for (std::size_t i = 0; i < header.rewards.size(); ++i) {
    messages::Trajectory& t = payload.trajectories[i];
    group.trajectories.push_back(
        {std::move(t.tokens), std::move(t.logprobs), t.oldest, header.rewards[i], t.truncated});
  }
  return group;
}

}  // namespace

Result<void> check_batch(const TrainBatch& batch, std::int64_t vocab_size,
                         std::int64_t positions_max) {
  const auto known = [&](const std::vector<std::int32_t>& tokens) {
    return std::ranges::all_of(tokens, [&](std::int32_t t) { return t >= 0 && t < vocab_size; });
  };
  for (const BatchGroup& group : batch.groups) {
    const std::string name = "group " + std::to_string(group.group.value);
    for (const TrainTrajectory& trajectory : group.trajectories) {
      if (!known(group.prompt) || !known(trajectory.tokens))
        return Error{ErrorCode::kInvalid, name + " has a token that the model does not have"};
      if (std::ssize(group.prompt) + std::ssize(trajectory.tokens) > positions_max)
        return Error{ErrorCode::kInvalid, name + " has a trajectory of more than " +
                                              std::to_string(positions_max) + " tokens"};
    }
  }
  return {};
}

Result<TrainBatch> make_train_batch(const messages::TrainStep& step,
                                    std::vector<std::string> payloads) {
  CHECK(payloads.size() == step.groups.size());
  TrainBatch batch{step.step, {}};
  batch.groups.reserve(payloads.size());
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    Result<messages::GroupPayload> payload = wire::decode<messages::GroupPayload>(payloads[i]);
    if (!payload) return refuse(step.groups[i], payload.error().message);
    Result<BatchGroup> group = make_group(step.groups[i], *std::move(payload));
    if (!group) return group.error();
    batch.groups.push_back(*std::move(group));
  }
  return batch;
}

}  // namespace tandem::learner
