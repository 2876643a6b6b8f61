// One step of the controller's core, as its parts see it: the state, the time, and the effects,
// which a part adds in the order in which they are to be carried out.
//
// The parts are functions over a Turn, a file for each part (controller_core.h lists them). A part
// that takes an event changes records and sends effects; whether anything can start now is decided
// once, at the end of the step (queue.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "actors/controller/controller_events.h"
#include "actors/controller/controller_state.h"

namespace tandem::controller {

// Lasts for one step; the references outlive it.
class Turn {
 public:
  Turn(ControllerState& all, Time time, std::vector<ControllerEffect>& effects)
      : state(all), now(time), effects_(effects) {}

  ControllerState& state;
  const Time now;

  void send(ControllerEffect effect) { effects_.push_back(std::move(effect)); }
  void announce(const JobRecord& job, std::string message,
                messages::EventLevel level = messages::EventLevel::kInfo) {
    send(Announce{"job", job.id, std::move(message), level});
  }
  void announce(const ActorRecord& actor, std::string message,
                messages::EventLevel level = messages::EventLevel::kInfo) {
    send(Announce{"actor", actor.name, std::move(message), level});
  }
  void announce(const NodeRecord& node, std::string message,
                messages::EventLevel level = messages::EventLevel::kInfo) {
    send(Announce{"node", node.name, std::move(message), level});
  }
  // Changes what survives the controller's process (CC-5).
  void remember(DurableEvent event) {
    state.durable.apply(event);
    send(Remember{std::move(event)});
  }
  // Something has changed that schedule() (queue.h) reads: a node, a lease, a job, who waits.
  void note_change() { ++state.changes; }

 private:
  std::vector<ControllerEffect>& effects_;
};

}  // namespace tandem::controller
