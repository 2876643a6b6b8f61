// A batch as a learner gets it, of any size: for tests of what keeps it and of what reads it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "actors/messages/payload.h"
#include "actors/runs/batch_log.h"
#include "runtime/base/digest.h"
#include "runtime/wire/codec.h"

namespace tandem::runs {

// `groups` groups of two completions, with `padding` bytes in each text. All differ by step and
// place.
inline RecordedBatch recorded_batch(std::int64_t step, std::uint64_t groups,
                                    std::size_t padding = 0) {
  RecordedBatch batch{.step = {.step = StepId{step}}};
  for (std::uint64_t g = 0; g < groups; ++g) {
    const GroupId group{static_cast<std::uint64_t>(step) * 100 + g};
    messages::GroupPayload payload{group, 0, "1+1=", {1, 2, 1, 3}, {}};
    for (std::int32_t i = 0; i < 2; ++i)
      payload.trajectories.push_back({.tokens = {i, 4},
                                      .logprobs = {-0.5f, -1.25f},
                                      .versions = {{PolicyVersion{step - 1}, 0, 2}},
                                      .oldest = PolicyVersion{step - 1},
                                      .text = std::string(padding, static_cast<char>('a' + g % 26)),
                                      .truncated = i == 1});
    std::string bytes = wire::encode(payload);
    const auto sum = checksum64(std::as_bytes(std::span(bytes.data(), bytes.size())));
    batch.step.groups.push_back({.group = group,
                                 .payload = {"here", 0, g, bytes.size(), sum},
                                 .rewards = {0.25f, static_cast<float>(g)}});
    batch.payloads.push_back(std::move(bytes));
  }
  return batch;
}

}  // namespace tandem::runs
