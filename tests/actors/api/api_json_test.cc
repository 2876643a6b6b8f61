#include "actors/api/api_json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::api {
namespace {

using scheduler::JobState;

controller::JobRecord record_in(JobState state, const std::string& run_dir) {
  controller::JobRecord job{.id = "arith-1", .ladder = scheduler::RestartLadder({})};
  job.shape.total_steps = 20;
  for (const messages::Role& role : messages::kTrainingRoles) job.desired[role] = 1;
  job.status.state = state;
  job.run_dir = run_dir;
  return job;
}

TEST(ApiJson, AnEndedExchangesFiguresComeFromItsResult) {
  const std::filesystem::path run =
      testing::TempDir() + "api_json_test_" + std::to_string(getpid());
  std::filesystem::create_directories(run);
  ASSERT_TRUE(write_file_atomic(run / "result.json", R"({
    "steps": 20, "policy_version": 20, "reward_mean": 0.75, "trainer_idle_fraction": 0.5,
    "cost": {"currency": "EUR", "total": 12.5},
    "staleness": {"bound": 2, "max": 1, "mean": 0.5}, "eval": {"before": 0.1, "final": 0.9,
    "counts": {"final": {"scored": 97, "failed": 3}},
    "figures": {"final": {"mean": 0.9, "pass@8": 0.95}}}})"));
  const Time now{};
  for (const JobState state : {JobState::kStopping, JobState::kSucceeded, JobState::kCancelled}) {
    const auto job = shown_job(record_in(state, run), nullptr, now);
    EXPECT_EQ(job["step"], 20);
    EXPECT_EQ(job["policy_version"], 20);
    EXPECT_EQ(job["reward_mean"], 0.75);
    EXPECT_EQ(job["cost"]["total"], 12.5);
    EXPECT_EQ(job["staleness"]["max"], 1);
    EXPECT_EQ(job["eval"], 0.9);
    EXPECT_EQ(job["eval_scored"], 97);
    EXPECT_EQ(job["eval_failed"], 3);
    EXPECT_EQ(job["eval_figures"]["pass@8"], 0.95);
  }
  // A run that is resumed has the result of its earlier process until it ends itself.
  EXPECT_EQ(shown_job(record_in(JobState::kStarting, run), nullptr, now)["step"], 0);
  messages::ExchangeReport report;
  report.status.step = 7;
  report.status.cost = {.learner_device_seconds = 6, .goodput = 250};
  report.status.eval = messages::EvaluationFigures{.all = {.greedy = 0.5, .failed = 2}};
  const auto lived = shown_job(record_in(JobState::kRunning, run), &report, now);
  EXPECT_EQ(lived["cost"].dump(), R"({"device_seconds":{"learner":6.0,"rollout":0.0},)"
                                  R"("goodput_tokens_per_device_second":250.0})");
  EXPECT_TRUE(lived["eval"].is_null());
  EXPECT_EQ(lived["eval_scored"], 0);
  EXPECT_EQ(lived["eval_failed"], 2);
  EXPECT_EQ(lived["eval_figures"]["greedy"], 0.5);
  EXPECT_EQ(shown_job(record_in(JobState::kStopping, run), &report, now)["step"], 7);

  report.status.reward_fails = "no completion is scored";
  for (const JobState state : {JobState::kRunning, JobState::kWarmStart}) {
    const auto job = shown_job(record_in(state, run), &report, now);
    EXPECT_EQ(job["reason"], "RewardFails");
    EXPECT_EQ(job["message"], "no completion is scored");
  }
  EXPECT_NE(shown_job(record_in(JobState::kStopping, run), &report, now)["reason"], "RewardFails");
  report.status.reward_fails.reset();
  report.status.filter_keeps = "3 of the 8 groups";
  const auto kept = shown_job(record_in(JobState::kRunning, run), &report, now);
  EXPECT_EQ(kept["reason"], "FilterKeepsGroups");
  EXPECT_EQ(kept["message"], "3 of the 8 groups");

  std::filesystem::remove_all(run);
  EXPECT_EQ(shown_job(record_in(JobState::kFailed, run), nullptr, now)["step"], 0);
}

TEST(ApiJson, AnActorUsesWhatItsLivingRanksUse) {
  controller::ActorRecord actor{
      .name = "arith-1/learner/0", .job = "arith-1", .role = messages::Role::kLearner};
  actor.ranks.resize(3);
  EXPECT_TRUE(actor_json(actor, nullptr, 0, Time{})["cpu_percent"].is_null());
  actor.ranks[0].usage = node::RankUsage{.cpu_percent = 50, .memory_bytes = 1000};
  actor.ranks[1].usage = node::RankUsage{.cpu_percent = 25.5, .memory_bytes = 24};
  actor.ranks[2].usage = node::RankUsage{.cpu_percent = 100, .memory_bytes = 1};
  actor.ranks[0].alive = actor.ranks[1].alive = true;  // the third is gone
  const auto shown = actor_json(actor, nullptr, 0, Time{});
  EXPECT_EQ(shown["cpu_percent"], 75.5);
  EXPECT_EQ(shown["memory_bytes"], 1024);
}

TEST(ApiJson, AnActorThatDiedAndHasOutlivedItsControllerSaysBothOnce) {
  const Time now = Time{} + Duration(std::chrono::seconds(100));
  controller::ActorRecord actor{
      .name = "arith-1/rollout/0", .job = "arith-1", .role = messages::Role::kRollout};
  actor.status = {
      .state = scheduler::ActorState::kStarting,
      .since = now,
      .reason = scheduler::Returning{"gpu-3", now + Duration(std::chrono::seconds(20))}};
  actor.crash_loop = {
      .deaths = 1, .since = now + -Duration(std::chrono::seconds(5)), .cause = "killed"};
  const auto shown = actor_json(actor, nullptr, 0, now);
  EXPECT_EQ(shown["reason"], "Returning");
  EXPECT_EQ(shown["message"],
            "restarted once in 5 s (killed); it has outlived its controller on node gpu-3, and is "
            "waited for at most 20.0 s");
}

TEST(ApiJson, ANodeSaysWhatItsGpusAreAndWhichItCannotUse) {
  controller::NodeRecord node{.name = "a", .up = true};
  node.gpus.push_back({.device = {.name = "NVIDIA H200",
                                  .uuid = "GPU-1",
                                  .cpu_affinity = "0-15",
                                  .numa_affinity = "0",
                                  .links = {node::GpuLink::kSelf, node::GpuLink::kNvlink}},
                       .free_milli = 500});
  node.gpus_unusable = {"GPU 2: GPU is lost"};
  const auto shown = node_json(node, Time{});
  EXPECT_EQ(shown["gpus"].dump(),
            R"([{"cordoned":null,"cpu_affinity":"0-15","gone":false,"index":0,"leased":0.5,)"
            R"("links":["X","NV"],"memory_bytes":0,"name":"NVIDIA H200","numa_affinity":"0",)"
            R"("uuid":"GPU-1"}])");
  EXPECT_EQ(shown["gpus_unusable"].dump(), R"(["GPU 2: GPU is lost"])");
  EXPECT_TRUE(shown["gpus_absent"].is_null());
  EXPECT_TRUE(shown["nccl"].is_null());
  EXPECT_EQ(shown["state"], "Ready");
  EXPECT_EQ(shown["reason"], "Working");
  node.gpus.front().cordoned = "automatic: actors die there";
  EXPECT_EQ(node_json(node, Time{})["gpus"][0]["cordoned"], "automatic: actors die there");
  EXPECT_EQ(node_json(node, Time{})["reason"], "GpuCordoned");
  EXPECT_EQ(node_json(node, Time{})["message"],
            "GPU 0 (GPU-1) takes no new actors: automatic: actors die there");
}

TEST(ApiJson, ANodeSaysWhichNcclItHasOrWhyNone) {
  controller::NodeRecord node{.name = "a"};
  node.nccl = {.version = 23003, .path = "/opt/libnccl.so.2", .shares_gpus = true};
  EXPECT_EQ(node_json(node, Time{})["nccl"].dump(),
            R"({"path":"/opt/libnccl.so.2","shares_gpus":true,"version":"2.30.3"})");
  EXPECT_TRUE(node_json(node, Time{})["nccl_absent"].is_null());
  node.nccl = {.absent = "no NCCL library: none"};
  EXPECT_TRUE(node_json(node, Time{})["nccl"].is_null());
  EXPECT_EQ(node_json(node, Time{})["nccl_absent"], "no NCCL library: none");
}

TEST(ApiJson, AJobHasTheMemoryOfItsRanks) {
  controller::JobRecord job{.id = "j-1", .ladder = scheduler::RestartLadder({})};
  for (const messages::Role& role : messages::kTrainingRoles)
    job.desired[role] = role == messages::Role::kRollout ? 3 : 1;
  EXPECT_EQ(job_json(job, nullptr, Time{})["memory"].dump(), "{}");
  job.shape.memory[messages::Role::kRollout].rows = {{"weights", 5},
                                                     {"restore", 2, scheduler::MemoryUse::kPeak}};
  EXPECT_EQ(job_json(job, nullptr, Time{})["memory"].dump(),
            R"({"rollout":{"ranks":3,"reserved_bytes":7,"rows":[)"
            R"({"bytes":5,"name":"weights","peak":false},)"
            R"({"bytes":2,"name":"restore","peak":true}]}})");
}

TEST(ApiJson, AJobOfActorsAloneHasNoFiguresOfTraining) {
  controller::JobRecord job{.id = "j-1", .ladder = scheduler::RestartLadder({})};
  job.shape.roles = {messages::Role{"counter"}};
  job.shape.programs[{"counter"}] = {.command = {"/bin/counter"}};
  job.desired[{"counter"}] = 2;
  const nlohmann::json shown = job_json(job, nullptr, Time{});
  EXPECT_EQ(shown["trains"], false);
  EXPECT_EQ(shown["actors"].dump(), R"({"counter":{"desired":2,"ready":0}})");
  for (const char* const figure : {"step", "total_steps", "staleness", "tokens_per_second", "cost"})
    EXPECT_TRUE(shown.at(figure).is_null()) << figure;
}

TEST(ApiJson, ANodeSaysWhoHoldsItsMemory) {
  controller::ActorRecord actor{
      .name = "j-1/learner/0", .job = "j-1", .role = messages::Role::kLearner};
  actor.ranks.resize(3);
  for (controller::RankRecord& rank : actor.ranks)
    rank = {.node = "a", .alive = true, .need = {.cpu_milli = 500, .memory_bytes = 7}};
  actor.ranks[1].node = "b";
  actor.ranks[2].alive = false;
  EXPECT_EQ(reservations_json({{actor}}, "a").dump(),
            R"([{"actor":"j-1/learner/0","cpus":0.5,"gpus":0.0,"memory_bytes":7,"rank":0}])");
  EXPECT_EQ(reservations_json({{actor}}, "c").dump(), "[]");
}

TEST(ApiJson, ALostNodeSaysSinceWhen) {
  const Time now = Time{} + std::chrono::seconds(60);
  controller::NodeRecord node{.name = "a", .up = false};
  node.since = Time{} + std::chrono::seconds(40);
  const auto shown = node_json(node, now);
  EXPECT_EQ(shown["state"], "Lost");
  EXPECT_EQ(shown["reason"], "NodeLost");
  EXPECT_NEAR(shown["since"].get<double>(), static_cast<double>(unix_ms()) - 20'000, 10'000);
}

TEST(ApiJson, ANodeWithoutItsAgentAndItsActorsSayHowLongTheyAreWaitedFor) {
  const Time now = Time{} + std::chrono::seconds(60);
  const Time since = Time{} + std::chrono::seconds(40), until = Time{} + std::chrono::seconds(340);
  controller::NodeRecord node{.name = "far", .since = since, .agent_until = until};
  const auto shown = node_json(node, now);
  EXPECT_EQ(shown["reason"], "AgentLost");
  EXPECT_NE(shown["message"].get<std::string>().find("at most 280.0 s"), std::string::npos)
      << shown;
  EXPECT_TRUE(shown["pid"].is_null()) << "no process has that of an agent that is not known";

  controller::JobRecord job = record_in(JobState::kRunning, "training");
  job.actors.emplace("j-1/rollout/0", controller::ActorRecord{
                                          .name = "j-1/rollout/0",
                                          .role = messages::Role::kRollout,
                                          .status = {scheduler::ActorState::kReady, Time{},
                                                     scheduler::AgentLost{"far", since, until}}});
  const auto waits = shown_job(job, nullptr, now)["why"];
  ASSERT_EQ(waits.size(), 1u) << waits;
  EXPECT_EQ(waits[0]["who"], "j-1/rollout/0");
  EXPECT_EQ(waits[0]["waits_for"], "AgentLost");
  EXPECT_EQ(waits[0]["since_s"], 20);
  EXPECT_EQ(waits[0]["deadline_s"], 280);
}

TEST(ApiJson, AWaitShowsTheDeadlineThatItsTimerOrTheWorkHas) {
  const Time now = Time{} + std::chrono::seconds(60);
  const Time until = now + std::chrono::seconds(9);
  controller::JobRecord job = record_in(JobState::kRunning, "training");
  const controller::ActorRecord rollout{
      .name = "j-1/rollout/0",
      .role = messages::Role::kRollout,
      .status = {scheduler::ActorState::kDraining, Time{}, scheduler::Draining{2, until}}};
  job.actors.emplace(rollout.name, rollout);
  messages::ExchangeReport report;
  report.status.waits = {{.who = "j-1", .waits_for = "j-1/learner/0 to train step 3"}};
  const controller::WorkByActor work = {
      {"j-1/learner/0", {.phase = "train", .hung_at = now + std::chrono::seconds(4)}}};
  const auto waits = shown_job(job, &report, now, work)["why"];
  ASSERT_EQ(waits.size(), 2u) << waits;
  EXPECT_EQ(waits[0]["deadline_s"], 4);
  EXPECT_EQ(waits[1]["deadline_s"], 9);
  EXPECT_EQ(actor_json(rollout, nullptr, 0, now)["why"][0]["deadline_s"], 9);
}

TEST(ApiJson, AResumedJobShowsItsStepFromTheFirstAnswerOn) {
  controller::JobRecord job = record_in(JobState::kStarting, "");
  job.shape.resume_dir = "/runs/arith-1";
  job.shape.resumed_step = 12;
  EXPECT_EQ(shown_job(job, nullptr, Time{})["step"], 12);
  EXPECT_EQ(shown_job(job, nullptr, Time{})["policy_version"], 12);
  messages::ExchangeReport report;
  report.status.restoring = true;  // the learner loads its checkpoint
  EXPECT_EQ(shown_job(job, &report, Time{})["step"], 12);
  report.status = {.step = 13};
  EXPECT_EQ(shown_job(job, &report, Time{})["step"], 13);
}

TEST(ApiJson, TheWarmStartHasItsRateAndTheTimeLeft) {
  messages::ExchangeReport report;
  report.status.warm_start = {.step = 50, .steps_max = 100, .steps_per_s = 20, .eta_s = 2.5};
  const auto warm = shown_job(record_in(JobState::kWarmStart, ""), &report, Time{})["warm_start"];
  EXPECT_EQ(
      warm.dump(),
      R"({"eta_seconds":2.5,"max_steps":100,"metric":null,"step":50,"steps_per_second":20.0})");
  EXPECT_FALSE(
      shown_job(record_in(JobState::kRunning, ""), &report, Time{}).contains("warm_start"));
}

}  // namespace
}  // namespace tandem::api
