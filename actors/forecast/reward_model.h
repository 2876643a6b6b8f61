// A reward actor in virtual time, by its costs: it speaks the messages of a real one
// (messages/reward.h). With threads it shares the host's cores; without, it is not slowed by them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "actors/exchange/exchange.h"
#include "actors/forecast/costs.h"
#include "actors/forecast/host_load.h"
#include "actors/messages/reward.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/system.h"

namespace tandem::forecast {

class RewardModel {
 public:
  struct Begin {};
  using Inbox =
      std::variant<Begin, messages::ScoreGroups, messages::ScoreTexts, messages::ScoresKept>;

  // `n` completions per group. `host` outlives the actor.
  RewardModel(ActorId self, RewardCosts costs, std::int32_t n, HostLoad& host,
              actor::Ref<messages::RewardEvents> exchange);
  ~RewardModel();

  void handle(actor::Context& cx, Begin);
  void handle(actor::Context& cx, messages::ScoreGroups work);
  void handle(actor::Context& cx, messages::ScoreTexts work);
  void handle(actor::Context&, messages::ScoresKept) {}

 private:
  void finish_later(actor::Context& cx, messages::GroupsScored scored);

  const ActorId self_;
  const RewardCosts costs_;
  const std::int32_t n_;
  HostLoad& host_;
  WorkerId worker_;
  const actor::Ref<messages::RewardEvents> exchange_;
};

static_assert(actor::Actor<RewardModel>);

// The reward actor of a forecast's job. Lives as long as the dials that join() has put in place.
class RewardPlace {
 public:
  void join(exchange::Dials& dials);
  // Starts the actor, as this incarnation of the job's first.
  void start(actor::System& system, const std::string& job, Incarnation incarnation,
             const RewardCosts& costs, std::int32_t n, HostLoad& host,
             const actor::Ref<exchange::Exchange::Inbox>& exchange);

 private:
  actor::Ref<RewardModel::Inbox> reward_;
};

}  // namespace tandem::forecast
