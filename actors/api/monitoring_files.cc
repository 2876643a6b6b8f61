// The dashboard has three variables: the data source, the scrape job, and the jobs of Tandem. Every
// expression is of one family, or of a few with the same labels, so that the choice of the job
// applies to each.
#include "actors/api/monitoring_files.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "actors/api/alert_rules.h"
#include "runtime/base/json.h"

namespace tandem::api {
namespace {

using nlohmann::json;

constexpr Panel kPanels[] = {
    {"Trainer idle",
     "The learner's waits for samples: measured over the newest steps, and as the rates of the two "
     "pools predict it.",
     "percentunit",
     {{"tandem_trainer_idle_fraction_recent{of}", "{{tandem_job}} measured"},
      {"tandem_trainer_idle_fraction_predicted{of}", "{{tandem_job}} predicted"}},
     "TandemTrainerIdle"},
    {"Rollouts idle",
     "The share of the rollouts' time in which their engines did nothing.",
     "percentunit",
     {{"tandem_rollout_idle_fraction{of}", "{{tandem_job}}"}}},
    {"Rollouts",
     "How many are up, and how many match the learner.",
     "short",
     {{"sum by (tandem_job) (tandem_actors{of, role=\"rollout\", state=~\"Ready|Busy\"})",
       "{{tandem_job}} up"},
      {"tandem_rollouts_matched{of}", "{{tandem_job}} matched"},
      {"tandem_autoscale_rollouts{of}", "{{tandem_job}} autoscale"}}},
    {"Tokens generated per second, by rollout",
     "A wide spread is a straggler or a placement, not a size.",
     "short",
     {{"rate(vllm:generation_tokens_total{of}[5m])", "{{actor}}"}}},
    {"Tokens per second",
     "Of all rollouts, and of the learner.",
     "short",
     {{"tandem_tokens_generated_per_second{of}", "{{tandem_job}} generated"},
      {"tandem_tokens_trained_per_second{of}", "{{tandem_job}} trained"}}},
    {"Tokens generated per token trained",
     "What is generated and not trained was discarded.",
     "short",
     {{"tandem_tokens_generated_per_trained_recent{of}", "{{tandem_job}}"}},
     "TandemTokensWasted"},
    {"Queue",
     "Groups generated and not yet in training, and how many may wait.",
     "short",
     {{"tandem_queue_depth{of}", "{{tandem_job}} waiting"},
      {"tandem_queue_limit{of}", "{{tandem_job}} limit"}}},
    {"Oldest sample, in steps",
     "How far the oldest sample that waits is behind, the staleness of what was trained, and the "
     "bound of both.",
     "short",
     {{"tandem_oldest_sample_age_steps{of}", "{{tandem_job}} oldest"},
      {"tandem_staleness_max{of}", "{{tandem_job}} trained"},
      {"tandem_staleness_bound{of}", "{{tandem_job}} bound"}}},
    {"Requests in the engines",
     "Running ones, and those that wait for a place in the batch.",
     "short",
     {{"sum by (tandem_job) (vllm:num_requests_running{of})", "{{tandem_job}} running"},
      {"sum by (tandem_job) (vllm:num_requests_waiting{of})", "{{tandem_job}} waiting"}}},
    {"Prefix cache hits",
     "The share of the prompts' tokens that were found in a prefix cache.",
     "percentunit",
     {{"tandem_prefix_cache_hit_ratio{of}", "{{tandem_job}}"}}},
    {"Install pause",
     "The share of the rollouts' time in which they installed weights.",
     "percentunit",
     {{"tandem_install_pause_fraction{of}", "{{tandem_job}}"}},
     "TandemInstallPauseLong"},
    {"Cost per step",
     "Of both pools, in the currency of the job's section pricing.",
     "short",
     {{"tandem_cost_per_step{of}", "{{tandem_job}}"}}},
    {"Goodput",
     "Useful trained tokens per second of a device, of both pools.",
     "short",
     {{"tandem_goodput_tokens_per_device_second{of}", "{{tandem_job}}"}}},
    {"Steps per hour", "", "short", {{"deriv(tandem_step{of}[10m]) * 3600", "{{tandem_job}}"}}},
    {"Reward",
     "Of the newest step, and of the newest evaluation.",
     "short",
     {{"tandem_reward_mean{of}", "{{tandem_job}} training"},
      {"tandem_evaluation_reward_mean{of}", "{{tandem_job}} evaluation"}}},
    {"Restarts and skipped steps",
     "Restarts of actors and steps without a finite gradient, in ten minutes.",
     "short",
     {{"sum by (tandem_job) (increase(tandem_actor_restarts_total{of}[10m]))",
       "{{tandem_job}} restarts"},
      {"increase(tandem_steps_skipped_total{of}[10m])", "{{tandem_job}} skipped"}}},
    {"Journals",
     "The slowest write of each in the newest minute or two.",
     "s",
     {{"tandem_journal_write_seconds{job=~\"$scrape\"}", "{{journal}}"}},
     "TandemJournalSlow"},
    {"Disk",
     "Of the controller's home, where runs and journals lie: its size, and what is free of it.",
     "bytes",
     {{"tandem_disk_free_bytes{job=~\"$scrape\"}", "{{directory}} free"},
      {"tandem_disk_size_bytes{job=~\"$scrape\"}", "{{directory}} size"}}},
    {"Nodes", "By state.", "short", {{"tandem_nodes{job=~\"$scrape\"}", "{{state}}"}}},
    {"Memory, by actor",
     "Resident memory of its processes.",
     "bytes",
     {{"tandem_actor_resident_memory_bytes{of}", "{{actor}}"}}},
};

// A text in double quotes, as YAML reads it: only these two need an escape.
std::string yaml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

const char* placeholder(AlertUnit unit) {
  switch (unit) {
    case AlertUnit::kNumber:
      return "{{ $value | humanize }}";
    case AlertUnit::kShare:
      return "{{ $value | humanizePercentage }}";
    case AlertUnit::kSeconds:
      return "{{ $value | humanizeDuration }}";
    case AlertUnit::kBytes:
      return "{{ $value | humanize1024 }}B";
  }
  return "";
}

// The text in which {job} and the like have become the placeholders that Prometheus fills in.
std::string annotation(const AlertRule& rule, const char* text) {
  return yaml_text(filled(text,
                          {.job = "{{ $labels.tandem_job }}",
                           .actor = "{{ $labels.actor }}",
                           .journal = "{{ $labels.journal }}",
                           .directory = "{{ $labels.directory }}"},
                          placeholder(rule.unit)));
}

constexpr const char* kSource = "${datasource}";
constexpr const char* kOfJob = R"(job=~"$scrape", tandem_job=~"$job")";

json datasource() { return {{"type", "prometheus"}, {"uid", kSource}}; }

json variable(const char* name, const char* label, const char* family, const char* of) {
  const std::string query = std::string("label_values(") + family + ", " + of + ")";
  return {{"type", "query"},
          {"name", name},
          {"label", label},
          {"datasource", datasource()},
          {"definition", query},
          {"query", {{"query", query}, {"refId", name}}},
          {"refresh", 2},  // when the time range changes: jobs come and go
          {"sort", 1},
          {"includeAll", true},
          {"allValue", ".*"},
          {"multi", true},
          {"current", {{"selected", true}, {"text", {"All"}}, {"value", {"$__all"}}}}};
}

// A line at the threshold of the alert, where that is a number.
json thresholds(const Panel& panel) {
  json steps = json::array({{{"color", "green"}, {"value", nullptr}}});
  for (const AlertRule& rule : alert_rules())
    if (panel.alert && panel.alert == std::string_view(rule.name) && !rule.against)
      steps.push_back({{"color", "red"}, {"value", rule.threshold}});
  return {{"mode", "absolute"}, {"steps", steps}};
}

json panel_json(const Panel& panel, std::size_t number) {
  constexpr int kHeight = 8, kWidth = 8, kInRow = 3;  // Grafana's grid has 24 columns
  const int at = static_cast<int>(number);
  json targets = json::array();
  for (const PanelLine& line : panel.lines) {
    if (!line.expression) break;
    targets.push_back({{"refId", std::string(1, static_cast<char>('A' + targets.size()))},
                       {"datasource", datasource()},
                       {"editorMode", "code"},
                       {"expr", panel_expression(line)},
                       {"legendFormat", line.legend},
                       {"range", true}});
  }
  return {
      {"id", at + 1},
      {"type", "timeseries"},
      {"title", panel.title},
      {"description", panel.about},
      {"datasource", datasource()},
      {"gridPos",
       {{"h", kHeight}, {"w", kWidth}, {"x", at % kInRow * kWidth}, {"y", at / kInRow * kHeight}}},
      {"fieldConfig",
       {{"defaults",
         {{"unit", panel.unit},
          {"min", 0},
          {"thresholds", thresholds(panel)},
          {"custom",
           {{"drawStyle", "line"},
            {"fillOpacity", 0},
            {"showPoints", "never"},
            {"thresholdsStyle", {{"mode", panel.alert ? "dashed" : "off"}}}}}}},
        {"overrides", json::array()}}},
      {"options",
       {{"legend", {{"displayMode", "list"}, {"placement", "bottom"}, {"showLegend", true}}},
        {"tooltip", {{"mode", "multi"}, {"sort", "desc"}}}}},
      {"targets", targets}};
}

}  // namespace

std::span<const Panel> panels() { return kPanels; }

std::string panel_expression(const PanelLine& line) {
  constexpr std::string_view kMark = "{of";
  std::string text = line.expression;
  for (std::size_t at = 0; (at = text.find(kMark, at)) != text.npos;)
    text.replace(at, kMark.size(), std::string("{") + kOfJob);
  return text;
}

std::string prometheus_rules() {
  std::string text =
      "# Prometheus' alerts of Tandem, made from actors/api/alert_rules.cc: a test fails where "
      "they\n"
      "# differ. docs/guides/alerts.md says how to use them.\n"
      "groups:\n"
      "  - name: tandem\n"
      "    rules:\n";
  for (const AlertRule& rule : alert_rules())
    text += std::string("      - alert: ") + rule.name +
            "\n        expr: " + yaml_text(expression(rule)) +
            "\n        for: " + duration_text(rule.lasts) +
            "\n        labels:\n          severity: " + name(rule.severity) +
            "\n        annotations:\n          summary: " + annotation(rule, rule.summary) +
            "\n          description: " + annotation(rule, rule.advice) + "\n";
  return text;
}

std::string grafana_dashboard() {
  json all = json::array();
  for (std::size_t i = 0; i < std::size(kPanels); ++i) all.push_back(panel_json(kPanels[i], i));
  const json source{{"type", "datasource"},  {"name", "datasource"}, {"label", "Data source"},
                    {"query", "prometheus"}, {"refresh", 1},         {"includeAll", false},
                    {"multi", false}};
  const json dashboard{
      {"title", "Tandem"},
      {"uid", "tandem-fleet"},
      {"tags", {"tandem"}},
      {"schemaVersion", 39},
      {"version", 1},
      {"editable", true},
      {"graphTooltip", 1},
      {"refresh", "30s"},
      {"time", {{"from", "now-6h"}, {"to", "now"}}},
      {"timezone", "browser"},
      {"annotations", {{"list", json::array()}}},
      {"links", json::array()},
      {"templating",
       {{"list",
         {source, variable("scrape", "Scrape job", "tandem_nodes", "job"),
          variable("job", "Job", "tandem_job_state{job=~\"$scrape\"}", "tandem_job")}}}},
      {"panels", all}};
  return dump_json(dashboard, 2) + "\n";
}

}  // namespace tandem::api
