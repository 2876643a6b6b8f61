// docs/metrics.md has one row for each name that the code writes, and no other.
#include <gtest/gtest.h>

#include <cstddef>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "actors/controller/prometheus.h"
#include "runtime/base/json.h"
#include "tests/actors/controller/exposition.h"
#include "tests/actors/controller/scenario.h"
#include "tests/reference_page.h"

namespace tandem::actors {
namespace {

constexpr const char* kPage = "metrics.md";

TEST(MetricsReference, HasEachKeyOfMetricsJsonl) {
  const auto cluster = cluster_of(1);
  SimulatedJob job = plain_job(1);
  job.validation_prompts = 20;  // some keys are of evaluated jobs only
  job.exchange.test_freq = 5;
  const std::string id = run_job(*cluster, job);
  const auto run = cluster->run_of(id);
  std::set<std::string> written;
  for (const std::string& text : run->record.metrics_lines) {
    const nlohmann::json line = parse_json(text);
    for (const auto& [key, value] : line.items()) written.insert(key);
  }
  EXPECT_EQ(codes_of(table_rows(kPage, "Keys of `metrics.jsonl`")), written);
}

// Of a cluster that has something to say in every family.
std::string prometheus_page() {
  const std::string id = "arith-1", actor = "arith-1/rollout/0";
  JobRecord job{.id = id, .ladder = scheduler::RestartLadder({})};
  RankRecord rank{.alive = true};
  rank.usage = runtime::RankUsage{.cpu_percent = 1, .memory_bytes = 1};
  job.actors[actor] =
      ActorRecord{.name = actor, .job = id, .role = Role::kRollout, .ranks = {rank}};
  ClusterView cluster{};
  cluster.jobs.push_back(std::move(job));
  ExchangeReport report;
  report.status.eval_last = 0.5;
  report.last_step = {.logprob_diff_max_at_staleness_0 = 0.1};
  report.loads.push_back({.actor = actor, .engine = RolloutStats{}});
  report.ledger.discarded.emplace_back("reward_failed", 1);
  ExchangeReports reports;
  reports[id] = std::move(report);
  return prometheus_text(cluster, reports);
}

// "`tandem_job`, `actor`" of `vllm:prompt_tokens_total{tandem_job="…",actor="…"} 3`; the bound of a
// histogram's bucket is left out, as every histogram has it.
std::string labels_of(const std::string& sample) {
  const std::regex label("([a-z_]+)=\"");
  std::string labels;
  for (std::sregex_iterator at(sample.begin(), sample.end(), label), end; at != end; ++at) {
    if ((*at)[1] == "le") continue;
    if (!labels.empty()) labels += ", ";
    labels += "`" + (*at)[1].str() + "`";
  }
  return labels;
}

// "`tandem_step` | gauge | `tandem_job`" of each family, as in the page's first three columns.
std::set<std::string> families_of(const std::string& text) {
  const std::string mark = "# TYPE ";
  std::set<std::string> families;
  std::size_t announced = 0;
  std::istringstream lines(text);
  std::string line, family;
  while (std::getline(lines, line)) {
    if (line.starts_with(mark)) {
      const std::size_t space = line.find(' ', mark.size());
      family =
          "`" + line.substr(mark.size(), space - mark.size()) + "` | " + line.substr(space + 1);
      ++announced;
    } else if (!line.starts_with("#")) {
      families.insert(family + " | " + labels_of(line));
    }
  }
  EXPECT_EQ(families.size(), announced) << "a family has no sample:\n" << text;
  return families;
}

TEST(MetricsReference, HasEachFamilyOfPrometheus) {
  std::set<std::string> rows;
  for (const TableRow& row : table_rows(kPage, "Families of `/metrics`"))
    rows.insert(row.at(0) + " | " + row.at(1) + " | " + row.at(2));
  const std::string page = prometheus_page();
  read_exposition(page);
  EXPECT_EQ(rows, families_of(page));
}

}  // namespace
}  // namespace tandem::actors
