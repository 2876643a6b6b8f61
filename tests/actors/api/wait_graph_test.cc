#include "actors/api/wait_graph.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/base/json.h"

namespace tandem::api {
namespace {

using nlohmann::json;
using scheduler::ActorState;
using scheduler::JobState;

constexpr std::int64_t kNow = 1'000'000;
const Time kTime{std::int64_t{100} * 1'000'000'000};

controller::ActorRecord actor(const std::string& name, messages::Role role, ActorState state,
                              scheduler::Reason reason = scheduler::Working{}) {
  return {.name = name,
          .job = "a-1",
          .role = role,
          .status = {.state = state, .since = Time{kTime.ns - 5'000'000'000}, .reason = reason}};
}

Picture picture_of(JobState state) {
  controller::JobRecord job{.id = "a-1", .ladder = scheduler::RestartLadder({})};
  job.status.state = state;
  job.desired = {
      {messages::Role::kLearner, 1}, {messages::Role::kReward, 1}, {messages::Role::kRollout, 1}};
  const auto add = [&](controller::ActorRecord record) {
    job.actors.emplace(record.name, std::move(record));
  };
  add(actor("a-1/learner/0", messages::Role::kLearner, ActorState::kReady));
  add(actor("a-1/reward/0", messages::Role::kReward, ActorState::kBackoff,
            scheduler::Backoff{.until = Time{kTime.ns + 2'000'000'000}, .n = 1, .max = 3}));
  add(actor("a-1/rollout/0", messages::Role::kRollout, ActorState::kReady));
  Picture picture{.cluster = {.jobs = {job}, .now = kTime}, .reports = {}};
  picture.reports["a-1"].status.waits = {
      {.who = "a-1/learner/0", .waits_for = "3 of 4 scored groups for step 2", .since_s = 1.5},
      {.who = "a-1", .waits_for = "a reward actor", .detail = "none is up"},
      {.who = "a-1", .waits_for = "a-1/learner/0 to train step 2"}};
  return picture;
}

json edge_from(const json& graph, const std::string& from, const std::string& to) {
  for (const json& edge : graph["edges"])
    if (edge["from"] == from && edge["to"] == to) return edge;
  return json();
}

TEST(WaitGraph, EveryWaitIsAnEdgeBetweenNodes) {
  const json graph = wait_graph(picture_of(JobState::kRunning), "", kNow);
  std::set<std::string> nodes;
  for (const json& node : graph["nodes"]) nodes.insert(node["id"].get<std::string>());
  EXPECT_EQ(nodes, (std::set<std::string>{"a-1/exchange", "a-1/learner/0", "a-1/reward/0",
                                          "a-1/rollout/0", "controller"}));
  for (const json& edge : graph["edges"]) {
    EXPECT_TRUE(nodes.contains(edge["from"].get<std::string>())) << edge;
    EXPECT_TRUE(nodes.contains(edge["to"].get<std::string>())) << edge;
  }
  const json learner = edge_from(graph, "a-1/learner/0", "a-1/exchange");
  ASSERT_FALSE(learner.is_null());
  EXPECT_EQ(learner["what"], "3 of 4 scored groups for step 2");
  EXPECT_EQ(learner["since"], kNow - 1500);
  EXPECT_TRUE(learner["until"].is_null());
  EXPECT_FALSE(edge_from(graph, "a-1/exchange", "a-1/reward/0").is_null());
  EXPECT_FALSE(edge_from(graph, "a-1/exchange", "a-1/learner/0").is_null());
  const json reward = edge_from(graph, "a-1/reward/0", "controller");
  ASSERT_FALSE(reward.is_null());
  EXPECT_EQ(reward["since"], kNow - 5000);
  EXPECT_EQ(reward["until"], kNow + 2000);
}

TEST(WaitGraph, AnActorWhoseNodeHasNoAgentWaitsForTheNode) {
  Picture picture = picture_of(JobState::kRunning);
  picture.cluster.jobs.front().actors.at("a-1/rollout/0").status.reason =
      scheduler::AgentLost{"far", Time{kTime.ns - 1'000'000'000}, Time{kTime.ns + 9'000'000'000}};
  const json edge = edge_from(wait_graph(picture, "", kNow), "a-1/rollout/0", "node/far");
  ASSERT_FALSE(edge.is_null());
  EXPECT_EQ(edge["since"], kNow - 1000);
  EXPECT_EQ(edge["until"], kNow + 9000);
}

TEST(WaitGraph, AWaitForWorkLastsUntilThatHangs) {
  Picture picture = picture_of(JobState::kRunning);
  picture.work["a-1/learner/0"] = {.phase = "train", .hung_at = Time{kTime.ns + 3'000'000'000}};
  const json edge = edge_from(wait_graph(picture, "", kNow), "a-1/exchange", "a-1/learner/0");
  EXPECT_EQ(edge["until"], kNow + 3000);
}

TEST(WaitGraph, AnExchangeWithoutAReportWaitsAsItsJobDoes) {
  Picture picture = picture_of(JobState::kQueued);
  picture.reports.clear();
  scheduler::Reason& reason = picture.cluster.jobs.front().status.reason;
  reason = scheduler::WaitingForNodes{"far", Time{kTime.ns + 3'000'000'000}};
  const auto edge = [&] {
    return edge_from(wait_graph(picture, "", kNow), "a-1/exchange", "controller");
  };
  EXPECT_EQ(edge()["until"], kNow + 3000);
  EXPECT_TRUE(edge()["ended_by"].is_null());
  reason = scheduler::WaitingForJobs{2};
  EXPECT_TRUE(edge()["until"].is_null());
  EXPECT_EQ(edge()["ended_by"], "when those ahead end");
}

TEST(WaitGraph, AnActorOfALongerNameIsNotTakenForAnother) {
  Picture picture = picture_of(JobState::kRunning);
  controller::JobRecord& job = picture.cluster.jobs.front();
  for (const char* name : {"a-1/rollout/1", "a-1/rollout/10"})
    job.actors.emplace(name, actor(name, messages::Role::kRollout, ActorState::kReady));
  picture.reports["a-1"].status.waits = {
      {.who = "group 7", .waits_for = "a-1/rollout/10 to generate it"}};
  const json graph = wait_graph(picture, "", kNow);
  EXPECT_FALSE(edge_from(graph, "a-1/exchange", "a-1/rollout/10").is_null());
  EXPECT_TRUE(edge_from(graph, "a-1/exchange", "a-1/rollout/1").is_null());
}

// Ids are ordered as text, so a-10 comes before a-2.
TEST(Picture, ANameMeansTheRunThatIsUpElseTheNewest) {
  Picture picture;
  for (const auto& [id, submitted] :
       {std::pair("a-1", 1), std::pair("a-10", 10), std::pair("a-2", 2)}) {
    controller::JobRecord job{
        .id = id, .ladder = scheduler::RestartLadder({}), .submitted = submitted};
    job.shape.name = "a";
    job.status.state = JobState::kSucceeded;
    picture.cluster.jobs.push_back(job);
  }
  EXPECT_EQ(picture.job("a")->id, "a-10");
  EXPECT_EQ(picture.job("a-2")->id, "a-2");
  picture.cluster.jobs[0].status.state = JobState::kRunning;
  EXPECT_EQ(picture.job("a")->id, "a-1");
  EXPECT_EQ(picture.job("b"), nullptr);
}

// A list of jobs must not grow with their rollouts, of which each may have a thousand.
TEST(Picture, AListOfJobsHasTheSpreadOfRolloutsAndOneJobARowForEach) {
  Picture picture = picture_of(JobState::kRunning);
  scheduler::FleetRates rates{.steps = 5, .seconds = 10};
  for (int n = 0; n < 1000; ++n)
    rates.rollouts.push_back({.actor = "a-1/rollout/" + std::to_string(n),
                              .tokens_per_s = n == 0 ? 50.0 : 100.0 + n % 2});
  picture.reports["a-1"].status.rates = rates;
  const json whole = find_one(picture, "jobs", "a-1").value();
  EXPECT_EQ(whole["rates"]["rollouts"].size(), 1000u);
  const json listed = list(picture, "jobs").front();
  EXPECT_FALSE(listed["rates"].contains("rollouts"));
  const json& spread = listed["rates"]["rollout_tokens_per_s"];
  EXPECT_EQ(spread, whole["rates"]["rollout_tokens_per_s"]);
  EXPECT_EQ(spread["rollouts"], 1000);
  EXPECT_EQ(spread["min"], 50);
  EXPECT_EQ(spread["max"], 101);
  EXPECT_NEAR(spread["mean"].get<double>(), 100.45, 1e-9);
  EXPECT_LT(listed.dump().size(), 5000u);
  // Jobs without rates are listed as they are.
  picture.reports.clear();
  EXPECT_TRUE(list(picture, "jobs").front()["rates"].is_null());
}

TEST(WaitGraph, WhatIsOverWaitsForNothing) {
  Picture picture = picture_of(JobState::kSucceeded);
  EXPECT_TRUE(wait_graph(picture, "", kNow)["nodes"].empty());
  picture = picture_of(JobState::kRunning);
  EXPECT_TRUE(wait_graph(picture, "b-1", kNow)["nodes"].empty());
  EXPECT_FALSE(wait_graph(picture, "a-1", kNow)["nodes"].empty());
}

}  // namespace
}  // namespace tandem::api
