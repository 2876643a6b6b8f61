#include "actors/replay/difference.h"

#include <bit>
#include <cstdio>
#include <span>

#include "runtime/base/digest.h"

namespace tandem::replay {
namespace {

std::string number(std::size_t count) { return std::to_string(count); }

std::string exact(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

std::optional<std::string> score_difference(const JournalGroup& journal,
                                            const std::vector<float>& trained,
                                            const std::string& group) {
  if (journal.rewards.size() != trained.size())
    return "the journal has " + number(journal.rewards.size()) + " scores of " + group + ", and " +
           number(trained.size()) + " were trained";
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (std::bit_cast<std::uint32_t>(journal.rewards[i]) !=
        std::bit_cast<std::uint32_t>(trained[i]))
      return "the score of completion " + number(i) + " of " + group + " is " +
             exact(journal.rewards[i]) + " in the journal, and " + exact(trained[i]) +
             " was trained";
  return {};
}

}  // namespace

std::optional<std::string> difference(const JournalStep& journal,
                                      const runs::RecordedBatch& recorded) {
  const auto& groups = recorded.step.groups;
  if (journal.groups.size() != groups.size())
    return "the journal's batch has " + number(journal.groups.size()) + " groups, and " +
           number(groups.size()) + " were trained";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const JournalGroup& told = journal.groups[i];
    const std::string group = "group " + std::to_string(groups[i].group.value);
    if (told.group != groups[i].group)
      return "place " + number(i) + " of the batch has group " + std::to_string(told.group.value) +
             " in the journal, and " + group + " was trained there";
    if (auto found = score_difference(told, groups[i].rewards, group)) return found;
    const std::string& payload = recorded.payloads[i];
    if (told.payload_checksum !=
        checksum64(std::as_bytes(std::span(payload.data(), payload.size()))))
      return "the tokens of " + group +
             " were trained from other bytes than the journal has the checksum of";
  }
  return {};
}

}  // namespace tandem::replay
