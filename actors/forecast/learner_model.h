// A learner in virtual time, by its costs: it speaks the messages of a real one
// (messages/learner.h). Its checkpoints are complete at once, and it never dies.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "actors/forecast/costs.h"
#include "actors/forecast/rollout_model.h"
#include "actors/messages/learner.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"

namespace tandem::forecast {

class LearnerModel {
 public:
  struct Begin {};
  using Inbox = std::variant<Begin, messages::PublishInitial, messages::WarmStart,
                             messages::TrainStep, messages::SaveCheckpoint>;

  // `threads` of the host while it trains; `training` counts for how long it did.
  LearnerModel(ActorId self, LearnerCosts costs, double threads, SharedFleet shared,
               std::shared_ptr<StateClock> training, actor::Ref<messages::LearnerEvents> exchange);
  ~LearnerModel();

  void handle(actor::Context& cx, Begin);
  void handle(actor::Context& cx, messages::PublishInitial publish);
  void handle(actor::Context& cx, messages::WarmStart);
  void handle(actor::Context& cx, messages::TrainStep step);
  void handle(actor::Context& cx, messages::SaveCheckpoint save);

 private:
  void send(messages::LearnerEvents event);
  messages::Publication publication(PolicyVersion version, PolicyVersion retain);
  void end_step(actor::Context& cx, const messages::TrainStep& step);
  void commit(const messages::TrainStep& step, double took_s);

  const ActorId self_;
  const LearnerCosts costs_;
  const double threads_;
  const SharedFleet shared_;
  const std::shared_ptr<StateClock> training_;
  const actor::Ref<messages::LearnerEvents> exchange_;
  std::set<PolicyVersion> offered_;
  WorkerId worker_;           // of the host
  std::uint64_t tokens_ = 0;  // of the step that comes or is under way
};

static_assert(actor::Actor<LearnerModel>);

}  // namespace tandem::forecast
