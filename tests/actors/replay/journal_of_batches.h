// The events by which an exchange journals a batch that was trained.
#pragma once

#include <vector>

#include "actors/exchange/state/journal_event.h"
#include "actors/replay/journal_steps.h"
#include "actors/runs/batch_log.h"

namespace tandem::replay {

inline std::vector<exchange::JournalEvent> events_of(const runs::RecordedBatch& batch,
                                                     std::uint64_t checksum) {
  std::vector<exchange::JournalEvent> events;
  std::vector<GroupId> groups;
  for (const messages::TrainGroup& group : batch.step.groups) {
    events.emplace_back(exchange::GroupGenerated{
        .holder = {}, .header = {.group = group.group, .payload = group.payload}});
    events.emplace_back(
        exchange::GroupScored{.group = group.group, .lease = {}, .rewards = group.rewards});
    groups.push_back(group.group);
  }
  events.emplace_back(exchange::BatchFormed{batch.step.step, groups});
  events.emplace_back(exchange::StepTrained{
      .step = batch.step.step, .learner = {}, .checksum = checksum, .groups = groups});
  return events;
}

inline void take_all(JournalSteps& steps, const std::vector<exchange::JournalEvent>& events) {
  for (const exchange::JournalEvent& event : events) steps.take(event);
}

}  // namespace tandem::replay
