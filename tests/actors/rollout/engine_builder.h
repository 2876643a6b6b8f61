// Builders for the engine's tests: engines over several versions of the quickstart's model, work
// for them, and their results.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/model/checkpoint.h"
#include "actors/rollout/native_engine.h"
#include "tests/actors/rollout/versions.h"

namespace tandem::rollout {

inline const std::vector<std::string> kPrompts{"36+01=", "1+2=3;", "857+164=7+4+0=11;5+6+1=12;",
                                               "9", "123+456=3+6+0=09;2+5+0=07;1+4+0=05;05"};

// The weights of several versions over one configuration.
class TinyModel {
 public:
  explicit TinyModel(int versions = 1, device::DType dtype = device::DType::kF32,
                     std::int64_t positions = 128, model::Family family = model::Family::kQwen3);

  const model::ModelConfig& config() const { return config_; }
  const model::Tokenizer& tokenizer() const { return *tokenizer_; }
  std::shared_ptr<const model::Tokenizer> shared_tokenizer() const { return tokenizer_; }
  // The weights as a learner publishes them.
  const device::Arena& weights(PolicyVersion version) const {
    return weights_[static_cast<std::size_t>(version.value)];
  }

  Result<std::unique_ptr<NativeEngine>> try_engine(const EngineConfig& config,
                                                   device::Stream stream = {},
                                                   std::function<Time()> clock = steady_now) const;
  // An engine with version 0 installed.
  std::unique_ptr<NativeEngine> engine(const EngineConfig& config, device::Stream stream = {},
                                       std::function<Time()> clock = steady_now) const;
  void fill_sink(NativeEngine& engine, PolicyVersion version) const;
  void update(NativeEngine& engine, PolicyVersion version) const;

 private:
  model::ModelConfig config_;
  std::vector<device::Arena> weights_;
  std::shared_ptr<const model::Tokenizer> tokenizer_;
};

EngineConfig tiny_engine_config();
messages::GroupWork group_work(std::uint64_t group, std::string prompt, std::int32_t n = 4);

using Payloads = std::map<GroupId, messages::GroupPayload>;

// gather() adds the groups that the engine has finished; run_to_end() steps until nothing is left
// to do.
void gather(Engine& engine, Payloads& payloads);
Payloads run_to_end(Engine& engine);

// The learner's log-probabilities of a trajectory under one version, on the stream's device.
std::vector<float> learner_logprobs(const device::Stream& stream, const TinyModel& model,
                                    PolicyVersion version, const messages::GroupPayload& payload,
                                    const messages::Trajectory& trajectory, float temperature);

void expect_same(const messages::GroupPayload& a, const messages::GroupPayload& b,
                 const std::string& what);

}  // namespace tandem::rollout
