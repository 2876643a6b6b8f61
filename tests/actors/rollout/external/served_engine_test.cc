// An engine with a server: what both do together, and which errors tell that a server is missing or
// is another one than the job needs.
//
// Tests actors/rollout/external/served_engine.h, served_server.h and the dialects.
#include "actors/rollout/external/served_engine.h"

#include <filesystem>
#include <fstream>
#include <numeric>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/http/http_server.h"
#include "tests/actors/rollout/external/served.h"

namespace tandem::rollout {
namespace {

namespace fs = std::filesystem;

class EngineConformance : public ::testing::TestWithParam<Peer> {};
INSTANTIATE_TEST_SUITE_P(Peers, EngineConformance, ::testing::ValuesIn(kPeers), kPeerName);

TEST_P(EngineConformance, SamplesWithTheLearnersLogprobsWhateverVersionIsInstalled) {
  Served served(GetParam());
  served.submit_all();
  served.run();
  served.expect_right();
  EXPECT_FALSE(served.failure);
  EXPECT_EQ(served.engine->stats().sequences_running, 0);
  const messages::Latencies latencies = served.engine->stats().latencies;
  for (const messages::Histogram* histogram : {&latencies.queue, &latencies.request})
    EXPECT_EQ(std::accumulate(histogram->counts.begin(), histogram->counts.end(), 0u),
              4 * kPrompts.size());
  EXPECT_GE(latencies.request.sum, latencies.queue.sum);
  const Payloads first = std::move(served.payloads);
  served.payloads.clear();
  served.update(kV2);
  served.submit_all();
  served.run();
  served.expect_right();
  EXPECT_EQ(served.payloads.at(GroupId{0}).trajectories[0].versions[0].version, kV2);
  EXPECT_NE(served.payloads.at(GroupId{2}).trajectories[0].tokens,
            first.at(GroupId{2}).trajectories[0].tokens);
}

TEST_P(EngineConformance, CompletionsOfAGroupDifferAndFollowFromItsSeed) {
  Served served(GetParam());
  served.submit_all();
  served.run();
  Served again(GetParam());
  again.submit_all();
  again.run();
  bool differ = false;
  for (const auto& [id, payload] : served.payloads) {
    const messages::GroupPayload& other = again.payloads.at(id);
    if (!kRealServer) expect_same(payload, other, "group " + std::to_string(id.value));
    for (std::size_t i = 0; repeats(GetParam()) && i < payload.trajectories.size(); ++i)
      EXPECT_EQ(payload.trajectories[i].tokens, other.trajectories[i].tokens);
    differ = differ || payload.trajectories[0].tokens != payload.trajectories[1].tokens;
  }
  EXPECT_TRUE(differ);
}

TEST_P(EngineConformance, AnUpdateGoesIntoWhatRuns_EN3_EV2) {
  // The server runs six sequences at a time, so that others run when the first group is whole. A
  // fake waits for the update when so many completions are whole that one of the five groups is.
  Served served(GetParam(),
                {GetParam().max_num_seqs, "6", "--fault", "wait-for-update", "--fault-at", "16"});
  bool mixed = false;
  for (int version = 1; version < kVersions && !mixed; ++version) {
    served.payloads.clear();
    served.submit_all();
    served.run_until([&] { return !served.payloads.empty(); });
    served.update(PolicyVersion{version});
    served.run();
    for (const auto& [id, payload] : served.payloads)
      for (const messages::Trajectory& t : payload.trajectories) {
        mixed = mixed || t.versions.size() > 1;
        EXPECT_LE(t.oldest, t.versions.front().version) << "EN-3";
      }
  }
  EXPECT_TRUE(mixed) << "no update met a request that ran";
  EXPECT_FALSE(served.failure);
}

TEST_P(EngineConformance, EvaluatesGreedilyAndBySampling) {
  Served served(GetParam());
  const messages::EvaluationSampling sampling{.n = 2, .temperature = 1, .greedy = true};
  messages::Evaluate evaluation{
      .evaluation = messages::EvaluationId{1}, .version = kV0, .sampling = sampling};
  for (std::int32_t i = 0; i < 3; ++i)
    evaluation.prompts.push_back({.index = i, .prompt = kPrompts[0], .seed = 5});
  served.engine->submit(std::move(evaluation));
  served.run();
  ASSERT_EQ(served.evaluated.size(), 1u);
  ASSERT_EQ(served.evaluated[0].completions.size(), 9u);
  std::map<std::int32_t, std::vector<std::string>> by_sample;
  for (const auto& completion : served.evaluated[0].completions)
    by_sample[completion.sample].push_back(completion.text);
  for (const auto& [sample, texts] : by_sample)
    if (repeats(GetParam()) || is_greedy(sampling, sample)) {
      EXPECT_EQ(texts, std::vector<std::string>(3, texts[0])) << "one seed, one text";
    }
}

TEST_P(EngineConformance, AnEvaluationOfTheVersionBeforeMayComeWhileItIsReplaced) {
  Served served(GetParam());
  served.engine->begin_update(kV1);
  served.engine->finish_update(served.model.weights(kV1).bytes());
  served.engine->submit(messages::Evaluate{.evaluation = messages::EvaluationId{1},
                                           .version = kV0,
                                           .prompts = {{.index = 0, .prompt = kPrompts[0]}}});
  served.run_until([&] { return !served.engine->installing(); });
  EXPECT_EQ(served.engine->version(), kV1);
  EXPECT_EQ(served.engine->wants({.newest = kV1, .oldest_retained = kV0}), kV0);
  served.update(kV0);
  served.run();
  EXPECT_EQ(served.evaluated.size(), 1u);
}

TEST_P(EngineConformance, CountsTokensBeforeTheirCompletionsAreWhole) {
  Served served(GetParam(), {GetParam().max_num_seqs, "1", "--fault", "late-answers"});
  served.submit_all();
  bool early = false;
  served.run_until([&] {
    std::uint64_t whole = 0;
    for (const auto& [id, payload] : served.payloads)
      for (const messages::Trajectory& t : payload.trajectories) whole += t.tokens.size();
    early = early || served.engine->tokens().generation_tokens > whole;
    return false;
  });
  EXPECT_TRUE(early) << "a lease is extended by tokens";
  served.expect_right();
}

TEST_P(EngineConformance, APromptThatIsTooLongIsRefusedAlone) {
  Served served(GetParam());
  served.engine->submit(group_work(9, std::string(100, '1')));
  served.submit_all();
  served.run();
  EXPECT_EQ(served.unservable, 1);
  served.expect_right();
}

TEST_P(EngineConformance, WhatIsCancelledIsNotHeard_EV1) {
  Served served(GetParam());
  served.submit_all();
  served.run_until([&] { return served.engine->stats().sequences_running > 0; });
  const std::vector<GroupId> some{GroupId{1}, GroupId{3}};
  served.engine->cancel(some);
  served.run();
  for (const GroupId group : some) EXPECT_FALSE(served.payloads.contains(group));
  for (const auto& [id, payload] : served.payloads) EXPECT_EQ(payload.trajectories.size(), 4u);
  served.engine->submit(group_work(1, kPrompts[1]));
  served.run();
  EXPECT_TRUE(served.payloads.contains(GroupId{1}));
  served.engine->cancel_all();
  EXPECT_FALSE(served.engine->can_step());
}

// By disk and by tcp other threads read the sink while the server takes the version.
TEST_P(EngineConformance, OneThatEndsInAnUpdateOfItsSinkLeavesNothingThatReadsIt) {
  if (kRealServer) GTEST_SKIP() << "it would have no version, or another one";
  Served served(GetParam());
  const auto version = served.model.weights(kV1).bytes();
  const auto sink = served.engine->weight_sink();
  ASSERT_TRUE(sink);
  std::ranges::copy(version, sink->begin());
  served.engine->begin_update(kV1);
  served.run_until([&] { return served.engine->may_finish_update(); });
  served.engine->finish_update(*sink);
  served.engine->step();
  EXPECT_TRUE(served.engine->installing());
  served.engine.reset();
}

TEST(OpenServer, SaysWhatIsMissing) {
  const TinyModel model;
  const auto error_of_spec = [](ServerSpec spec) {
    const auto opened = open_server(std::move(spec));
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  };
  const auto expect_in = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  ServerSpec absent = server_spec(kPeers[0], model);
  absent.command = {"/no/such/vllm"};
  Error error = error_of_spec(absent);
  expect_in(error.message, "/no/such/vllm");
  expect_in(error.help, "rollout.engine.command");

  error = error_of_spec(server_spec(kPeers[0], model, {"--fault", "at-start"}));
  expect_in(error.message, "exited with code 1");
  expect_in(error.message, "Free memory on device");

  error = error_of_spec(server_spec(kPeers[0], model, {"--no-such-option"}));
  expect_in(error.message, "unrecognized arguments: --no-such-option");

  ServerSpec nobody = server_spec(kPeers[0], model);
  nobody.url = "http://127.0.0.1:9";  // the discard service, which nobody runs
  nobody.startup_timeout = 1s;
  error = error_of_spec(nobody);
  expect_in(error.message, "not ready in time");
  expect_in(error.help, "is the address right");

  // A server of another kind: it is healthy, and has none of the routes.
  auto other = http::HttpServer::listen({}, {}, [](const http::HttpRequest& request) {
    return http::HttpResponse{.status = request.target == "/health" ? 200 : 404};
  });
  ASSERT_TRUE(other);
  ServerSpec another = server_spec(kPeers[0], model);
  another.url = "http://" + to_string((*other)->endpoint());
  error = error_of_spec(another);
  expect_in(error.message, "/inference/v1/generate");
  expect_in(error.help, "--enable-scale-out");
}

TEST(OpenServer, EndsWithItsLastLink) {
  const TinyModel model;
  pid_t server = 0;
  {
    auto link = open_server(server_spec(kPeers[0], model));
    ASSERT_TRUE(link);
    EXPECT_FALSE(link->ended());
    for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
      std::ifstream children(entry.path() / "children");
      for (pid_t child = 0; children >> child;) server = child;
    }
    ASSERT_GT(server, 0);
  }
  EXPECT_FALSE(fs::exists("/proc/" + std::to_string(server)));
}

}  // namespace
}  // namespace tandem::rollout
