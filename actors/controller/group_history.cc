#include "actors/controller/group_history.h"

#include <cstdio>
#include <cstdlib>

namespace tandem::actors {
namespace {

std::optional<scheduler::DiscardReason> reason_named(const std::string& name) {
  for (std::size_t i = 0; i < scheduler::kDiscardReasons; ++i) {
    const auto reason = static_cast<scheduler::DiscardReason>(i);
    if (name == scheduler::name(reason)) return reason;
  }
  return std::nullopt;
}

bool of_job_end(scheduler::DiscardReason reason) {
  return reason == scheduler::DiscardReason::kJobFinished ||
         reason == scheduler::DiscardReason::kCancelled;
}

}  // namespace

void GroupHistory::take(const JournalEvent& event) {
  if (event.kind == "evaluated") {
    const auto equals = event.detail.find('=');
    if (equals == std::string::npos) return;
    const char* const text = event.detail.c_str() + equals + 1;
    char* end = nullptr;
    const double mean = std::strtod(text, &end);
    if (end != text) evaluated_.push_back({event.detail.substr(0, equals), event.version, mean});
    return;
  }
  if (event.group == 0) return;
  const GroupId id{static_cast<std::uint64_t>(event.group)};
  RestoredGroup& group = groups_[id];
  if (event.kind == "admitted") {  // again, where a life began from an older checkpoint
    group = {.group = id, .position = event.position};
    scheduler::Slot slot{.step = StepId{event.step}};
    if (std::sscanf(event.detail.c_str(), "%d/%d", &slot.index, &slot.attempt) == 2)
      group.slot = slot;
  } else if (event.kind == "trained") {
    group.trained_at = StepId{event.step};
  } else if (event.kind == "discarded") {
    const auto reason = reason_named(event.detail);
    if (reason && !of_job_end(*reason)) group.discarded = reason;
  }
}

std::vector<RestoredGroup> GroupHistory::at(StepId checkpoint) const {
  std::vector<RestoredGroup> restored;
  for (const auto& [id, group] : groups_) {
    restored.push_back(group);
    if (group.trained_at && *group.trained_at >= checkpoint) restored.back().trained_at.reset();
  }
  return restored;
}

std::map<std::string, double> GroupHistory::evaluations(StepId checkpoint) const {
  std::map<std::string, double> means;
  for (const Evaluated& one : evaluated_)
    if (one.version <= checkpoint.value) means[one.kind] = means["last"] = one.mean;
  return means;
}

}  // namespace tandem::actors
