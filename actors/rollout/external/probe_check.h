// Whether a server computes with the version that it was given: its log-probabilities of the probe
// (actors/model/probe.h) beside the learner's. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace tandem::rollout {

struct ProbeScores {
  std::span<const float> served;    // by the server
  std::span<const float> expected;  // by the learner
};

struct ProbeCheck {
  ProbeScores now;         // of the version that is to be installed
  ProbeScores before;      // of the version that this server had; may be empty
  double tolerance = 0.1;  // of the mean difference, in nats
};

// Differences below this share of the tolerance tell nothing.
inline constexpr double kTellingShare = 0.04;

// Why the server is not right, as the end of a sentence; nothing where it is. Small steps change
// log-probabilities by less than two kinds of arithmetic differ, so that a server may be within the
// tolerance with the version before. It has that one where the learner's have changed tellingly,
// and the server's by less than a tenth as much: where the weights are new they change by more, if
// only by rounding (in bf16 they were seen to change by half as much as the learner's).
std::optional<std::string> probe_fault(const ProbeCheck& check);

}  // namespace tandem::rollout
