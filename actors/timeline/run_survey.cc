#include "actors/timeline/run_survey.h"

#include <algorithm>
#include <string>
#include <variant>

namespace tandem::timeline {

void RunSurvey::take(const exchange::JournalEntry& entry) {
  now_ = std::max(now_, from_ms(entry.time_ms));  // a clock may be set back
  if (!begun_) {
    begun_ = now_;
    whole_ = std::holds_alternative<exchange::RunBegan>(entry.event);
  }
  if (const auto* resumed = std::get_if<exchange::RunResumed>(&entry.event))
    resumed_from_.push_back(resumed->checkpoint);
  const auto* trained = std::get_if<exchange::StepTrained>(&entry.event);
  if (!trained || trained->groups.empty()) return;  // a repeated step is none of its own
  const std::int64_t step = trained->step.value + 1;
  if (!first_known_) first_known_ = step;
  last_known_ = std::max(last_known_.value_or(0), step);
  if (first_.step && step == *first_.step - 1) step_before_ = now_;
  if (last_.step && step == *last_.step) step_last_ = now_;
}

Result<TraceRange> RunSurvey::range() const {
  if (!begun_)
    return Error{ErrorCode::kNotFound, "the run's journal has no events yet", "",
                 "try again once it has begun"};
  const std::int64_t steps = last_known_.value_or(0);
  const auto beyond = [&](const TraceBound& bound) { return bound.step && *bound.step > steps; };
  if (beyond(first_))
    return Error{ErrorCode::kInvalid,
                 "--from " + std::to_string(*first_.step) + ": the run has trained " +
                     std::to_string(steps) + (steps == 1 ? " step" : " steps"),
                 "", "give a step from 1 on, or a time such as 90s"};
  TraceRange range{*begun_, now_};
  const auto at = [&](double seconds) {
    // A bound far beyond the run is the run's end.
    const auto span = static_cast<double>(now_ - *begun_) + 1;
    return *begun_ + static_cast<TraceTime>(std::min(seconds * 1e6, span));
  };
  if (first_.step) range.first = step_before_.value_or(*begun_);
  if (first_.seconds) range.first = at(*first_.seconds);
  if (last_.step) range.last = step_last_.value_or(now_);
  if (last_.seconds) range.last = std::min(at(*last_.seconds), now_);
  if (range.first > range.last || range.first > now_)
    return Error{ErrorCode::kInvalid, "nothing of the run lies between --from and --to", "",
                 "the run lasted " + std::to_string((now_ - *begun_) / 1'000'000) +
                     "s, and --to must not come before --from"};
  return range;
}

bool RunSurvey::is_lost(StepId step, std::size_t resumptions) const {
  const auto later = resumed_from_.begin() +
                     static_cast<std::ptrdiff_t>(std::min(resumptions, resumed_from_.size()));
  return std::any_of(later, resumed_from_.end(),
                     [step](StepId checkpoint) { return checkpoint <= step; });
}

}  // namespace tandem::timeline
