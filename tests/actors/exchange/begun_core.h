// An exchange's core alone, brought up to its first leases: inputs and times in, effects out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/exchange/exchange_core.h"
#include "runtime/wire/codec.h"
#include "tests/actors/controller/scenario.h"

namespace tandem::exchange {

inline const ActorId kFirstLearner{"job-1/learner/0", Incarnation{1}};
inline const ActorId kFirstRollout{"job-1/rollout/0", Incarnation{2}};
inline const ActorId kFirstReward{"job-1/reward/0", Incarnation{3}};

// The effect's kind and content as text.
inline std::string text(const ExchangeEffect& effect) {
  std::string words = std::to_string(effect.index());
  const auto add_message = [&](const auto& inbox) {
    std::visit([&](const auto& message) { words += " " + wire::encode(message); }, inbox);
  };
  if (const auto* to = std::get_if<To<messages::RolloutPeer>>(&effect)) add_message(to->message);
  if (const auto* to = std::get_if<To<messages::RewardPeer>>(&effect)) add_message(to->message);
  if (const auto* to = std::get_if<To<messages::LearnerPeer>>(&effect)) add_message(to->message);
  if (const auto* journal = std::get_if<Journal>(&effect))
    for (const JournalEvent& event : journal->events) words += " " + wire::encode(event);
  return words;
}

class BegunCore {
 public:
  explicit BegunCore(std::int64_t groups_per_step = 4) : core_(config(groups_per_step)) {}
  explicit BegunCore(ExchangeConfig config) : core_(std::move(config)) {}

  // Gives the core the input and then one decision, as the actor does.
  std::vector<ExchangeEffect> take(ExchangeInput input) {
    now_ = now_ + std::chrono::milliseconds(1);
    std::vector<ExchangeEffect> all = core_.step(std::move(input), now_);
    for (ExchangeInput next : {ExchangeInput(Decide{}), ExchangeInput(MessagesSent{})})
      for (ExchangeEffect& effect : core_.step(std::move(next), now_))
        all.push_back(std::move(effect));
    return all;
  }

  // Brings the run up to the first leases, which are the effects of the last input.
  std::vector<ExchangeEffect> begin() {
    const ExchangeInput inputs[] = {
        messages::LearnerUp{kFirstLearner, {}},
        messages::Published{kFirstLearner,
                            {.version = kInitialWeights, .oldest_retained = kInitialWeights}},
        messages::WarmStarted{.from = kFirstLearner,
                              .publication = {PolicyVersion{0}, kInitialWeights, 100}},
        messages::RolloutUp{kFirstRollout, 100},
        messages::RewardUp{kFirstReward, 100},
        messages::Installed{.from = kFirstRollout, .version = PolicyVersion{0}, .checksum = 100}};
    std::vector<ExchangeEffect> last;
    for (const ExchangeInput& input : inputs) {
      last = take(input);
      for (const ExchangeEffect& effect : last) said_.push_back(text(effect));
    }
    return last;
  }

  std::vector<std::string> said_;
  ExchangeCore core_;
  Time now_;

 private:
  static ExchangeConfig config(std::int64_t groups_per_step) {
    controller::SimulatedJob job = controller::plain_job(2);
    job.exchange.budget.groups_per_step = groups_per_step;
    return controller::exchange_config(job, "job-1", false);
  }
};

}  // namespace tandem::exchange
