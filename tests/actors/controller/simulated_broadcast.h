// The broadcast rank of a simulated rollout or learner: answers the exchange's orders as a real one
// does, after drawn delays, and moves no bytes. An epoch starts once all of its ranks are there. It
// hangs, fails, dies or is late as the job says, and notes orders that no exchange may give.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/messages/broadcast.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"

namespace tandem::controller {

struct SimulatedBroadcasts {                            // faults are fractions of epochs
  Duration answer_max = std::chrono::milliseconds(10);  // the latest answer to an order
  double late = 0;                                      // an answer takes up to `late_max`
  Duration late_max = std::chrono::seconds(4);
  double hangs = 0;  // it answers nothing any more; where everybody leaves, not even that
  double fails = 0;
  double dies = 0;  // at most once for each actor, all incarnations together
};

// The state that the ranks of one job share: who is in which epoch. It outlives them.
struct SimulatedEpochs {
  struct Epoch {
    std::string unique_id;
    int size = 0;
    std::map<std::string, std::function<void()>> there;  // by actor: tells it that all are there
  };
  std::map<std::uint64_t, Epoch> epochs;
  std::optional<std::uint64_t> in_use;  // versions published now are broadcast in this epoch
  std::uint64_t sequence = 0;           // the number of the newest broadcast in that epoch
  std::set<std::pair<Incarnation, std::uint64_t>> joined;
  std::set<std::pair<Incarnation, PolicyVersion>> told;  // who was told the place of which version
  std::set<std::string> died;
  std::int64_t formed = 0, failed = 0, hung = 0, left = 0, asked_to_leave = 0;
  std::vector<std::string> wrong;  // orders that no exchange may give

  // The place of the version that is published now.
  std::optional<wire::BroadcastPlace> next_place();
  void check(const ActorId& rollout, PolicyVersion version, const wire::BroadcastPlace& place);
};

class SimulatedBroadcast {
 public:
  struct Begin {};
  struct MeetAgain {};  // another exchange follows
  struct AllThere {
    std::uint64_t epoch = 0;
  };
  using Inbox = std::variant<Begin, MeetAgain, AllThere, messages::OpenEpoch, messages::JoinEpoch,
                             messages::UseEpoch, messages::LeaveEpoch>;
  // `wake(epoch)` tells this rank AllThere, while it lives.
  SimulatedBroadcast(ActorId self, const SimulatedBroadcasts& faults,
                     std::shared_ptr<SimulatedEpochs> shared,
                     actor::Ref<messages::BroadcastEvents> exchange,
                     std::function<void(std::uint64_t epoch)> wake);

  void handle(actor::Context& cx, Begin);
  void handle(actor::Context& cx, MeetAgain);
  void handle(actor::Context& cx, AllThere all);
  void handle(actor::Context& cx, messages::OpenEpoch open);
  void handle(actor::Context& cx, messages::JoinEpoch join);
  void handle(actor::Context& cx, messages::UseEpoch use);
  void handle(actor::Context& cx, messages::LeaveEpoch leave);

 private:
  void answer(actor::Context& cx, messages::BroadcastEvents event);
  void start(actor::Context& cx, std::uint64_t epoch);
  void leave(std::uint64_t epoch);
  bool happens(actor::Context& cx, double fraction) const;
  void expect(bool fine, const std::string& what);

  const ActorId self_;
  const SimulatedBroadcasts faults_;
  const std::shared_ptr<SimulatedEpochs> shared_;
  const actor::Ref<messages::BroadcastEvents> exchange_;
  const std::function<void(std::uint64_t epoch)> wake_;
  std::set<std::uint64_t> inside_;    // asked into, and not to leave
  std::set<std::uint64_t> forsaken_;  // left without having been asked to
  std::uint64_t newest_ = 0;
  bool hung_ = false;
};
static_assert(actor::Actor<SimulatedBroadcast>);

}  // namespace tandem::controller
