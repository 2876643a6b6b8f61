#include "actors/api/alert_watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tandem::api {
namespace {

using std::chrono::minutes;

std::int64_t minute_of(Time time) { return time.ns / Duration(minutes(1)).count(); }

bool is_of(const AlertFigure& figure, const std::string& labels) {
  return !figure.label || label_in(labels, figure.label) == figure.value;
}

bool compares(AlertHolds holds, double figure, double threshold) {
  switch (holds) {
    case AlertHolds::kAbove:
      return figure > threshold;
    case AlertHolds::kBelow:
      return figure < threshold;
    case AlertHolds::kAtLeast:
      return figure >= threshold;
  }
  return false;
}

// How far back the means of the rules reach, in minutes.
std::int64_t reach(std::span<const AlertRule> rules) {
  minutes most{0};
  for (const AlertRule& rule : rules) {
    most = std::max(most, rule.figure.mean_over + rule.figure.before);
    if (rule.against) most = std::max(most, rule.against->mean_over + rule.against->before);
  }
  return most.count();
}

}  // namespace

std::optional<std::string> label_in(std::string_view labels, std::string_view name) {
  while (!labels.empty()) {
    const std::size_t equals = labels.find("=\"");
    if (equals == labels.npos) return std::nullopt;
    const std::string_view found = labels.substr(0, equals);
    std::string value;
    std::size_t at = equals + 2;
    for (; at < labels.size() && labels[at] != '"'; ++at) {
      const bool escaped = labels[at] == '\\' && at + 1 < labels.size();
      if (escaped) ++at;
      value += escaped && labels[at] == 'n' ? '\n' : labels[at];
    }
    if (found == name) return value;
    labels.remove_prefix(std::min(labels.size(), at + 2));  // the quote, and a comma
  }
  return std::nullopt;
}

std::string summary(const Alert& alert) {
  return filled(alert.rule->summary, alert.subject, value_text(*alert.rule, alert.value));
}

std::string advice(const Alert& alert) {
  return filled(alert.rule->advice, alert.subject, value_text(*alert.rule, alert.value));
}

std::vector<std::string> AlertWatch::families() const {
  std::set<std::string> all{"tandem_step"};
  for (const AlertRule& rule : rules_) {
    all.insert(rule.figure.family);
    if (rule.against) all.insert(rule.against->family);
    for (const AlertUnless& unless : rule.unless)
      for (const char* const family : {unless.family, unless.times})
        if (family) all.insert(family);
  }
  return {all.begin(), all.end()};
}

void AlertWatch::remember(const Values& values, Time now) {
  std::set<std::string> averaged;
  for (const AlertRule& rule : rules_) {
    if (rule.figure.mean_over > minutes(0)) averaged.insert(rule.figure.family);
    if (rule.against && rule.against->mean_over > minutes(0)) averaged.insert(rule.against->family);
  }
  const std::int64_t number = minute_of(now), oldest = number - reach(rules_);
  for (const auto& [series, value] : values) {
    if (!averaged.contains(series.first) || std::isnan(value)) continue;
    if (means_.size() >= kAlertsKept && !means_.contains(series)) continue;
    std::deque<Minute>& kept = means_[series];
    if (kept.empty() || kept.back().number != number) kept.push_back({.number = number});
    kept.back().sum += value;
    ++kept.back().count;
  }
  for (auto& [series, kept] : means_)
    while (!kept.empty() && kept.front().number < oldest) kept.pop_front();
  std::erase_if(means_, [](const auto& series) { return series.second.empty(); });
}

std::optional<double> AlertWatch::value_of(const AlertFigure& figure, const Series& series,
                                           const Values& values, Time now) const {
  if (figure.mean_over == minutes(0)) {
    const auto known = values.find(series);
    return known == values.end() ? std::nullopt : std::optional(known->second);
  }
  const auto kept = means_.find(series);
  if (kept == means_.end()) return std::nullopt;
  const std::int64_t last = minute_of(now) - figure.before.count(),
                     first = last - figure.mean_over.count();
  if (kept->second.front().number > first) return std::nullopt;
  double sum = 0;
  std::int64_t count = 0;
  for (const Minute& minute : kept->second) {
    if (minute.number <= first || minute.number > last) continue;
    sum += minute.sum;
    count += minute.count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

bool AlertWatch::holds(const AlertRule& rule, const std::string& labels, double figure,
                       const Values& values, Time now) const {
  double threshold = rule.threshold;
  if (rule.against) {
    const auto other = value_of(*rule.against, {rule.against->family, labels}, values, now);
    if (!other) return false;
    threshold *= *other;
  }
  if (rule.steps_min > 0) {
    const auto step = values.find({"tandem_step", labels});
    if (step == values.end() || step->second < static_cast<double>(rule.steps_min)) return false;
  }
  for (const AlertUnless& unless : rule.unless) {
    if (!unless.family) break;
    const auto known = values.find({unless.family, labels});
    if (known == values.end()) continue;
    double limit = unless.threshold;
    if (unless.times) {
      const auto times = values.find({unless.times, labels});
      if (times == values.end()) continue;
      limit *= times->second;
    }
    if (compares(unless.holds, known->second, limit)) return false;
  }
  return compares(rule.holds, figure, threshold);
}

std::vector<AlertNews> AlertWatch::look(const std::vector<MetricSample>& samples, Time now,
                                        const std::set<std::string>& unheard) {
  Values values;
  for (const MetricSample& sample : samples) values[{sample.family, sample.labels}] = sample.value;
  remember(values, now);
  std::vector<AlertNews> news;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const AlertRule& rule = rules_[i];
    const std::string family = rule.figure.family;
    for (auto at = values.lower_bound({family, ""});
         at != values.end() && at->first.first == family; ++at) {
      const std::string& labels = at->first.second;
      const auto figure = value_of(rule.figure, at->first, values, now);
      if (!is_of(rule.figure, labels) || !figure || !holds(rule, labels, *figure, values, now))
        continue;
      const bool is_new = !standing_.contains({i, labels});
      if (is_new && standing_.size() >= kAlertsKept) continue;
      Standing& standing = standing_[{i, labels}];
      if (is_new) {
        standing.since = now;
        standing.alert = {.rule = &rule,
                          .subject = {.job = label_in(labels, "tandem_job").value_or(""),
                                      .actor = label_in(labels, "actor").value_or(""),
                                      .journal = label_in(labels, "journal").value_or(""),
                                      .directory = label_in(labels, "directory").value_or("")}};
      }
      standing.seen = now;
      standing.alert.value = *figure;
      if (standing.fires_since || now - standing.since < rule.lasts) continue;
      standing.fires_since = standing.alert.since = now;
      news.push_back({.alert = standing.alert, .fires = true});
    }
  }
  std::erase_if(standing_, [&](const auto& one) {
    const Standing& standing = one.second;
    const auto& [rule, labels] = one.first;
    if (standing.seen == now) return false;
    if (unheard.contains(standing.alert.subject.job) &&
        !values.contains({rules_[rule].figure.family, labels}))
      return false;
    if (standing.fires_since) news.push_back({.alert = standing.alert, .fires = false});
    return true;
  });
  return news;
}

std::vector<Alert> AlertWatch::firing() const {
  std::vector<Alert> alerts;
  for (const auto& [key, standing] : standing_)
    if (standing.fires_since) alerts.push_back(standing.alert);
  return alerts;
}

}  // namespace tandem::api
