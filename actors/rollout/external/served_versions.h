// The versions of one server: what it calls them, and what proves that it computes with them. Pure.
//
//   SW-1  No two pushes give their weights the same label: another lineage may have a version of
//         the same number, and a prefix cache must not mix the two.
//   SW-2  A label is known from its push until no open request can have tokens of its version, and
//         never again after the weights were refuted, or the versions went back to an older one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/rollout/external/probe_check.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace tandem::rollout {

class ServedVersions {
 public:
  // Versions are called PREFIX-VERSION-PUSH.
  ServedVersions(std::string prefix, double tolerance)
      : prefix_(std::move(prefix)), tolerance_(tolerance) {}

  // A push of `version` begins: returns its label.
  const std::string& begin(PolicyVersion version);
  // The weights of that label were not the version's; another label for the next push of it.
  const std::string& refuted();
  // The push is over. Labels of versions before `oldest_open` are forgotten.
  void installed(PolicyVersion oldest_open);

  // What the learner's log-probabilities of the probe are under a version; empty: not known. Later
  // versions that were told before are of another lineage, and forgotten.
  void expect(PolicyVersion version, std::vector<float> scores);
  // Whether the server computes with the version that is pushed, by what it gives. Without an
  // expectation it does. kInvalid: it never was proved right, so that it may have another model or
  // another arithmetic; kFailed: it was.
  Result<void> prove(std::vector<float> served);
  bool proven() const { return expected_.contains(pushed_); }

  std::optional<PolicyVersion> version() const { return installed_; }
  const std::string& label() const { return label_; }  // of what the server has, or is given
  const std::map<std::string, PolicyVersion>& labels() const { return labels_; }

 private:
  const std::string prefix_;
  const double tolerance_;
  PolicyVersion pushed_;
  std::optional<PolicyVersion> installed_;
  std::string label_;
  std::uint64_t pushes_ = 0;
  std::map<std::string, PolicyVersion> labels_;
  std::map<PolicyVersion, std::vector<float>> expected_;  // by the learner
  std::vector<float> served_, served_before_;             // by the server
  bool proved_ = false;                                   // some version was
};

}  // namespace tandem::rollout
