#include "actors/rollout/external/server_about.h"

#include <gtest/gtest.h>

#include <map>

namespace tandem::rollout {
namespace {

// A server that has these routes.
GetFromServer server_with(std::map<std::string, std::string> bodies) {
  return [bodies = std::move(bodies)](const std::string& target) -> Result<http::HttpResponse> {
    const auto found = bodies.find(target);
    if (found == bodies.end()) return http::HttpResponse{.status = 404};
    return http::HttpResponse{.body = found->second};
  };
}

TEST(ServerAbout, ReadsWhatAServerSaysOfItself) {
  const auto about = ask_about(
      server_with({{"/v1/models", R"({"data":[{"id":"m","owned_by":"vllm","max_model_len":512}]})"},
                   {"/version", R"({"version":"0.32.0"})"},
                   {"/server_info?config_format=json",
                    R"({"vllm_config":{"model_config":{"logprobs_mode":"raw_logprobs"},
                          "weight_transfer_config":{"backend":"nccl"}}})"}}));
  ASSERT_TRUE(about);
  EXPECT_EQ(about->owner, "vllm");
  EXPECT_EQ(about->model, "m");
  EXPECT_EQ(about->version, "0.32.0");
  EXPECT_EQ(about->positions, 512);
  EXPECT_EQ(about->processed_logprobs, false);
  EXPECT_EQ(about->weight_backend, "nccl");
}

TEST(ServerAbout, WhatItDoesNotSayStaysEmpty) {
  for (const char* models : {"", "[]", "{}", R"({"data":[]})", R"({"data":[1]})",
                             R"({"data":[{"max_model_len":"many","owned_by":7}]})"}) {
    const auto about = ask_about(server_with({{"/v1/models", models}, {"/version", "1"}}));
    ASSERT_TRUE(about) << models;
    EXPECT_EQ(about->owner + about->model + about->version, "");
    EXPECT_FALSE(about->positions || about->processed_logprobs);
    EXPECT_FALSE(unmet_need(*about, {.positions = 1 << 20})) << "its routes and probe will tell";
  }
}

TEST(ServerAbout, NamesTheNeedThatIsNotMet) {
  const ServerAbout vllm{.owner = "vllm", .positions = 100, .processed_logprobs = false};
  const auto unmet = [](const ServerAbout& about, const ServerNeeds& needs) {
    const auto error = unmet_need(about, needs);
    return error ? error->message + "; " + error->help : "";
  };
  EXPECT_EQ(unmet(vllm, {.positions = 100}), "");
  EXPECT_NE(unmet(vllm, {.positions = 101}).find("--max-model-len 101"), std::string::npos);
  EXPECT_NE(unmet(vllm, {.engine = EngineName::kSglang}).find("rollout.name: vllm"),
            std::string::npos);
  EXPECT_NE(unmet(vllm, {.processed_logprobs = true}).find("processed_logprobs"),
            std::string::npos);
  const ServerAbout by_nccl{.owner = "vllm", .weight_backend = "nccl"};
  EXPECT_EQ(unmet(by_nccl, {.transfer = WeightTransfer::kNccl}), "");
  EXPECT_EQ(unmet(by_nccl, {.transfer = WeightTransfer::kDisk}), "");
  EXPECT_NE(unmet(by_nccl, {.transfer = WeightTransfer::kTcp}).find(R"({"backend":"tandem_tcp"})"),
            std::string::npos);
  const ServerAbout sglang{.owner = "sglang", .positions = 100};
  EXPECT_NE(
      unmet(sglang, {.engine = EngineName::kSglang, .positions = 100}).find("--context-length 106"),
      std::string::npos)
      << "it keeps 6 back";
}

TEST(ServerAbout, ListsTheRoutesThatItLacks) {
  constexpr NeededRoute kNeeded[] = {{"/one", "start it so"}, {"/two", "or so"}};
  const auto missing = missing_routes(server_with({{"/one", ""}}), kNeeded);
  ASSERT_TRUE(missing);
  ASSERT_EQ(missing->size(), 1u);
  EXPECT_EQ(missing->front().target, "/two");
}

}  // namespace
}  // namespace tandem::rollout
