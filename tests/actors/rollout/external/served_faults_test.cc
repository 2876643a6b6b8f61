// Faults of a server, each one that a real one was seen to have: they cost a request or an update
// once more, or the engine, and never a wrong sample.
//
// Tests actors/rollout/external/served_engine.h, actors/rollout/external/served_update.h.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/http/http_server.h"
#include "tests/actors/rollout/external/served.h"

namespace tandem::rollout {
namespace {

constexpr const char* kAnswerFaults[] = {"error",   "garbage",       "other-answer",
                                         "logprob", "foreign-label", "stall"};

// Faults that any kind of server may have.
class Faulty : public ::testing::TestWithParam<Peer> {};
INSTANTIATE_TEST_SUITE_P(Peers, Faulty, ::testing::ValuesIn(kPeers), kPeerName);

TEST_P(Faulty, ARequestThatFailsIsAskedAgain_EV3) {
  for (const std::string fault : kAnswerFaults) {
    SCOPED_TRACE(fault);
    Served served(GetParam(), {"--fault", fault, "--fault-at", "2"}, true,
                  fault == "stall" ? 2s : kPatience);
    served.submit_all();
    served.run();
    EXPECT_FALSE(served.failure) << served.failure->message;
    served.expect_right();
  }
}

TEST(ServedEngine, AServerThatFailsARequestAgainAndAgainFailsTheEngine_EV3) {
  TinyModel model;
  // A server that has all routes and scores probes, and answers all else with nothing.
  auto server = http::HttpServer::listen({}, {}, [](const http::HttpRequest& request) {
    const nlohmann::json asked = parse_json(request.body);
    if (!find_path(asked, "sampling_params.prompt_logprobs"))
      return http::HttpResponse{.body = request.method == "POST" ? "{}" : ""};
    nlohmann::json scores{nullptr};
    for (std::size_t i = 1; i < asked["token_ids"].size(); ++i)
      scores.push_back({{asked["token_ids"][i].dump(), {{"logprob", -1}}}});
    return http::HttpResponse{.body = dump_json({{"prompt_logprobs", scores}})};
  });
  ASSERT_TRUE(server);
  ServerSpec spec = server_spec(kPeers[0], model);
  spec.url = "http://" + to_string((*server)->endpoint());
  auto link = open_server(std::move(spec));
  ASSERT_TRUE(link) << link.error().message;
  Time now = steady_now();
  auto engine = *ServedEngine::make({model.config(), model.shared_tokenizer()},
                                    {.engine = tiny_engine_config(),
                                     .dialect = &vllm_dialect(),
                                     .label_prefix = "us",
                                     .manifest = model.weights(kV0).manifest()},
                                    *std::move(link), [&now] { return now; });
  engine->begin_update(kV0);
  engine->finish_update(model.weights(kV0).bytes());
  std::vector<EngineEvent> events;
  engine->submit(group_work(1, kPrompts[0]));
  const Time deadline = steady_now() + kPatience;
  while (events.empty() && steady_now() < deadline) {
    engine->step();
    now = now + 1s;  // pauses between asks pass at once
    events = engine->poll();
    std::this_thread::yield();
  }
  ASSERT_EQ(events.size(), 1u);
  const auto* failed = std::get_if<EngineFailed>(&events[0]);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->error.code, ErrorCode::kFailed) << "another server may do better";
  EXPECT_NE(failed->error.message.find("4 times"), std::string::npos) << failed->error.message;
  EXPECT_NE(failed->error.message.find("request_id"), std::string::npos) << failed->error.message;
}

TEST_P(Faulty, AServerThatDiesFailsTheEngineWithItsLastWords) {
  Served served(GetParam(), {"--fault", "die", "--fault-at", "2"});
  served.submit_all();
  served.run();
  ASSERT_TRUE(served.failure);
  for (const char* part : {"exited with code 1", "its last lines: ", ": error: "})
    EXPECT_NE(served.failure->message.find(part), std::string::npos) << served.failure->message;
  EXPECT_FALSE(served.engine->can_step());
}

TEST_P(Faulty, ATransferThatBreaksOffIsMadeOnceMore_WU1) {
  Served served(GetParam(), {"--fault", "break-update"});
  EXPECT_FALSE(served.failure);
  served.submit_all();
  served.run();
  EXPECT_FALSE(served.failure) << served.failure->message;
  served.expect_right();
}

TEST_P(Faulty, ATransferThatIsNeverAnsweredIsMadeOnceMore) {
  Served served(GetParam(), {"--fault", "stall-update"}, true, 2s);
  served.submit_all();
  served.run();
  EXPECT_FALSE(served.failure) << served.failure->message;
  served.expect_right();
}

// Also over a connection that the version before has left, which a pause does not concern.
TEST_P(Faulty, APauseThatFailsIsMadeAgain) {
  Served served(GetParam(), {"--fault", "no-pause", "--fault-at", "2"});
  served.update(kV1);
  ASSERT_FALSE(served.failure) << served.failure->message;
  served.submit_all();
  served.run();
  EXPECT_FALSE(served.failure);
  served.expect_right();
}

// Requests that were sent before have waited for the whole of it.
TEST_P(Faulty, AnUpdateThatStallsWhileRequestsRunCostsNoSample) {
  Served served(GetParam(), {"--fault", "stall-update", "--fault-at", "2"}, true, 2s);
  served.submit_all();
  served.run_until([&] { return served.engine->stats().sequences_running > 0; });
  served.update(kV1);
  served.run();
  EXPECT_FALSE(served.failure) << served.failure->message;
  EXPECT_EQ(served.payloads.size(), kPrompts.size());
}

// Whatever the server says of an update: its log-probabilities of the probe decide.
TEST_P(Faulty, AnUpdateThatChangedNothingOrTooMuchIsMadeAgain_EV4) {
  for (const auto& [fault, at] : {std::pair("wrong-update", "1"), {"stale-update", "2"}}) {
    Served served(GetParam(), {"--fault", fault, "--fault-at", at});
    served.submit_all();
    served.run_until([&] { return served.engine->stats().sequences_running > 0; });
    served.update(kV1);
    served.run();
    EXPECT_FALSE(served.failure) << served.failure->message;
    served.payloads.clear();
    served.submit_all();
    served.run();
    served.expect_right();
  }
}

// Packed, the bytes of all come in another order, which the probe tells. One by one, sizes differ,
// and the broadcast never ends: the server hangs, and the deadline ends the engine.
TEST(ServedEngine, TensorsInAnotherOrderAreNotTakenForTheVersion_TX1_EV4) {
  for (const Peer& peer : kPeers) {
    if (peer.transfer != WeightTransfer::kNccl) continue;
    Served served(peer, {"--fault", "wrong-order"}, true, 2s);
    served.submit_all();
    served.run();
    EXPECT_EQ(served.failure.has_value(), !peer.packed);
    if (peer.packed) {
      served.expect_right();
    } else {
      EXPECT_TRUE(served.payloads.empty());
    }
  }
}

TEST(TensorsWithin, TakesNoMoreBytesThanItMayAndOneTensorAtLeast) {
  device::Manifest manifest;
  for (const std::size_t bytes : {4u, 6u, 1u, 20u, 3u})
    manifest.parameters.push_back({.bytes = bytes});
  std::string calls;
  for (std::size_t first = 0; first < manifest.parameters.size();) {
    const TensorRange range = tensors_within(manifest, first, 10);
    calls += std::to_string(range.first) + "-" + std::to_string(range.behind) + " ";
    first = range.behind;
  }
  EXPECT_EQ(calls, "0-2 2-3 3-4 4-5 ") << "10 fit, 11 do not, and 20 have a call alone";
}

// SGLang holds the tensors of a call beside its weights.
TEST(ServedEngine, AVersionGoesInCallsOfLimitedBytes_WU1) {
  const auto peer = std::ranges::find(kPeers, std::string("sglang_nccl"), &Peer::name);
  ASSERT_NE(peer, std::end(kPeers));
  for (const std::size_t call_bytes : {std::size_t{1}, std::size_t{5000}}) {
    SCOPED_TRACE(call_bytes);
    Served broken(*peer, {"--fault", "break-update", "--fault-at", "3"}, true, kPatience,
                  call_bytes);
    broken.submit_all();
    broken.run_until([&] { return broken.engine->stats().sequences_running > 0; });
    broken.update(kV1);
    broken.run();
    EXPECT_FALSE(broken.failure) << broken.failure->message;
    broken.payloads.clear();
    broken.submit_all();
    broken.run();
    broken.expect_right();

    Served dead(*peer, {"--fault", "die-in-update", "--fault-at", "3"}, false, kPatience,
                call_bytes);
    dead.update(kV0);
    EXPECT_TRUE(dead.failure) << "its third call is of the first version";
  }
}

// The weights are new and the keys and values old: the probe alone would not tell.
TEST(ServedEngine, AnUpdateAfterWhichTheCacheIsNotEmptyIsMadeAgain_WU1) {
  Served served(std::end(kPeers)[-1], {"--fault", "unflushed", "--fault-at", "2"});
  served.submit_all();
  served.run_until([&] { return served.engine->stats().sequences_running > 0; });
  served.update(kV1);
  served.run();
  EXPECT_FALSE(served.failure) << served.failure->message;
}

TEST(ServedEngine, AServerThatNeverComputesWithAVersionFailsTheEngine_EV4) {
  Served served(kPeers[0]);
  served.engine->expect(kV1, probe_of(served.model, kV2));
  served.probes = false;
  served.update(kV1);
  ASSERT_TRUE(served.failure);
  EXPECT_NE(served.failure->message.find("(probe)"), std::string::npos) << served.failure->message;
  EXPECT_NE(served.failure->message.find("rollout.engine.logprob_tolerance"), std::string::npos)
      << served.failure->message;
}

TEST_P(Faulty, AServerThatDiesInAnUpdateFailsTheEngine) {
  Served served(GetParam(), {"--fault", "die-in-update"}, false);
  served.update(kV0);
  ASSERT_TRUE(served.failure);
  EXPECT_TRUE(served.engine->installing()) << "the version is never told of";
}

}  // namespace
}  // namespace tandem::rollout
