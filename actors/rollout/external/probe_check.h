// Whether a server computes with the version that it was given: its log-probabilities of the probe
// (actors/model/probe.h) beside the learner's. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace tandem::rollout {

struct ProbeCheck {
  std::span<const float> served;    // by the server
  std::span<const float> expected;  // by the learner, under the version
  std::span<const float> before;    // by the learner, under the version that it had; may be empty
  double tolerance = 0.1;           // of the mean difference, in nats
};

// Why not, as the end of a sentence; nothing where it does. Small steps change log-probabilities by
// less than two kinds of arithmetic differ. So a server that is within the tolerance is wrong as
// well where it is twice as close to the version before.
std::optional<std::string> probe_fault(const ProbeCheck& check);

}  // namespace tandem::rollout
