// Objects with everything in them, made here and by a simulated run, fit their schemas, and use
// each field that these have.
#include "actors/api/schemas.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "actors/api/cluster_picture.h"
#include "actors/api/wait_graph.h"
#include "actors/controller/result_json.h"
#include "actors/exchange/samples.h"
#include "actors/runs/run_catalogue.h"
#include "runtime/base/json.h"
#include "tests/actors/api/schema_check.h"
#include "tests/actors/controller/scenario.h"

namespace tandem::api {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr int kLooksMax = 1000;  // ends a hang
const std::string kJob = "a-1", kLearner = "a-1/learner/0", kRollout = "a-1/rollout/0";

class SchemasTest : public testing::Test {
 protected:
  // As a client reads it: a number that is not finite is null by then.
  void expect_fits(const std::string& name, const json& value) {
    for (const std::string& fault : check_.faults_of(name, parse_json(dump_json(value))))
      ADD_FAILURE() << name << " " << fault << " in " << dump_json(value);
  }
  // Each object of a list.
  void expect_all_fit(const std::string& name, const json& list) {
    EXPECT_FALSE(list.empty()) << name;
    for (const json& one : list) expect_fits(name, one);
  }
  void expect_all_seen(const std::string& name) {
    for (const std::string& field : check_.unseen_of(name))
      ADD_FAILURE() << "no value of this test has the field " << field;
  }

  SchemaCheck check_{component_schemas()};
};

messages::ExchangeReport full_report() {
  const messages::RewardFigures figures{.mean = 0.5,
                                        .greedy = 0.25,
                                        .pass = {{8, 0.75}},
                                        .scored = 97,
                                        .failed = 3,
                                        .standard_error = 0.01,
                                        .majority = {{4, 0.5}},
                                        .mean_with_failures = 0.4,
                                        .extra = {{"length", 3.5}}};
  messages::ExchangeReport report;
  messages::JobStatus& status = report.status;
  status.eval = messages::EvaluationFigures{.all = figures, .sources = {{"math", figures}}};
  status.eta_s = 9.5;
  status.gap = scheduler::FleetGap{};
  status.rates = scheduler::FleetRates{.rollouts = {{.actor = kRollout}}, .prefix_hit_ratio = 0.5};
  status.warm_start = {.step = 5, .steps_max = 10, .metric = 0.5, .steps_per_s = 2, .eta_s = 2.5};
  status.waits = {{.who = kLearner,
                   .waits_for = "3 of 4 scored groups for step 2",
                   .since_s = 1.5,
                   .deadline_s = 4,
                   .detail = "none"}};
  status.troubles = {{.trouble = {.from = {kLearner, {1}},
                                  .what = "the program exited with code 1",
                                  .attempt = 1,
                                  .attempts = 3,
                                  .stderr_tail = {"Traceback"},
                                  .log = "reward.0.1.log",
                                  .count = 2},
                      .since_s = 1}};
  report.loads = {{.actor = kLearner, .policy_version = 3, .load = "step 4"}};
  return report;
}

Picture full_picture() {
  controller::JobRecord job{.id = kJob, .ladder = scheduler::RestartLadder({})};
  for (const messages::Role& role : messages::kTrainingRoles) {
    job.desired[role] = 1;
    job.shape.per_rank[role] = {.cpu_milli = 500, .memory_bytes = 7};
  }
  job.status.state = scheduler::JobState::kWarmStart;
  job.shape.autoscale = scheduler::AutoscaleConfig{.min = 1, .max = 4};
  job.desired[messages::Role::kRollout] = 2;
  job.autoscaling.on = true;
  job.autoscaling.newest = scheduler::AutoscaleDecision{};
  job.autoscaling.newest->matched = 3;
  job.autoscaling.last = controller::Autoscaling::Change{Time{}, 1, 2, "trainer idle 31 %"};
  job.shape.memory[messages::Role::kRollout].rows = {{"weights", 5},
                                                     {"restore", 2, scheduler::MemoryUse::kPeak}};
  controller::RankRecord rank{.node = "n", .alive = true};
  rank.usage = node::RankUsage{.cpu_percent = 50, .memory_bytes = 1000};
  job.actors[kLearner] = {.name = kLearner,
                          .job = kJob,
                          .role = messages::Role::kLearner,
                          .status = {.state = scheduler::ActorState::kReady},
                          .ranks = {rank, {}}};
  job.actors[kRollout] = {.name = kRollout,
                          .job = kJob,
                          .role = messages::Role::kRollout,
                          .status = {.state = scheduler::ActorState::kBackoff,
                                     .reason = scheduler::Backoff{.until = Time{} + 2s, .max = 3}}};
  controller::NodeRecord node{.name = "n", .up = true};
  node.gpus.push_back({.device = {.name = "NVIDIA H200",
                                  .uuid = "GPU-1",
                                  .links = {node::GpuLink::kSelf, node::GpuLink::kNvlink}},
                       .free_milli = 500});
  node.gpus_unusable = {"GPU 2: GPU is lost"};
  node.nccl = {.version = 23003, .path = "/opt/libnccl.so.2", .shares_gpus = true};
  Picture picture{.cluster = {.jobs = {job}, .nodes = {node}, .now = Time{}}, .reports = {}};
  picture.reports[kJob] = full_report();
  return picture;
}

TEST_F(SchemasTest, HR2ObjectsWithEverythingFit) {
  const Picture picture = full_picture();
  expect_all_fit("Job", list(picture, "jobs"));
  expect_all_fit("Actor", list(picture, "actors"));
  expect_all_fit("Node", list(picture, "nodes"));
  expect_fits("Job", find_one(picture, "jobs", kJob).value());
  expect_fits("Node", find_one(picture, "nodes", "n").value());
  expect_fits("WaitGraph", wait_graph(picture, "", 5));
  expect_fits("Event", event_json({.seq = 1, .kind = "job"}));
  expect_fits("Group", group_json({.group = 1, .state = "admitted"}, kJob));
  expect_fits("Group", group_json({.group = 1, .state = "rolling", .holder = "a", .due = 3}, kJob));
  json submitted = list(picture, "jobs").front();
  submitted["warnings"] = json::array({"a warning"});  // which the answer to a submission has
  const Alert alert{.rule = &alert_rules().front(), .subject = {.job = kJob, .actor = kJob}};
  submitted["alerts"] = alerts_json({.alerts = {alert, {.rule = alert.rule}}});
  expect_fits("Job", submitted);
  for (const char* const name :
       {"Job", "Actor", "Node", "WaitGraph", "Event", "Group", "Wait", "Trouble",
        "EvaluationFigures", "FleetRates", "Staleness", "Alert"})
    expect_all_seen(name);
}

TEST_F(SchemasTest, HR2AJobOfActorsAloneFits) {
  controller::JobRecord job{.id = kJob, .ladder = scheduler::RestartLadder({})};
  job.shape.roles = {messages::Role{"counter"}};
  job.shape.programs[{"counter"}] = {.command = {"/bin/counter"}};
  job.desired[{"counter"}] = 2;
  expect_fits("Job", shown_job(job, nullptr, Time{}));
  expect_fits("RunResult", parse_json(controller::result_json(job, Time{})));
}

TEST_F(SchemasTest, AnUnknownOrAbsentFieldIsAFault) {
  json event = event_json({.seq = 1, .kind = "job"});
  event["new"] = 1;
  event.erase("time");
  EXPECT_EQ(check_.faults_of("Event", event),
            (std::vector<std::string>{"$: lacks time", "$.new: no schema names it"}));
  event = event_json({.seq = 1, .kind = "job"});
  event["level"] = "loud";
  EXPECT_EQ(check_.faults_of("Event", event).size(), 1u);
  event["level"] = 3;
  EXPECT_EQ(check_.faults_of("Event", event).size(), 2u) << "no text, and no level";
}

controller::SimulatedJob evaluated_job() {
  controller::SimulatedJob job = controller::plain_job(1);
  job.validation_prompts = 20;
  job.exchange.warm_start = true;
  job.trainer.warm_start_steps = 5;
  job.exchange.test_freq = 5;
  job.exchange.evaluation.sampling = {.n = 4, .temperature = 1, .greedy = true};
  job.exchange.best.key = "val/reward/mean";
  job.data_sources = {"math", "code"};
  job.scorer.fails = 0.05;
  job.scorer.says_more = true;
  return job;
}

// The report of the job's exchange; nullopt where it has none at this moment.
std::optional<messages::ExchangeReport> report_of(controller::SimulatedCluster& cluster,
                                                  const controller::ClusterView& view,
                                                  const std::string& job) {
  const auto exchange = view.exchanges.find(job);
  if (exchange == view.exchanges.end()) return std::nullopt;
  std::optional<messages::ExchangeReport> report;
  bool answered = false;
  const actor::ReplyTo<messages::ExchangeReport> reply(
      [&](const Result<messages::ExchangeReport>& answer) {
        if (answer) report = *answer;
        answered = true;
      });
  const auto sent = exchange->second.tell(actor::Ask<messages::GetExchangeReport>{{}, reply});
  if (sent == actor::Delivery::kAccepted) cluster.run_until([&] { return answered; }, 10s);
  return report;
}

TEST_F(SchemasTest, HR2AJobFitsAtAllTimesOfItsRun) {
  const auto cluster = controller::cluster_of(1);
  const auto id = cluster->submit(evaluated_job());
  ASSERT_TRUE(id) << render(id.error());
  std::size_t reports = 0;
  for (int look = 0; look < kLooksMax && !cluster->final(*id); ++look) {
    Picture picture{.cluster = cluster->view(), .reports = {}};
    if (auto report = report_of(*cluster, picture.cluster, *id)) {
      picture.reports[*id] = *std::move(report);
      ++reports;
    }
    expect_all_fit("Job", list(picture, "jobs"));
    for (const json& actor : list(picture, "actors")) expect_fits("Actor", actor);
    expect_all_fit("Node", list(picture, "nodes"));
    expect_fits("WaitGraph", wait_graph(picture, "", 5));
    cluster->run_for(200ms);
    if (HasFailure()) return;
  }
  ASSERT_TRUE(cluster->final(*id));
  EXPECT_GT(reports, 5u);
}

TEST_F(SchemasTest, HR2WhatARunWritesFits) {
  const auto cluster = controller::cluster_of(1);
  const std::string id = controller::run_job(*cluster, evaluated_job());
  const auto run = cluster->run_of(id);
  ASSERT_TRUE(run->record.result_json);
  const json result = parse_json(*run->record.result_json);
  expect_fits("RunResult", result);
  expect_fits("Run", runs::run_json({.id = id, .result = result}, 5));
  expect_fits("Run", runs::run_json({.id = id, .live = true}, 5));
  json lines{{"lines", json::array()}, {"next", nullptr}};
  for (const std::string& line : run->record.metrics_lines)
    lines["lines"].push_back(parse_json(line));
  expect_fits("MetricsLines", lines);
  ASSERT_FALSE(run->record.sample_lines.empty());
  for (const std::string& line : run->record.sample_lines) {
    json sample = parse_json(line);
    sample["seq"] = 1;
    expect_fits("Sample", sample);
  }
  json sample = parse_json(run->record.sample_lines.front());
  sample["seq"] = 1;
  exchange::add_record_fields(sample,
                              R"({"answer": 4, "data_source": "math",
                                  "messages": [{"role": "user", "content": "2 + 2?"}]})",
                              {});
  expect_fits("Sample", sample);
  expect_all_seen("Sample");
}

}  // namespace
}  // namespace tandem::api
