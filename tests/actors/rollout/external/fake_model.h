// The model inside a fake inference server: native engines of ours on a thread of their own, driven
// as a server drives its model. It pauses, keeps what runs, takes weights between two steps, and
// says which version sampled which token. Requests may differ in how they sample, which an engine
// of ours takes from its configuration: each way of sampling gets an engine.
//
// Any thread may call; callbacks come on the model's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/model/checkpoint.h"
#include "actors/rollout/external/served_answer.h"

namespace tandem::rollout {

struct FakeRequest {
  std::string id;
  std::vector<std::int32_t> prompt;
  std::int32_t n = 1;
  std::uint64_t seed = 0;
  double temperature = 1;  // 0: greedy
  double top_p = 1, min_p = 0;
  std::int64_t top_k = 0;
  std::int64_t min_tokens = 0, max_tokens = 16;
  std::vector<std::int64_t> stop_token_ids;
  std::vector<std::string> stop;
};

class FakeModel {
 public:
  // The model of a Hugging Face directory; its weights are random until the first update.
  FakeModel(model::ModelInfo info, std::int64_t sequences_max);
  ~FakeModel();

  const model::ModelInfo& info() const;

  // Why the request cannot be served, or nothing: then `done` gets its completions, once, or none
  // where it was aborted.
  using Done = std::function<void(std::optional<std::vector<ServedCompletion>>)>;
  std::optional<std::string> generate(FakeRequest request, Done done);
  bool abort(const std::string& id);  // false: no such request
  bool busy() const;                  // requests run or wait

  void pause();  // returns when nothing computes; what runs is kept
  void resume();
  bool paused() const;
  // Computes nothing from where so many completions are whole, and others are open, to an update.
  void wait_for_update(std::ptrdiff_t completions);
  // Between two steps: everything that runs goes on by these weights. `arena` has the layout of
  // info().manifest and is copied.
  void update(std::span<const std::byte> arena, std::string label);
  // Sums over all that was computed.
  TokenCounts tokens() const;
  std::int64_t sequences_running() const;
  void relabel(std::string label);  // calls the weights that it has by another name
  std::string label() const;        // of the version that is installed
  // The log-probabilities of all tokens but the first one, at temperature 1.
  std::vector<float> score(std::span<const std::int32_t> tokens) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::rollout
