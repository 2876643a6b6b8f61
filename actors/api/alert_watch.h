// Which alerts of the table (alert_rules.h) fire: a pure core over samples of /metrics, with the
// semantics of Prometheus. An alert of a series is pending from the first look at which its
// condition holds, fires once the condition has held for the rule's time, and is over at the first
// look at which the condition does not hold or the series is gone. Times come from the caller.
//
//   AW-1  For a row and a series there is at most one alert; its beginning and its end are each
//         told once, in turn.
//   AW-2  An alert fires only if its condition held at every look since `lasts` before that had its
//         series.
//   AW-3  It remembers at most kAlertsKept series; further ones raise no alert.
//   AW-4  An alert stands as it was while its job is unheard of and its series is not there.
//
// Means over a time (AlertFigure::mean_over) are those of the samples that this watch has seen.
// There is none of a series whose first sample is younger than that time's beginning.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/api/alert_rules.h"
#include "runtime/base/clock.h"

namespace tandem::api {

// A sample of /metrics; `labels` is the text between the braces there.
struct MetricSample {
  std::string family;
  std::string labels;
  double value = 0;
};
// The value of a label; nullopt where there is none of this name.
std::optional<std::string> label_in(std::string_view labels, std::string_view name);

struct Alert {
  const AlertRule* rule = nullptr;  // in alert_rules(), or in the watch's own table
  AlertSubject subject;
  double value = 0;  // of the rule's figure at the last look at which the condition held
  Time since{};      // when it began to fire
};
std::string summary(const Alert& alert);
std::string advice(const Alert& alert);

struct AlertNews {
  Alert alert;
  bool fires = false;  // false: it is over
};

inline constexpr std::size_t kAlertsKept = 10'000;

class AlertWatch {
 public:
  explicit AlertWatch(std::span<const AlertRule> rules = alert_rules()) : rules_(rules) {}

  // The families whose samples look() needs.
  std::vector<std::string> families() const;
  // Takes all samples of one moment, later than those before. Returns what begins and what ends.
  // `unheard`: jobs under way of which samples are missing, since they did not answer.
  std::vector<AlertNews> look(const std::vector<MetricSample>& samples, Time now,
                              const std::set<std::string>& unheard = {});
  std::vector<Alert> firing() const;  // in the order of the table, then of the labels
  std::size_t series_remembered() const { return standing_.size() + means_.size(); }

 private:
  struct Standing {
    Time since{};  // when the condition began to hold
    Time seen{};   // the last look at which it held
    std::optional<Time> fires_since;
    Alert alert;
  };
  // Sums of a minute each, oldest first.
  struct Minute {
    std::int64_t number = 0;
    double sum = 0;
    std::int64_t count = 0;
  };
  using Series = std::pair<std::string, std::string>;  // family and labels
  using Values = std::map<Series, double>;

  void remember(const Values& values, Time now);
  std::optional<double> value_of(const AlertFigure& figure, const Series& series,
                                 const Values& values, Time now) const;
  bool holds(const AlertRule& rule, const std::string& labels, double figure, const Values& values,
             Time now) const;

  const std::span<const AlertRule> rules_;
  std::map<std::pair<std::size_t, std::string>, Standing> standing_;  // by rule and labels
  std::map<Series, std::deque<Minute>> means_;  // of the families of which a rule takes a mean
};

}  // namespace tandem::api
