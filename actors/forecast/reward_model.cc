#include "actors/forecast/reward_model.h"

#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::forecast {

RewardModel::RewardModel(ActorId self, RewardCosts costs, std::int32_t n, HostLoad& host,
                         actor::Ref<messages::RewardEvents> exchange)
    : self_(std::move(self)), costs_(costs), n_(n), host_(host), exchange_(std::move(exchange)) {}

RewardModel::~RewardModel() { host_.leave(worker_); }

void RewardModel::handle(actor::Context& cx, Begin) {
  worker_ = host_.join(cx, costs_.threads);
  const std::int32_t capacity =
      costs_.capacity > 0 ? costs_.capacity : std::numeric_limits<std::int32_t>::max();
  CHECK(exchange_.tell(messages::RewardUp{self_, capacity}) == actor::Delivery::kAccepted);
}

// The first completion earns 1 and the others 0, but in groups without variance.
void RewardModel::handle(actor::Context& cx, messages::ScoreGroups work) {
  messages::GroupsScored scored{.from = self_, .groups = {}};
  for (const messages::GroupToScore& group : work.groups) {
    messages::GroupScore score{.group = group.group, .attempt = group.attempt, .scores = {}};
    const bool alike = cx.rng().unit() < costs_.zero_variance;
    for (std::int32_t i = 0; i < n_; ++i)
      score.scores.emplace_back(messages::Scored{i == 0 && !alike ? 1.0 : 0.0});
    scored.groups.push_back(std::move(score));
  }
  finish_later(cx, std::move(scored));
}

void RewardModel::finish_later(actor::Context& cx, messages::GroupsScored scored) {
  auto finish = [this, scored = std::move(scored)](actor::Context&) {
    CHECK(exchange_.tell(scored) != actor::Delivery::kFull);
  };
  if (costs_.threads > 0)
    host_.begin(worker_, costs_.score_s, std::move(finish));
  else
    cx.after(duration_of(costs_.score_s), std::move(finish));
}

void RewardModel::handle(actor::Context&, messages::ScoreTexts) {
  CHECK(false);  // a forecast has no evaluations
}

void RewardPlace::join(exchange::Dials& dials) {
  std::get<exchange::Dial<messages::RewardPeer>>(dials) = [this](const ActorId&) {
    return actor::narrow<messages::RewardInbox>(reward_);
  };
}

void RewardPlace::start(actor::System& system, const std::string& job, Incarnation incarnation,
                        const RewardCosts& costs, std::int32_t n, HostLoad& host,
                        const actor::Ref<exchange::Exchange::Inbox>& exchange) {
  const ActorId self{messages::actor_name(job, messages::Role::kReward, 0), incarnation};
  reward_ = system.spawn<RewardModel>(self.name, [self, costs, n, &host, exchange] {
    return std::make_unique<RewardModel>(self, costs, n, host,
                                         actor::narrow<messages::RewardEvents>(exchange));
  });
  CHECK(reward_.tell(RewardModel::Begin{}) == actor::Delivery::kAccepted);
}

}  // namespace tandem::forecast
