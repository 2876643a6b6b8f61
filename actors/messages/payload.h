// What a rollout made of one group: the bytes behind a PayloadRef. Only the learner (tokens), the
// reward (texts) and `tandem samples` open it; the exchange decides on headers alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"

namespace tandem::actors {

struct VersionSpan {  // completion tokens [begin, end) were sampled by `version`
  PolicyVersion version;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};
TANDEM_WIRE(VersionSpan, version, begin, end)

struct Trajectory {
  std::vector<std::int32_t> tokens;   // [T] completion only, the stop token included
  std::vector<float> logprobs;        // [T] of softmax(logits / temperature), natural log
  std::vector<VersionSpan> versions;  // cover [0, T) without gaps
  PolicyVersion oldest;               // among its tokens and the KV that they read
  std::string text;                   // decoded, without special tokens and stop strings
  bool truncated = false;             // ended by max_response_length
  // The text with its special tokens, where it has any besides the stop token at its end.
  std::optional<std::string> special_text;
};
TANDEM_WIRE(Trajectory, tokens, logprobs, versions, oldest, text, truncated, special_text)

struct GroupPayload {
  GroupId group;
  std::uint32_t attempt = 0;
  std::string prompt;
  std::vector<std::int32_t> prompt_tokens;
  std::vector<Trajectory> trajectories;  // [n]
};
TANDEM_WIRE(GroupPayload, group, attempt, prompt, prompt_tokens, trajectories)

// Why this cannot be what a rollout made of `group`; whoever opens a payload asks first.
std::optional<std::string> misfit(const GroupPayload& payload, GroupId group);

}  // namespace tandem::actors
