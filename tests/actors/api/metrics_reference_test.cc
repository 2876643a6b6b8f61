// docs/metrics.md has one row for each name that the code writes, and no other.
//
// Tests actors/api/prometheus.h, actors/exchange/step_figures.h.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "actors/api/prometheus.h"
#include "runtime/base/json.h"
#include "tests/actors/api/exposition.h"
#include "tests/actors/controller/scenario.h"
#include "tests/reference_page.h"

namespace tandem::api {
namespace {

constexpr const char* kPage = "metrics.md";

// The page's name for keys of which a job has several.
std::string pattern_of(const std::string& key) {
  const std::string source =
      std::regex_replace(key, std::regex("^val/[^/]+/reward/"), "val/SOURCE/reward/");
  const std::string extra = std::regex_replace(source, std::regex("/extra/[^/]+/"), "/extra/KEY/");
  const std::string wait =
      std::regex_replace(extra, std::regex("/recent/wait_s/.+"), "/recent/wait_s/WAIT");
  return std::regex_replace(wait, std::regex("@[0-9]+$"), "@k");
}

TEST(MetricsReference, HasEachKeyOfMetricsJsonl) {
  const auto cluster = controller::cluster_of(1);
  controller::SimulatedJob job = controller::plain_job(1);
  job.validation_prompts = 20;  // some keys are of evaluated jobs only
  job.exchange.test_freq = 5;
  job.exchange.budget.steps_total = 100;  // rates are measured over seconds
  job.exchange.evaluation.sampling = {.n = 4, .temperature = 1, .greedy = true};
  job.data_sources = {"math", "code"};
  job.scorer.fails = 0.05;
  job.scorer.says_more = true;
  job.exchange.pricing = scheduler::Pricing{.rollout = 2.1, .learner = 4};
  const std::string id = controller::run_job(*cluster, job);
  const auto run = cluster->run_of(id);
  std::set<std::string> written;
  for (const std::string& text : run->record.metrics_lines) {
    const nlohmann::json line = parse_json(text);
    for (const auto& [key, value] : line.items()) written.insert(pattern_of(key));
  }
  EXPECT_EQ(codes_of(table_rows(kPage, "Keys of `metrics.jsonl`")), written);
}

// The page of a cluster that has a value in every family.
std::string prometheus_page() {
  const std::string id = "arith-1", actor = "arith-1/rollout/0";
  controller::JobRecord job{.id = id, .ladder = scheduler::RestartLadder({})};
  controller::RankRecord rank{.alive = true};
  rank.usage = node::RankUsage{.cpu_percent = 1, .memory_bytes = 1};
  job.actors[actor] = controller::ActorRecord{
      .name = actor, .job = id, .role = messages::Role::kRollout, .ranks = {rank}};
  job.autoscaling.on = true;
  job.desired[messages::Role::kRollout] = 1;
  controller::ClusterView cluster{};
  cluster.jobs.push_back(std::move(job));
  messages::ExchangeReport report;
  const messages::RewardFigures figures{
      .mean = 0.5, .greedy = 0.5, .pass = {{1, 0.5}}, .scored = 97, .failed = 3};
  report.status.eval = messages::EvaluationFigures{.all = figures, .sources = {{"math", figures}}};
  report.status.cost.per_step = report.status.cost.total = 0.1;
  report.status.broadcasts = report.status.broadcast_failures = 1;
  report.status.rates =
      scheduler::FleetRates{.steps = 1, .rollouts = {{.actor = actor}}, .prefix_hit_ratio = 0.5};
  report.status.gap = scheduler::FleetGap{};
  report.status.step_s = report.status.since_progress_s = 1;
  report.last_step = {.ppo_kl = 0.1, .entropy = 0.1, .logprob_diff_max_at_staleness_0 = 0.1};
  report.loads.push_back({.actor = actor, .engine = messages::RolloutStats{}});
  report.ledger.discarded.emplace_back("reward_failed", 1);
  ExchangeReports reports;
  reports[id] = std::move(report);
  return prometheus_text(cluster, reports, HomeDisk{.directory = "/home/u/.tandem"});
}

using Family = std::tuple<std::string, std::string, std::set<std::string>>;  // name, type, labels

// `a` and `b` of "`a`, `b`".
std::set<std::string> codes_in(const std::string& cell) {
  const std::regex code("`([^`]+)`");
  std::set<std::string> codes;
  for (std::sregex_iterator at(cell.begin(), cell.end(), code), end; at != end; ++at)
    codes.insert((*at)[1]);
  return codes;
}

TEST(MetricsReference, HasEachFamilyOfPrometheus) {
  std::set<Family> documented, written;
  for (const TableRow& row : table_rows(kPage, "Families of `/metrics`"))
    documented.emplace(*codes_in(row.at(0)).begin(), row.at(1), codes_in(row.at(2)));
  for (const MetricFamily& family : read_exposition(prometheus_page())) {
    EXPECT_FALSE(family.samples.empty()) << family.name;
    for (const ExpositionSample& sample : family.samples) {
      std::set<std::string> labels;
      for (const auto& [label, value] : sample.labels)
        if (label != "le") labels.insert(label);  // "le" is documented once
      written.emplace(family.name, family.type, labels);
    }
  }
  EXPECT_EQ(documented, written);
}

}  // namespace
}  // namespace tandem::api
