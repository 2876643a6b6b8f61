// The tables of alerts and panels name what /metrics has, and the files of configs/monitoring are
// what the code prints. That docs/metrics.md has the families and labels of the code is a test of
// its own (metrics_reference_test.cc).
//
// Tests actors/api/alert_rules.h, actors/api/monitoring_files.h.
#include "actors/api/alert_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "actors/api/monitoring_files.h"
#include "runtime/base/json.h"
#include "tests/generated_page.h"
#include "tests/reference_page.h"

namespace tandem::api {
namespace {

using Labels = std::set<std::string>;

// Each family of /metrics with its labels.
std::map<std::string, Labels> documented_families() {
  std::map<std::string, Labels> families{{"up", {"job"}}};  // of Prometheus itself
  static const std::regex code("`([^`]+)`");
  for (const TableRow& row : table_rows("metrics.md", "Families of `/metrics`")) {
    Labels& labels = families[row.at(0).substr(1, row.at(0).size() - 2)];
    for (std::sregex_iterator at(row.at(2).begin(), row.at(2).end(), code), end; at != end; ++at)
      labels.insert((*at)[1]);
  }
  return families;
}

TEST(AlertRules, NameWhatMetricsHas) {  // AR-1
  const auto families = documented_families();
  for (const AlertRule& rule : alert_rules()) {
    SCOPED_TRACE(rule.name);
    const auto known = families.find(rule.figure.family);
    if (known == families.end()) {
      ADD_FAILURE() << "docs/metrics.md has no " << rule.figure.family;
      continue;
    }
    const Labels& labels = known->second;
    if (rule.figure.label) {
      EXPECT_TRUE(labels.contains(rule.figure.label));
    }
    if (rule.against) {  // series are compared one by one
      const auto against = families.find(rule.against->family);
      ASSERT_NE(against, families.end()) << rule.against->family;
      EXPECT_EQ(against->second, labels);
    }
    for (const AlertUnless& unless : rule.unless)
      for (const char* const family : {unless.family, unless.times})
        if (family) {
          const auto other = families.find(family);
          ASSERT_NE(other, families.end()) << family;
          EXPECT_EQ(other->second, labels);
        }
    if (rule.steps_min > 0) {
      EXPECT_EQ(labels, families.at("tandem_step"));
    }
    for (const std::string_view text : {rule.summary, rule.advice}) {
      if (text.find("{job}") != text.npos) {
        EXPECT_TRUE(labels.contains("tandem_job")) << text;
      }
      if (text.find("{actor}") != text.npos) {
        EXPECT_TRUE(labels.contains("actor")) << text;
      }
      if (text.find("{journal}") != text.npos) {
        EXPECT_TRUE(labels.contains("journal")) << text;
      }
      if (text.find("{directory}") != text.npos) {
        EXPECT_TRUE(labels.contains("directory")) << text;
      }
    }
  }
}

TEST(AlertRules, AJobsFirstMinuteRaisesNone) {  // AR-2
  std::set<std::string> names;
  for (const AlertRule& rule : alert_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_TRUE(std::regex_match(rule.name, std::regex("Tandem([A-Z][a-z]+)+"))) << rule.name;
    EXPECT_GE(rule.lasts, std::chrono::minutes(1)) << rule.name;
    EXPECT_TRUE(rule.steps_min == 0 || rule.steps_min == kAlertStepsMin) << rule.name;
  }
}

TEST(AlertRules, ThePageListsEach) {
  std::set<std::vector<std::string>> documented, rules;
  for (const TableRow& row : table_rows("guides/alerts.md", "Alerts")) documented.insert(row);
  for (const AlertRule& rule : alert_rules())
    rules.insert({std::string("`") + rule.name + "`", name(rule.severity),
                  "`" + expression(rule) + "`", duration_text(rule.lasts)});
  EXPECT_EQ(documented, rules);
}

// What it means, and what to type first.
TEST(AlertRules, ThePageSaysWhatToDo) {
  std::set<std::vector<std::string>> documented, rules;
  for (const TableRow& row : table_rows("guides/alerts.md", "What each means"))
    documented.insert(row);
  for (const AlertRule& rule : alert_rules()) {
    const AlertSubject words{
        .job = "JOB", .actor = "ACTOR", .journal = "JOURNAL", .directory = "DIRECTORY"};
    const std::string text = filled(rule.advice, words, "N");
    EXPECT_EQ(text.rfind("tandem ", 0), 0u) << rule.name << " begins with a command: " << text;
    rules.insert({std::string("`") + rule.name + "`", filled(rule.summary, words, "N"),
                  "`" + text.substr(0, text.find(';')) + "`"});
  }
  EXPECT_EQ(documented, rules);
}

TEST(AlertRules, PeopleReadFiguresInTheirUnits) {
  AlertRule rule{.unit = AlertUnit::kSeconds};
  EXPECT_EQ(value_text(rule, 0.8125), "812.5ms");
  EXPECT_EQ(value_text(rule, 7.5), "7.5s");
  EXPECT_EQ(value_text(rule, 936.4), "15m 36s");
  EXPECT_EQ(value_text(rule, 7205), "2h 0m 5s");
  EXPECT_EQ(value_text(rule, 93'600), "1d 2h 0m 0s");
  rule.unit = AlertUnit::kShare;
  EXPECT_EQ(value_text(rule, 0.3104), "31 %");
  rule.unit = AlertUnit::kBytes;
  EXPECT_EQ(value_text(rule, 812), "812 B");
  EXPECT_EQ(value_text(rule, 4.5 * (1 << 30)), "4.5 GiB");
  rule.unit = AlertUnit::kNumber;
  EXPECT_EQ(value_text(rule, 2.5), "2.5");
}

TEST(AlertRules, AConditionIsPromQl) {
  std::map<std::string, std::string> conditions;
  for (const AlertRule& rule : alert_rules()) conditions[rule.name] = expression(rule);
  EXPECT_EQ(conditions["TandemTrainerIdle"],
            "tandem_trainer_idle_fraction_recent > 0.25 and tandem_step >= 10 unless "
            "tandem_staleness_bound < 1");
  EXPECT_EQ(conditions["TandemCostDrift"],
            "tandem_cost_per_step > 1.25 * avg_over_time(tandem_cost_per_step[1h] offset 1h) and "
            "tandem_cost_per_step offset 2h and tandem_step >= 10");
  EXPECT_EQ(conditions["TandemNoProgress"],
            "tandem_seconds_since_progress > 600 and tandem_step >= 10 unless "
            "tandem_seconds_since_progress < 3 * tandem_seconds_per_step unless tandem_steps_left "
            "< 1");
  EXPECT_EQ(conditions["TandemDiskNearlyFull"],
            "tandem_disk_free_bytes < 0.05 * tandem_disk_size_bytes unless "
            "tandem_disk_free_bytes >= 1e+10");
  EXPECT_EQ(conditions["TandemNodeLost"], "tandem_nodes{state=\"Lost\"} > 0");
  EXPECT_EQ(conditions["TandemSampleTooOld"],
            "tandem_oldest_sample_age_steps > tandem_staleness_bound");
}

TEST(AlertRules, DurationsAreThoseOfPromQl) {
  using std::chrono::minutes;
  EXPECT_EQ(duration_text(minutes(5)), "5m");
  EXPECT_EQ(duration_text(minutes(60)), "1h");
  EXPECT_EQ(duration_text(minutes(75)), "1h15m");
  EXPECT_EQ(duration_text(minutes(120)), "2h");
}

TEST(MonitoringFiles, PanelsNameWhatMetricsHas) {
  const auto families = documented_families();
  static const std::regex family(R"((tandem_|vllm:)\w+(?=[\{\[\s\)]|$))");
  static const std::regex label(R"((\w+)=~?")");
  for (const Panel& panel : panels())
    for (const PanelLine& line : panel.lines) {
      if (!line.expression) continue;
      SCOPED_TRACE(line.expression);
      std::string text = panel_expression(line);
      // Labels to sum by are no families.
      text = std::regex_replace(text, std::regex(R"(sum by \(\w+\) )"), "sum");
      std::set<std::string> found;
      for (std::sregex_iterator at(text.begin(), text.end(), family), end; at != end; ++at)
        found.insert(at->str());
      EXPECT_EQ(found.size(), 1u);
      for (const std::string& name : found) {
        const auto known = families.find(name);
        if (known == families.end()) {
          ADD_FAILURE() << "docs/metrics.md has no " << name;
          continue;
        }
        Labels allowed = known->second;
        allowed.insert("job");  // Prometheus' own
        for (std::sregex_iterator at(text.begin(), text.end(), label), end; at != end; ++at)
          EXPECT_TRUE(allowed.contains((*at)[1])) << (*at)[1];
      }
    }
}

// What Grafana reads of a dashboard that is imported from a file.
TEST(MonitoringFiles, TheDashboardIsOneOfGrafana) {
  const nlohmann::json dashboard = parse_json(grafana_dashboard());
  EXPECT_GE(dashboard.at("schemaVersion"), 30);
  std::set<std::string> variables;
  for (const auto& variable : dashboard.at("templating").at("list"))
    variables.insert(variable.at("name").get<std::string>());
  EXPECT_EQ(variables, (std::set<std::string>{"datasource", "scrape", "job"}));
  std::set<int> ids;
  std::set<std::string> drawn;
  for (const auto& panel : dashboard.at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second);
    EXPECT_EQ(panel.at("datasource").at("uid"), "${datasource}");
    EXPECT_LE(panel.at("gridPos").at("x").get<int>() + panel.at("gridPos").at("w").get<int>(), 24);
    ASSERT_FALSE(panel.at("targets").empty());
    std::set<std::string> refs;
    for (const auto& target : panel.at("targets")) {
      EXPECT_TRUE(refs.insert(target.at("refId").get<std::string>()).second);
      EXPECT_FALSE(target.at("expr").get<std::string>().empty());
    }
  }
  for (const Panel& panel : panels())
    if (panel.alert) drawn.insert(panel.alert);
  for (const AlertRule& rule : alert_rules()) drawn.erase(rule.name);
  EXPECT_EQ(drawn, std::set<std::string>()) << "a panel names an alert that is not there";
}

TEST(MonitoringFiles, AreWhatTheCodePrints) {
  const std::string folder = TANDEM_SOURCE_DIR "/configs/monitoring/";
  expect_page(folder + "tandem.rules.yaml", prometheus_rules());
  expect_page(folder + "grafana-dashboard.json", grafana_dashboard());
}

}  // namespace
}  // namespace tandem::api
