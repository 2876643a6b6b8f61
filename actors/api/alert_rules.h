// The table of alerts: for each its name, the condition over families of /metrics, how long the
// condition must hold, and texts for people. From a row come both the rule in
// configs/monitoring/tandem.rules.yaml (monitoring_files.h) and the alert that the controller shows
// itself (alert_watch.h), so that the two cannot differ. Not here: when an alert fires.
//
//   AR-1  Each family and label that a row names is one of /metrics, or `up`, which is Prometheus'.
//   AR-2  A row about the figures of a job lasts a minute at least, so that a job's first minute
//         raises none of them; one about its steps also waits for kAlertStepsMin of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"

namespace tandem::api {

enum class AlertSeverity : std::uint8_t { kWarning, kCritical };
const char* name(AlertSeverity severity);  // "warning", "critical"

// A family of /metrics as it is now, or its mean over a time that ends now or earlier. There is a
// mean only of a series that was there when that time began.
struct AlertFigure {
  const char* family;
  const char* label = nullptr;  // set: the series that have `value` for this label alone
  const char* value = nullptr;
  std::chrono::minutes mean_over{0};  // 0: as it is now
  std::chrono::minutes before{0};     // the mean ends so long before now
};

enum class AlertHolds : std::uint8_t { kAbove, kBelow, kAtLeast };
// A job for which this holds raises no alert of the row; one whose figure is not known may.
struct AlertUnless {
  const char* family = nullptr;  // nullptr: there is no further exception
  AlertHolds holds = AlertHolds::kAbove;
  double threshold = 0;
  const char* times = nullptr;  // set: the threshold is so many times this family
};
// How people read the figure.
enum class AlertUnit : std::uint8_t { kNumber, kShare, kSeconds, kBytes };

inline constexpr std::int64_t kAlertStepsMin = 10;

struct AlertRule {
  const char* name;  // CamelCase, with the prefix Tandem
  AlertSeverity severity;
  AlertHolds holds = AlertHolds::kAbove;  // of the condition below
  AlertUnit unit = AlertUnit::kNumber;
  // The condition: `figure` is above, below or at least `threshold`, or `threshold` times
  // `against` where that is set, and no `unless` holds; all series have the same labels.
  AlertFigure figure;
  double threshold = 0;
  std::optional<AlertFigure> against = {};
  std::int64_t steps_min = 0;  // of the job; 0: the condition does not ask for steps
  AlertUnless unless[2] = {};
  std::chrono::minutes lasts;
  // A sentence, and what to do: a command first, to look or to mend, and more behind a semicolon.
  // {job}, {actor}, {journal}, {directory} and {value} are replaced.
  const char* summary;
  const char* advice;
};

std::span<const AlertRule> alert_rules();

// The condition in PromQL.
std::string expression(const AlertRule& rule);
std::string expression(const AlertFigure& figure);
std::string duration_text(std::chrono::minutes duration);  // "5m", "1h", "1h15m"

struct AlertSubject {
  std::string job = {}, actor = {}, journal = {}, directory = {};  // empty: it is about none
};
// `text` with the words in place of {job}, {actor}, {journal}, {directory} and {value}.
std::string filled(std::string_view text, const AlertSubject& subject, std::string_view value);
std::string value_text(const AlertRule& rule, double value);  // "31 %", "2.5", "15m 36s", "4.2 GiB"

}  // namespace tandem::api
