// The bytes behind a PayloadRef: all that a rollout generated for one group. Only the learner
// (which needs tokens), reward actors (which need texts) and `tandem samples` open a payload; the
// exchange decides on headers (GroupHeader in rollout.h) alone.
//
// A payload is written once by a rollout and never changed (SS-1 in segment_store.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"

namespace tandem::messages {

struct VersionSpan {  // completion tokens [begin, end) were sampled by `version`
  PolicyVersion version;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};
TANDEM_WIRE(VersionSpan, version, begin, end)

// One completion.
struct Trajectory {
  std::vector<std::int32_t> tokens;   // [T] completion only, the stop token included
  std::vector<float> logprobs;        // [T] of softmax(logits / temperature), natural log
  std::vector<VersionSpan> versions;  // cover [0, T) without gaps
  // The oldest version among those that sampled the tokens and those that computed the keys and
  // values which the tokens read. Staleness is measured from this version.
  PolicyVersion oldest;
  std::string text;        // decoded, without special tokens and stop strings
  bool truncated = false;  // ended by max_response_length
  // The text with its special tokens. Empty where the completion has none besides the stop token at
  // its end, so that the text says the same.
  std::optional<std::string> special_text;
};
TANDEM_WIRE(Trajectory, tokens, logprobs, versions, oldest, text, truncated, special_text)

// The content of a payload, encoded by runtime/wire/codec.h.
struct GroupPayload {
  GroupId group;
  std::uint32_t attempt = 0;                // the lease under which the rollout generated
  std::string prompt;                       // as the job's dataset has it
  std::vector<std::int32_t> prompt_tokens;  // at least one
  std::vector<Trajectory> trajectories;     // [n]
};
TANDEM_WIRE(GroupPayload, group, attempt, prompt, prompt_tokens, trajectories)

// Returns why `payload` cannot be a rollout's answer for `group`, or nothing where it can: another
// group, no prompt, or token and log-probability counts that differ. The learner and reward actors
// ask this before they use a payload. Version spans are not checked.
std::optional<std::string> misfit(const GroupPayload& payload, GroupId group);

}  // namespace tandem::messages
