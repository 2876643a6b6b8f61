#include "actors/rollout/engine.h"

#include <algorithm>

namespace tandem::rollout {

std::int64_t evaluation_seqs(const EngineConfig& config) {
  const double seqs = config.evaluation_share * static_cast<double>(config.args.max_num_seqs);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(seqs));
}

messages::GroupHeader header_of(const messages::GroupPayload& payload, wire::PayloadRef ref) {
  messages::GroupHeader header{
      .group = payload.group,
      .attempt = payload.attempt,
      .prompt_tokens = static_cast<std::int32_t>(payload.prompt_tokens.size()),
      .payload = std::move(ref)};
  for (const messages::Trajectory& trajectory : payload.trajectories) {
    PolicyVersion newest = trajectory.oldest;
    for (const messages::VersionSpan& span : trajectory.versions)
      newest = std::max(newest, span.version);
    header.trajectories.push_back(
        {.oldest = trajectory.oldest,
         .newest = newest,
         .completion_tokens = static_cast<std::int32_t>(trajectory.tokens.size()),
         .finish = trajectory.truncated ? messages::FinishReason::kLength
                                        : messages::FinishReason::kStop});
  }
  return header;
}

}  // namespace tandem::rollout
