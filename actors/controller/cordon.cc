#include "actors/controller/cordon.h"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/controller/cordon_mark.h"
#include "actors/controller/nodes.h"
#include "actors/controller/queue.h"
#include "actors/controller/room.h"
#include "actors/controller/stopping.h"

namespace tandem::controller {

using scheduler::ActorState;

namespace {

Error no_node(const std::string& name) {
  return {ErrorCode::kNotFound, "there is no node " + name, "", "`tandem get nodes` lists them"};
}

bool runs_on(const ActorRecord& actor, const std::string& node) {
  return std::ranges::any_of(
      actor.ranks, [&](const RankRecord& rank) { return rank.alive && rank.node == node; });
}

void move_off(Turn& turn, const JobRecord& job, ActorRecord& actor, const std::string& node) {
  switch (actor.status.state) {
    case ActorState::kReady:
    case ActorState::kBusy:
      actor.moved_off = node;
      return drain(turn, job, actor);
    case ActorState::kStarting:
    case ActorState::kInitializing:
      actor.moved_off = node;
      return stop_actor(turn, job, actor, scheduler::NodeDrained{node});
    case ActorState::kDraining:
    case ActorState::kStopping:  // it is leaving already
    case ActorState::kQueued:
    case ActorState::kPlacing:
    case ActorState::kBackoff:
    case ActorState::kStopped:
    case ActorState::kFailed:
    case ActorState::kLost:
      return;
  }
}

void empty_node(Turn& turn, NodeRecord& node) {
  turn.announce(node, "drained: its actors move to other nodes");
  give_up_silent(turn, node);
  give_up_awaited(turn, node.name);
  for (auto& [id, job] : turn.state.jobs) {
    if (job.outcome || scheduler::is_final(job.status.state)) continue;
    for (auto& [name, actor] : job.actors)
      if (runs_on(actor, node.name)) move_off(turn, job, actor, node.name);
  }
}

}  // namespace

Result<void> take(Turn& turn, const CordonNode& cordon) {
  const auto it = turn.state.nodes.find(cordon.node);
  if (it == turn.state.nodes.end()) return no_node(cordon.node);
  mark_cordoned(turn, cordon.node, it->second, cordon.why);
  if (cordon.drain) empty_node(turn, it->second);
  return {};
}

void heed_leaving(Turn& turn, const node::NodeUp& up) {
  NodeRecord& node = turn.state.nodes.at(up.node);
  if (node.incarnation != up.incarnation) return;  // it was refused
  if (std::exchange(node.leaving, up.leaving) == up.leaving) return;
  renew_room(turn.state, node);
  turn.note_change();
  if (!up.leaving) return;
  turn.announce(node, "its host is to end", messages::EventLevel::kWarning);
  empty_node(turn, node);
}

Result<void> take(Turn& turn, const UncordonNode& uncordon) {
  const auto it = turn.state.nodes.find(uncordon.node);
  const DurableState& durable = turn.state.durable;
  const bool of_gpus = durable.cordoned_gpus().contains(uncordon.node);
  if (it == turn.state.nodes.end()) {  // a node of the controller before may have the mark
    if (!of_gpus && !durable.cordoned().contains(uncordon.node)) return no_node(uncordon.node);
    turn.remember(NodeUncordoned{uncordon.node});
    turn.state.node_deaths.forget({uncordon.node});
  } else if (of_gpus || it->second.cordoned) {
    unmark_cordoned(turn, uncordon.node, it->second);
  }
  return {};
}

}  // namespace tandem::controller
