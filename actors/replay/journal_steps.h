// What a run's journal says of each step that counts: which groups the batch had and in which
// order, their scores, the checksums of their payloads, and the checksum of the weights that the
// step ended in. Pure. Not here: whether the run's state fits its events (journal_replay.h), and
// what was trained in truth (runs/batch_log.h).
//
//   RJ-1  Steps beyond a checkpoint that the run went on from do not count; those that were trained
//         in their place do.
//   RJ-2  Any events are taken, in any order: a journal that was changed is told by what differs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/state/journal_event.h"
#include "runtime/base/ids.h"

namespace tandem::replay {

struct JournalGroup {
  GroupId group;
  std::uint64_t payload_checksum = 0;  // 0: the journal has no payload of the group
  std::vector<float> rewards;          // one for each completion
};

struct JournalStep {
  std::vector<JournalGroup> groups;  // in the order of training
  std::uint64_t checksum = 0;        // checksum64 of the weights that are published of the step
};

// Give take() all events in their order.
class JournalSteps {
 public:
  void take(const exchange::JournalEvent& event);

  // Trained steps, without gaps: from 0 on; where the journal's oldest events are summed up, from
  // the first one on behind which every step has all of its groups.
  const std::map<StepId, JournalStep>& steps() const { return trained_; }
  // weights_sha256 of checkpoints, by the number of steps that they cover.
  const std::map<StepId, std::string>& digests() const { return digests_; }
  // The checksum of a version outside a step: -1 and 0.
  std::optional<std::uint64_t> checksum(PolicyVersion version) const;

 private:
  void on(const exchange::RunBegan&) { begun_ = true; }
  void on(const exchange::GroupGenerated& event);
  void on(const exchange::GroupScored& event);
  void on(const exchange::GroupDiscarded& event);
  void on(const exchange::LiveDiscarded& event);
  void on(const exchange::StepTrained& event);
  void on(const exchange::RunResumed& event);
  void on(const exchange::VersionPublished& event);
  void on(const exchange::CheckpointKept& event);
  template <class Other>
  void on(const Other&) {}  // says nothing of a batch

  bool begun_ = false;                    // false: what came before is summed up
  std::map<GroupId, JournalGroup> live_;  // until they are trained or discarded
  std::map<StepId, JournalStep> trained_;
  std::map<StepId, std::string> digests_;
  std::map<PolicyVersion, std::uint64_t> versions_;
};

}  // namespace tandem::replay
