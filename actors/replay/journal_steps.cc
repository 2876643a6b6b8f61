#include "actors/replay/journal_steps.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace tandem::replay {

void JournalSteps::take(const exchange::JournalEvent& event) {
  std::visit([this](const auto& what) { on(what); }, event);
}

std::optional<std::uint64_t> JournalSteps::checksum(PolicyVersion version) const {
  const auto known = versions_.find(version);
  return known == versions_.end() ? std::nullopt : std::optional(known->second);
}

// A group may be generated and scored again after it was leased again: the newest counts.
void JournalSteps::on(const exchange::GroupGenerated& event) {
  live_[event.header.group] = {.group = event.header.group,
                               .payload_checksum = event.header.payload.checksum,
                               .rewards = {}};
}

void JournalSteps::on(const exchange::GroupScored& event) {
  if (!begun_ && !live_.contains(event.group)) return;
  JournalGroup& group = live_[event.group];
  group.group = event.group;
  group.rewards = event.rewards;
}

void JournalSteps::on(const exchange::GroupDiscarded& event) { live_.erase(event.group); }

void JournalSteps::on(const exchange::LiveDiscarded& event) {
  for (const GroupId group : event.groups) live_.erase(group);
}

// A step that was only repeated has no groups here, and is known already: with the same checksum,
// unless a new lineage began.
void JournalSteps::on(const exchange::StepTrained& event) {
  if (event.groups.empty()) {
    if (const auto known = trained_.find(event.step); known != trained_.end())
      known->second.checksum = event.checksum;
    return;
  }
  const auto is_told = [this](GroupId group) { return live_.contains(group); };
  if (!begun_ && !std::ranges::all_of(event.groups, is_told)) return trained_.clear();
  JournalStep step{.groups = {}, .checksum = event.checksum};
  for (const GroupId group : event.groups) {
    auto known = live_.extract(group);
    step.groups.push_back(known ? std::move(known.mapped()) : JournalGroup{.group = group});
  }
  trained_.insert_or_assign(event.step, std::move(step));
}

void JournalSteps::on(const exchange::RunResumed& event) {
  trained_.erase(trained_.lower_bound(event.checkpoint), trained_.end());
  digests_.erase(digests_.upper_bound(event.checkpoint), digests_.end());
  live_.clear();
}

void JournalSteps::on(const exchange::VersionPublished& event) {
  const messages::Publication& published = event.publication;
  if (published.version <= PolicyVersion{0}) versions_[published.version] = published.checksum;
}

void JournalSteps::on(const exchange::CheckpointKept& event) {
  digests_[event.step] = event.weights_sha256;
}

}  // namespace tandem::replay
