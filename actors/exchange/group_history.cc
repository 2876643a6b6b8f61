// Rows arrive in the order of the journal, so the last word on a group wins. Text formats are read
// leniently, since journals of older runs have fewer figures: a figure that a row lacks stays
// unset.
#include "actors/exchange/group_history.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "actors/exchange/evaluation.h"
#include "actors/exchange/evaluation_json.h"
#include "runtime/base/json.h"

namespace tandem::actors {
namespace {

std::optional<scheduler::DiscardReason> reason_named(const std::string& name) {
  for (std::size_t i = 0; i < scheduler::kDiscardReasons; ++i) {
    const auto reason = static_cast<scheduler::DiscardReason>(i);
    if (name == scheduler::name(reason)) return reason;
  }
  return std::nullopt;
}

// True for a discard by the end of an incarnation, of which a resumed run knows nothing.
bool of_job_end(scheduler::DiscardReason reason) {
  return reason == scheduler::DiscardReason::kJobFinished ||
         reason == scheduler::DiscardReason::kCancelled;
}

}  // namespace

void GroupHistory::take(const JournalEvent& event) {
  if (event.kind == "evaluated") return take_evaluated(event);
  if (event.kind == "totals") return take_totals(event);
  if (event.kind == "retrained") ++steps_repeated_;
  if (event.group == 0) return;
  const GroupId id{static_cast<std::uint64_t>(event.group)};
  RestoredGroup& group = groups_[id];
  if (event.kind == "admitted") {  // again, if an incarnation began from an older checkpoint
    group = {.group = id, .position = event.position};
    scheduler::Slot slot{.step = StepId{event.step}};
    if (std::sscanf(event.detail.c_str(), "%d/%d", &slot.index, &slot.attempt) == 2)
      group.slot = slot;
  } else if (event.kind == "trained") {
    ++trainings_;
    group.trained_at = StepId{event.step};
  } else if (event.kind == "discarded") {
    const auto reason = reason_named(event.detail);
    // The end of an incarnation discards all live groups; a resumed run generates them again.
    if (reason && !of_job_end(*reason)) group.discarded = reason;
  }
}

// Reads "KIND=MEAN scored=COUNT failed=COUNT" and, of an evaluation with more figures, " figures="
// followed by figures_json(). MEAN may be "none". Journals of runs that did not count scored
// completions have no `scored`.
void GroupHistory::take_evaluated(const JournalEvent& event) {
  constexpr std::string_view kFigures = " figures=";
  const std::size_t figures = event.detail.find(kFigures);
  const std::string detail = event.detail.substr(0, figures);
  const auto equals = detail.find('=');
  if (equals == std::string::npos) return;
  Evaluated evaluated{.kind = detail.substr(0, equals), .version = event.version};
  if (figures != std::string::npos)
    evaluated.figures =
        figures_from(parse_json(std::string_view(event.detail).substr(figures + kFigures.size())));
  RewardFigures& all = evaluated.figures.all;
  const char* const text = detail.c_str() + equals + 1;
  char* end = nullptr;
  const double mean = std::strtod(text, &end);
  if (end != text) all.mean = mean;
  if (const auto failed = detail.rfind('='); failed != equals)
    all.failed = std::strtoll(detail.c_str() + failed + 1, nullptr, 10);
  constexpr std::string_view kCount = " scored=";
  if (const auto scored = detail.find(kCount); scored != std::string::npos)
    all.scored = std::strtoll(detail.c_str() + scored + kCount.size(), nullptr, 10);
  evaluated_.push_back(std::move(evaluated));
}

void GroupHistory::take_totals(const JournalEvent& event) {
  auto totals = totals_from(event.detail);
  if (!totals) return;
  trained_[StepId{event.step}] = std::move(totals->trained);
  statistics_.work = totals->work;
  if (totals->publish_seconds) statistics_.add_publish_seconds(*totals->publish_seconds);
}

std::vector<RestoredGroup> GroupHistory::at(StepId checkpoint) const {
  std::vector<RestoredGroup> restored;
  for (const auto& [id, group] : groups_) {
    restored.push_back(group);
    if (group.trained_at && *group.trained_at >= checkpoint) restored.back().trained_at.reset();
  }
  return restored;
}

std::int64_t GroupHistory::retrained(StepId checkpoint, std::int64_t groups_per_step) const {
  const auto below = std::count_if(groups_.begin(), groups_.end(), [&](const auto& group) {
    return group.second.trained_at && *group.second.trained_at < checkpoint;
  });
  return trainings_ - below + steps_repeated_ * groups_per_step;
}

RunStatistics GroupHistory::statistics(StepId checkpoint, std::int64_t steps_total) const {
  RunStatistics statistics = statistics_;
  if (const auto at = trained_.find(checkpoint); at != trained_.end())
    statistics.trained = at->second;
  for (const Evaluated& one : evaluated_) {
    if (one.version > checkpoint.value) continue;
    // A run whose total steps were raised had its last evaluation at the earlier end.
    const bool of_earlier_end =
        one.kind == name(EvaluationKind::kFinal) && one.version < steps_total;
    statistics.add_evaluation(of_earlier_end ? name(EvaluationKind::kPeriodic) : one.kind,
                              one.figures);
  }
  return statistics;
}

}  // namespace tandem::actors
