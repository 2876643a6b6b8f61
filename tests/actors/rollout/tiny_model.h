// What the engine's tests share: the quickstart's model with random weights, and an engine driven
// by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "actors/model/checkpoint.h"
#include "actors/rollout/native_engine.h"

namespace tandem::actors {

inline Model tiny_model(std::uint64_t seed) {
  const auto directory =
      std::filesystem::path(TANDEM_SOURCE_DIR) / "configs" / "models" / "arithmetic";
  Result<Model> model = load_model(directory, {.init = InitMode::kRandom, .seed = seed});
  CHECK(model.has_value());
  return *std::move(model);
}

// The weights of several versions over one configuration.
class TinyModel {
 public:
  explicit TinyModel(int versions = 1) {
    for (int v = 0; v < versions; ++v)
      models_.push_back(tiny_model(static_cast<std::uint64_t>(v) + 1));
    tokenizer_ = std::make_shared<const Tokenizer>(std::move(tiny_model(1).tokenizer));
  }

  const ModelConfig& config() const { return models_.front().config; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const runtime::Arena& weights(PolicyVersion version) const {
    return models_[static_cast<std::size_t>(version.value)].weights;
  }

  Result<std::unique_ptr<NativeEngine>> try_engine(const EngineConfig& config,
                                                   runtime::Stream stream = {}) const {
    return NativeEngine::make({this->config(), tokenizer_}, config, stream);
  }
  // With version 0 installed.
  std::unique_ptr<NativeEngine> engine(const EngineConfig& config,
                                       runtime::Stream stream = {}) const {
    Result<std::unique_ptr<NativeEngine>> made = try_engine(config, stream);
    CHECK(made.has_value());
    std::unique_ptr<NativeEngine> engine = *std::move(made);
    engine->begin_update(PolicyVersion{0});
    fill_sink(*engine, PolicyVersion{0});
    engine->finish_update();
    return engine;
  }
  void fill_sink(NativeEngine& engine, PolicyVersion version) const {
    const auto from = weights(version).bytes();
    std::memcpy(engine.weight_sink().data(), from.data(), from.size());
  }
  void update(NativeEngine& engine, PolicyVersion version) const {
    engine.begin_update(version);
    fill_sink(engine, version);
    ASSERT_TRUE(engine.may_finish_update());
    engine.finish_update();
  }

 private:
  std::vector<Model> models_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

inline EngineConfig tiny_engine_config() {
  return {.max_prompt_length = 48,
          .max_response_length = 40,
          .max_num_seqs = 32,
          .max_num_batched_tokens = 256};
}

inline GroupWork group_work(std::uint64_t group, std::string prompt, std::int32_t n = 4) {
  return {.group = GroupId{group},
          .due = StepId{0},
          .seed = 1000 + group,
          .n = n,
          .prompt = std::move(prompt)};
}

inline bool operator==(const VersionSpan& a, const VersionSpan& b) {
  return a.version == b.version && a.begin == b.begin && a.end == b.end;
}

using Payloads = std::map<GroupId, GroupPayload>;

inline void gather(Engine& engine, Payloads& payloads) {
  for (EngineEvent& event : engine.poll())
    if (auto* payload = std::get_if<GroupPayload>(&event)) {
      const bool fresh = payloads.emplace(payload->group, std::move(*payload)).second;
      EXPECT_TRUE(fresh) << "EN-2";
    }
}

inline Payloads run_to_end(Engine& engine) {
  Payloads payloads;
  while (engine.can_step()) {
    engine.step();
    gather(engine, payloads);
  }
  gather(engine, payloads);
  return payloads;
}

inline void expect_same(const GroupPayload& a, const GroupPayload& b, const std::string& what) {
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens) << what;
  ASSERT_EQ(a.trajectories.size(), b.trajectories.size()) << what;
  for (std::size_t i = 0; i < a.trajectories.size(); ++i) {
    const Trajectory &x = a.trajectories[i], &y = b.trajectories[i];
    EXPECT_EQ(x.tokens, y.tokens) << what << ", trajectory " << i;
    EXPECT_EQ(x.logprobs, y.logprobs) << what << ", trajectory " << i;  // to the bit
    EXPECT_TRUE(x.versions == y.versions) << what << ", trajectory " << i;
    EXPECT_EQ(x.oldest, y.oldest) << what << ", trajectory " << i;
    EXPECT_EQ(x.text, y.text) << what << ", trajectory " << i;
    EXPECT_EQ(x.truncated, y.truncated) << what << ", trajectory " << i;
  }
}

}  // namespace tandem::actors
