// /metrics of clusters that a test makes, and of simulated ones while actors die.
#include "actors/api/prometheus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "tests/actors/api/exposition.h"
#include "tests/actors/controller/scenario.h"
#include "tests/actors/messages/latency_counts.h"
#include "tests/seeds.h"

namespace tandem::api {
namespace {

const bool kQuiet = (log::mute(), true);

controller::JobRecord job_in(scheduler::JobState state, const std::string& id) {
  controller::JobRecord job{.id = id, .ladder = scheduler::RestartLadder({})};
  job.status.state = state;
  const std::string actor = id + "/rollout/0";
  job.actors[actor] =
      controller::ActorRecord{.name = actor, .job = id, .role = messages::Role::kRollout};
  return job;
}

// The samples of a family, as they are written.
std::vector<std::string> lines_of(const std::string& text, const std::string& family) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(family)) found.push_back(line);
  return found;
}

using Lines = std::vector<std::string>;

TEST(Prometheus, AHistogramIsCumulative) {
  messages::RolloutStats stats{.preemptions = 4};
  stats.latencies.token.counts[0] = 7;
  stats.latencies.token.counts[2] = 2;
  stats.latencies.token.counts.back() = 1;
  stats.latencies.token.sum = 81.5;
  messages::ExchangeReport report;
  report.loads.push_back({.actor = "j-1/rollout/0", .engine = stats});
  report.loads.push_back({.actor = "j-1/learner/0"});
  const std::string text = prometheus_text({}, {{"j-1", report}});
  read_exposition(text);
  const std::string name = "vllm:inter_token_latency_seconds",
                    labels = R"({tandem_job="j-1",actor="j-1/rollout/0")";
  Lines expected;
  const Lines bounds{"0.01", "0.025", "0.05", "0.075", "0.1", "0.15", "0.2",  "0.3",  "0.4", "0.5",
                     "0.75", "1.0",   "2.5",  "5.0",   "7.5", "10.0", "20.0", "40.0", "80.0"};
  for (std::size_t i = 0; i < bounds.size(); ++i)
    expected.push_back(name + "_bucket" + labels + ",le=\"" + bounds[i] +
                       (i < 2 ? "\"} 7.0" : "\"} 9.0"));
  expected.push_back(name + "_bucket" + labels + ",le=\"+Inf\"} 10.0");
  expected.push_back(name + "_sum" + labels + "} 81.5");
  expected.push_back(name + "_count" + labels + "} 10.0");
  EXPECT_EQ(lines_of(text, name), expected);
  EXPECT_NE(text.find("# TYPE " + name + " histogram\n"), std::string::npos);
  EXPECT_EQ(lines_of(text, "vllm:num_preemptions_total"),
            Lines{"vllm:num_preemptions_total" + labels + "} 4.0"})
      << "of the rollout alone";
}

// What people who run vLLM type, word for word: `grep -E` and queries with and without the suffix
// that clients of Prometheus add. tests/monitoring evaluates the queries.
TEST(Prometheus, TheCommandsOfFleetRunbooksFindTheEngines) {
  messages::ExchangeReport report;
  report.loads.push_back({.actor = "j-1/rollout/0", .engine = messages::RolloutStats{}});
  const std::string text = prometheus_text({}, {{"j-1", report}});
  const std::string guide =
      read_file(TANDEM_SOURCE_DIR "/docs/guides/alerts.md", std::uint64_t{1} << 20).value();
  for (const std::string words :
       {"vllm:generation_tokens|vllm:num_requests_running|vllm:num_requests_waiting",
        "vllm:prefix_cache_hits|vllm:prefix_cache_queries"}) {
    EXPECT_NE(guide.find("grep -E '" + words + "'"), std::string::npos) << words;
    std::istringstream each(words);
    for (std::string word; std::getline(each, word, '|');)
      EXPECT_EQ(lines_of(text, word).size(), 1u) << "grep -E '" << words << "' finds no " << word;
  }
  EXPECT_EQ(lines_of(text, "vllm:generation_tokens_total{").size(), 1u)
      << "rate(vllm:generation_tokens_total[5m])";
}

TEST(Prometheus, SamplesAreThoseOfTheText) {
  controller::ClusterView cluster{};
  cluster.jobs.push_back(job_in(scheduler::JobState::kRunning, "j-1"));
  cluster.nodes = {{.name = "a", .up = true}, {.name = "b"}, {.name = "c"}};
  ExchangeReports reports;
  reports["j-1"].status.disk_full = "no space left";
  const std::vector<std::string> families{"tandem_nodes", "tandem_disk_waits",
                                          "tandem_actor_crash_loop", "no_such_family"};
  Lines expected, found;
  const std::string text = prometheus_text(cluster, reports);
  for (const MetricSample& sample : metric_samples(cluster, reports, {}, families))
    found.push_back(sample.family + "{" + sample.labels + "} " + dump_json(sample.value));
  for (const std::string& family : families)
    for (std::string& line : lines_of(text, family)) expected.push_back(std::move(line));
  std::ranges::sort(expected);
  std::ranges::sort(found);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.size(), 4u);
  cluster.journal_write_s = 0.25;
  reports["j-1"].status.journal_write_s = 0.5;
  EXPECT_EQ(lines_of(prometheus_text(cluster, reports), "tandem_journal_write_seconds"),
            (Lines{"tandem_journal_write_seconds{tandem_job=\"\",journal=\"controller\"} 0.25",
                   "tandem_journal_write_seconds{tandem_job=\"j-1\",journal=\"j-1\"} 0.5"}));
  EXPECT_EQ(lines_of(text, "tandem_nodes{state=\"Lost\"}"),
            Lines{"tandem_nodes{state=\"Lost\"} 2.0"});
}

TEST(Prometheus, UnknownValuesAreAbsent) {
  controller::ClusterView cluster{};
  cluster.jobs.push_back(job_in(scheduler::JobState::kRunning, "j-1"));
  ExchangeReports reports;
  messages::ExchangeReport& report = reports["j-1"];
  const Lines unknown{"tandem_reward_mean",
                      "tandem_loss",
                      "tandem_kl",
                      "tandem_entropy",
                      "tandem_grad_norm",
                      "tandem_learning_rate",
                      "tandem_rollout_idle_fraction",
                      "tandem_oldest_sample_age_steps",
                      "tandem_logprob_diff_max",
                      "tandem_logprob_diff_mean",
                      "tandem_steps_skipped_in_row",
                      "tandem_trainer_idle_fraction_recent",
                      "tandem_trainer_idle_fraction_predicted",
                      "tandem_rollouts_matched",
                      "tandem_rollout_tokens_per_second",
                      "tandem_seconds_per_step",
                      "tandem_seconds_since_progress",
                      "tandem_install_pause_seconds",
                      "tandem_install_bytes",
                      "tandem_install_pause_fraction",
                      "tandem_prefix_cache_hit_ratio",
                      "tandem_tokens_generated_per_trained_recent",
                      "tandem_evaluation_reward_mean",
                      "tandem_actor_resident_memory_bytes",
                      "tandem_actor_cpu_percent"};
  const std::string before = prometheus_text(cluster, reports);
  read_exposition(before);
  for (const std::string& name : unknown) {
    EXPECT_NE(before.find("# TYPE " + name + " gauge\n"), std::string::npos) << name;
    EXPECT_EQ(lines_of(before, name), Lines{});
  }
  EXPECT_EQ(lines_of(before, "tandem_actor_restarts_total").size(), 1u) << "none so far is known";

  report.last_step = {.loss = -0.5, .grad_norm = std::numeric_limits<double>::quiet_NaN()};
  report.status.eval = messages::EvaluationFigures{
      .all = {.mean = 0.25, .pass = {{1, 0.25}, {8, 0.75}}, .scored = 8},
      .sources = {{"math", {.mean = 0.5, .pass = {{8, 1}}}}, {"code", {.failed = 3}}}};
  controller::RankRecord rank{.alive = true};
  rank.usage = node::RankUsage{.cpu_percent = 50, .memory_bytes = 1000};
  cluster.jobs[0].actors.begin()->second.ranks = {rank, rank, {}};
  const std::string after = prometheus_text(cluster, reports);
  read_exposition(after);
  EXPECT_EQ(lines_of(after, "tandem_loss"), Lines{R"(tandem_loss{tandem_job="j-1"} -0.5)"});
  EXPECT_EQ(lines_of(after, "tandem_grad_norm"),
            Lines{R"(tandem_grad_norm{tandem_job="j-1"} NaN)"});
  EXPECT_EQ(lines_of(after, "tandem_logprob_diff_max"), Lines{}) << "no token of staleness 0";
  EXPECT_EQ(lines_of(after, "tandem_evaluation_reward_mean"),
            Lines{R"(tandem_evaluation_reward_mean{tandem_job="j-1"} 0.25)"});
  EXPECT_EQ(lines_of(after, "tandem_evaluation_pass_at_k"),
            (Lines{R"(tandem_evaluation_pass_at_k{tandem_job="j-1",k="1"} 0.25)",
                   R"(tandem_evaluation_pass_at_k{tandem_job="j-1",k="8"} 0.75)"}));
  EXPECT_EQ(lines_of(after, "tandem_evaluation_reward_greedy"), Lines{});
  EXPECT_EQ(lines_of(after, "tandem_evaluation_source_reward_mean"),
            Lines{R"(tandem_evaluation_source_reward_mean{tandem_job="j-1",source="math"} 0.5)"});
  EXPECT_EQ(
      lines_of(after, "tandem_evaluation_source_pass_at_k"),
      Lines{R"(tandem_evaluation_source_pass_at_k{tandem_job="j-1",source="math",k="8"} 1.0)"});
  EXPECT_EQ(lines_of(after, "tandem_evaluation_source_failed").size(), 2u);
  EXPECT_EQ(
      lines_of(after, "tandem_actor_resident_memory_bytes"),
      Lines{
          R"(tandem_actor_resident_memory_bytes{tandem_job="j-1",actor="j-1/rollout/0",role="rollout"} 2000.0)"});
  EXPECT_EQ(lines_of(after, "tandem_actor_cpu_percent").size(), 1u);
}

TEST(Prometheus, OnlyAJobWithPricesHasACost) {
  ExchangeReports reports;
  reports["free-1"].status.cost = {.rollout_device_seconds = 30, .goodput = 12.5};
  reports["paid-1"].status.cost = {.rollout_device_seconds = 30,
                                   .learner_device_seconds = 10,
                                   .per_step = 0.25,
                                   .total = 1.5,
                                   .currency = "EUR"};
  const std::string text = prometheus_text({}, reports);
  read_exposition(text);
  EXPECT_EQ(lines_of(text, "tandem_cost_per_step"),
            Lines{R"(tandem_cost_per_step{tandem_job="paid-1"} 0.25)"});
  EXPECT_EQ(lines_of(text, "tandem_cost_total"),
            Lines{R"(tandem_cost_total{tandem_job="paid-1"} 1.5)"});
  EXPECT_EQ(lines_of(text, "tandem_goodput_tokens_per_device_second"),
            (Lines{R"(tandem_goodput_tokens_per_device_second{tandem_job="free-1"} 12.5)",
                   R"(tandem_goodput_tokens_per_device_second{tandem_job="paid-1"} 0.0)"}));
  EXPECT_EQ(lines_of(text, "tandem_device_seconds_total"),
            (Lines{R"(tandem_device_seconds_total{tandem_job="free-1",pool="rollout"} 30.0)",
                   R"(tandem_device_seconds_total{tandem_job="free-1",pool="learner"} 0.0)",
                   R"(tandem_device_seconds_total{tandem_job="paid-1",pool="rollout"} 30.0)",
                   R"(tandem_device_seconds_total{tandem_job="paid-1",pool="learner"} 10.0)"}));
}

TEST(Prometheus, EachRolloutHasItsRateAndTheJobWhatTheyPredict) {
  messages::ExchangeReport report;
  report.status.rates = scheduler::FleetRates{
      .steps = 8,
      .seconds = 20,
      .rollouts = {{.actor = "j-1/rollout/0", .tokens_per_s = 20, .install_fraction = 0.25},
                   {.actor = "j-1/rollout/1", .tokens_per_s = 30, .install_fraction = 0.75}},
      .generated_per_trained = 1.5,
      .trainer_idle_fraction = 0.25};
  report.status.gap = scheduler::FleetGap{.rollouts_matched = 3, .trainer_idle_fraction = 0.125};
  report.status.step_s = 2.5;
  const std::string text = prometheus_text({}, {{"j-1", report}});
  read_exposition(text);
  EXPECT_EQ(
      lines_of(text, "tandem_rollout_tokens_per_second"),
      (Lines{R"(tandem_rollout_tokens_per_second{tandem_job="j-1",actor="j-1/rollout/0"} 20.0)",
             R"(tandem_rollout_tokens_per_second{tandem_job="j-1",actor="j-1/rollout/1"} 30.0)"}));
  const std::string job = R"({tandem_job="j-1"} )";
  EXPECT_EQ(lines_of(text, "tandem_trainer_idle_fraction_recent"),
            Lines{"tandem_trainer_idle_fraction_recent" + job + "0.25"});
  EXPECT_EQ(lines_of(text, "tandem_trainer_idle_fraction_predicted"),
            Lines{"tandem_trainer_idle_fraction_predicted" + job + "0.125"});
  EXPECT_EQ(lines_of(text, "tandem_tokens_generated_per_trained_recent"),
            Lines{"tandem_tokens_generated_per_trained_recent" + job + "1.5"});
  EXPECT_EQ(lines_of(text, "tandem_tokens_generated_per_trained{"), Lines{})
      << "metrics.jsonl has this name for the whole run";
  EXPECT_EQ(lines_of(text, "tandem_rollouts_matched"),
            Lines{"tandem_rollouts_matched" + job + "3.0"});
  EXPECT_EQ(lines_of(text, "tandem_seconds_per_step"),
            Lines{"tandem_seconds_per_step" + job + "2.5"});
  EXPECT_EQ(lines_of(text, "tandem_install_pause_fraction"),
            Lines{"tandem_install_pause_fraction" + job + "0.5"});
  EXPECT_EQ(lines_of(text, "tandem_prefix_cache_hit_ratio"), Lines{}) << "nothing was looked up";
}

TEST(Prometheus, NoStepIsLeftInAFinalEvaluation) {
  messages::ExchangeReport runs, evaluates;
  runs.status.total_steps = evaluates.status.total_steps = evaluates.status.step = 100;
  runs.status.step = 60;
  EXPECT_EQ(lines_of(prometheus_text({}, {{"j-1", runs}, {"j-2", evaluates}}), "tandem_steps_left"),
            (Lines{R"(tandem_steps_left{tandem_job="j-1"} 40.0)",
                   R"(tandem_steps_left{tandem_job="j-2"} 0.0)"}));
}

TEST(Prometheus, TheDiskOfTheHomeIsThereWhereItCanBeLookedAt) {
  const HomeDisk disk{.directory = "/a", .size_bytes = 100, .free_bytes = 40};
  EXPECT_EQ(lines_of(prometheus_text({}, {}, disk), "tandem_disk_free_bytes"),
            Lines{R"(tandem_disk_free_bytes{directory="/a"} 40.0)"});
  EXPECT_EQ(lines_of(prometheus_text({}, {}, disk), "tandem_disk_size_bytes"),
            Lines{R"(tandem_disk_size_bytes{directory="/a"} 100.0)"});
  EXPECT_TRUE(
      lines_of(prometheus_text({}, {}, disk_look("/no/such/folder")()), "tandem_disk_free_bytes")
          .empty());
  const auto here = disk_look(testing::TempDir())();
  ASSERT_TRUE(here);
  EXPECT_GE(here->size_bytes, here->free_bytes);
}

TEST(Prometheus, EveryListedJobHasTheStateItIsIn) {
  controller::ClusterView cluster{};
  cluster.jobs.push_back(job_in(scheduler::JobState::kSucceeded, "j-1"));
  cluster.jobs.push_back(job_in(scheduler::JobState::kWarmStart, "j-2"));
  const std::string text = prometheus_text(cluster, {});
  read_exposition(text);
  EXPECT_EQ(lines_of(text, "tandem_job_state"),
            (Lines{R"(tandem_job_state{tandem_job="j-1",state="Succeeded"} 1.0)",
                   R"(tandem_job_state{tandem_job="j-2",state="WarmStart"} 1.0)"}));
  EXPECT_EQ(lines_of(text, "tandem_actor_restarts_total").size(), 1u) << "j-1 has ended";
  EXPECT_EQ(text.find("{job="), std::string::npos) << "Prometheus' own label";
}

TEST(Prometheus, LabelValuesAreEscaped) {
  messages::ExchangeReport report;
  report.ledger.discarded.emplace_back("a \"b\" \\ c\nd", 2);
  const std::string text = prometheus_text({}, {{"j-1", report}});
  EXPECT_EQ(
      lines_of(text, "tandem_groups_discarded_total"),
      Lines{R"(tandem_groups_discarded_total{tandem_job="j-1",reason="a \"b\" \\ c\nd"} 2.0)"});
  const auto families = read_exposition(text);
  const auto discarded = std::ranges::find(families, std::string("tandem_groups_discarded_total"),
                                           &MetricFamily::name);
  ASSERT_NE(discarded, families.end());
  EXPECT_EQ(discarded->samples.at(0).labels.at("reason"), "a \"b\" \\ c\nd");
}

// The newest step's figures are those of its line in metrics.jsonl.
void expect_line(const controller::SimulatedRun& run, const messages::ExchangeReport& report) {
  if (!report.last_step) return;
  auto lines = run.record.metrics_lines;
  std::erase_if(lines, [](const auto& text) { return parse_json(text).contains("eval"); });
  ASSERT_FALSE(lines.empty());
  const nlohmann::json line = parse_json(lines.back());
  ASSERT_EQ(line["step"], report.status.step);
  const messages::StepFigures& figures = *report.last_step;
  EXPECT_EQ(line["tandem/rollout_idle_fraction"], figures.rollout_idle_fraction);
  EXPECT_EQ(line["tandem/oldest_sample_age_steps"], figures.oldest_sample_age_steps);
}

TEST(Prometheus, IsTrueOfARunWhoseActorsDie) {  // ST-1, ST-2
  std::uint64_t tokens = 0, stepped = 0;
  for_seeds(30, [&](std::uint64_t seed) {
    auto cluster = controller::cluster_of(seed, controller::random_conditions(seed));
    const controller::Kills kills(*cluster, seed,
                                  {.early = static_cast<int>(seed % 3), .later = 4});
    const auto id = cluster->submit(controller::random_job(seed));
    ASSERT_TRUE(id.has_value());
    Rng rng(derive_seed(seed, "looks"));
    for (int look = 0; look < 20 && !cluster->final(*id); ++look) {
      cluster->run_for(Duration(rng.below(1'000'000'000)));
      const controller::ClusterView view = cluster->view();
      ExchangeReports reports;
      for (const auto& [job, exchange] : view.exchanges) {
        bool answered = false;
        const actor::ReplyTo<messages::ExchangeReport> reply(
            [&, &id = job](Result<messages::ExchangeReport> answer) {
              answered = true;
              if (answer) reports[id] = *std::move(answer);
            });
        ASSERT_EQ(exchange.tell(actor::Ask<messages::GetExchangeReport>{{}, reply}),
                  actor::Delivery::kAccepted);
        ASSERT_TRUE(cluster->run_until([&] { return answered; }, std::chrono::seconds(1)));
        if (!reports.contains(job)) continue;  // its run has just ended
        expect_line(*cluster->run_of(job), reports[job]);
        stepped += reports[job].last_step.has_value();
        for (const messages::ActorLoad& load : reports[job].loads) {
          if (!load.engine) continue;
          expect_counts_fit(load.engine->latencies, load.engine->generation_tokens);
          tokens += load.engine->generation_tokens;
        }
      }
      read_exposition(prometheus_text(view, reports));
    }
    controller::run_to_end(*cluster, *id);
  });
  EXPECT_GT(tokens, 0u);
  EXPECT_GT(stepped, 0u);
}

}  // namespace
}  // namespace tandem::api
