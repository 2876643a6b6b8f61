// A peer of an exchange of a simulated cluster. The run's witness looks at each message before it
// leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/actor/ref.h"
#include "tests/actors/controller/simulated_run.h"
#include "tests/actors/controller/simulated_server.h"

namespace tandem::controller {

template <class Inbox>
class Witnessed final : public actor::Target<Inbox> {
 public:
  Witnessed(ActorId to, actor::Ref<Inbox> peer, std::shared_ptr<SimulatedRun> run, SharedLife life)
      : to_(std::move(to)), peer_(std::move(peer)), run_(std::move(run)), life_(std::move(life)) {}
  actor::Delivery post(Inbox message) override {
    if (!life_->dead()) run_->record.witness.sent(to_, message);
    return peer_.tell(std::move(message));
  }
  std::uint64_t bytes_max() const override { return peer_.bytes_max(); }
  Error too_large(const Inbox& message) const override { return peer_.too_large(message); }

 private:
  const ActorId to_;
  const actor::Ref<Inbox> peer_;
  const std::shared_ptr<SimulatedRun> run_;
  const SharedLife life_;
};

}  // namespace tandem::controller
