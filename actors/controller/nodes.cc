#include "actors/controller/nodes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "actors/controller/actor_end.h"
#include "actors/controller/adoption.h"
#include "actors/controller/cordon_mark.h"
#include "actors/controller/job_end.h"
#include "actors/controller/room.h"
#include "actors/controller/transitions.h"
#include "actors/controller/unwanted.h"
#include "actors/controller/upkeep.h"

namespace tandem::controller {

namespace {

// The agent that is up keeps the name, because it owns the processes there. A new agent of a node
// whose old agent died asks again until the loss of the old one is known.
void refuse(Turn& turn, NodeRecord& node, const node::NodeUp& up) {
  turn.send(RefuseNode{up.node, up.incarnation, node.pid});
  if (std::exchange(node.refused, up.incarnation) != up.incarnation)
    turn.announce(node,
                  "a second agent, pid " + std::to_string(up.pid) + ", is refused: pid " +
                      std::to_string(node.pid) + " has this name",
                  messages::EventLevel::kWarning);
}

// The agent was told to end these and may not have done so.
void cut_those_that_end(Turn& turn, const std::string& node) {
  for (const node::RankId& id : ranks_left(turn.state, node)) {
    if (!turn.state.actor_of({id.actor, id.incarnation})->ending) continue;
    turn.state.rank_of(id)->end_unheard = true;
    turn.send(CutLink{id});
  }
}

void wait_for_agent(Turn& turn, NodeRecord& node, Time until) {
  node.agent_until = until;
  turn.state.found.node_checks.emplace(until, node.name);
  turn.send(WakeAt{until});
}

std::string agent_lost_text(ControllerState& state, const std::vector<node::RankId>& left) {
  const auto linked = std::ranges::count_if(
      left, [&](const node::RankId& id) { return state.rank_of(id)->connected; });
  const auto others = std::ssize(left) - linked;
  return "its agent is lost; " + std::to_string(linked) +
         " of its processes are linked and work on" +
         (others > 0 ? ", " + std::to_string(others) + " are waited for" : "");
}

// Ranks that are linked to this controller after the whole time of a silence have had it: their
// agent hangs.
void lose_node(Turn& turn, NodeRecord& node, bool died) {
  const bool was_silent = std::exchange(node.silent, false);
  node.up = false;
  forget_unwanted(turn, node);
  turn.remember(NodeLeft{node.name});
  turn.note_change();
  if (!was_silent) date_node(turn.state, node, turn.now);
  renew_room(turn.state, node);
  node.agent_until.reset();
  const Lost which = died ? Lost::kUnlinked : Lost::kUnheard;
  const std::vector<node::RankId> left = ranks_left(turn.state, node.name, which);
  turn.announce(node, left.empty() ? "lost" : agent_lost_text(turn.state, left),
                messages::EventLevel::kError);
  // A process that is silent too, or comes back, lives for its grace since it last heard a
  // controller, and ends after that (CC-1).
  const bool all_heard = std::ranges::all_of(left, [&](const node::RankId& id) {
    const RankRecord& rank = *turn.state.rank_of(id);
    return rank.connected && !rank.silent;
  });
  const Duration wait = all_heard ? turn.state.rules.node_grace : turn.state.away_max();
  if (!left.empty()) wait_for_agent(turn, node, was_silent && !died ? turn.now : turn.now + wait);
  cut_those_that_end(turn, node.name);
  lose_ranks(turn, node.name, which);
  renew_reasons(turn, node.name);
  look_again_on(turn.state, node.name);
}

void fall_silent(Turn& turn, NodeRecord& node) {
  node.up = false;
  node.silent = true;
  date_node(turn.state, node, turn.now);
  renew_room(turn.state, node);
  look_again_on(turn.state, node.name);
  // Its ranks without a link have nobody any more who could end them.
  check_actors_on(turn.state, node.name);
  // It has been silent for that time already.
  const Duration left = turn.state.away_max() - link::kRemotePeerTimeout;
  wait_for_agent(turn, node, turn.now + left);
  turn.note_change();
  turn.announce(node,
                "cannot be reached; its processes may work on, and are waited for at most " +
                    std::to_string(left / std::chrono::seconds(1)) + " s",
                messages::EventLevel::kError);
  renew_reasons(turn, node.name);
}

}  // namespace

void take(Turn& turn, const node::NodeUp& up) {
  forget_lost_nodes(turn);
  NodeRecord& node = turn.state.nodes[up.node];
  node.name = up.node;
  if (node.up && node.incarnation != up.incarnation) return refuse(turn, node, up);
  const bool was_up = node.up;
  if (!was_up) {
    date_node(turn.state, node, turn.now);
    if (!turn.state.durable.nodes().contains(up.node)) turn.remember(NodeJoined{up.node});
  }
  if (const auto cordon = turn.state.durable.cordoned().find(up.node);
      cordon != turn.state.durable.cordoned().end())
    node.cordoned = cordon->second;
  node.incarnation = up.incarnation;
  node.total = scheduler::resources({.cpus = up.cpus,
                                     .gpus = static_cast<double>(up.gpus.size()),
                                     .memory_bytes = up.memory_bytes});
  // The shares that living ranks hold stay held; those that have ended are known below.
  const std::vector<std::int32_t> gone = renew_gpus(node, up.gpus);
  recall_cordoned_gpus(turn.state, node);
  node.gpus_unusable = up.gpus_unusable;
  node.gpus_absent = up.gpus_absent;
  node.nccl = up.nccl;
  node.pid = up.pid;
  node.up = true;
  node.silent = false;
  node.awaited = false;
  node.agent_until.reset();
  renew_room(turn.state, node);
  look_again_on(turn.state, node.name);
  turn.note_change();
  turn.announce(node, node.cordoned ? "up, and cordoned: " + *node.cordoned : "up");
  if (!gone.empty())
    turn.announce(node, "does not find " + gpus_in_words(node, gone) + " any more, held by actors",
                  messages::EventLevel::kWarning);
  if (!was_up) meet_ranks(turn, node, up);
  renew_reasons(turn, node.name);
  if (node.unwanted.empty()) turn.state.nodes_awaited.erase(up.node);
}

// Of an agent that dies it comes twice: its process has ended, and then its link.
void take(Turn& turn, const NodeDown& down) {
  const auto it = turn.state.nodes.find(down.node);
  if (it == turn.state.nodes.end() || it->second.incarnation != down.incarnation) return;
  if (it->second.up || it->second.silent) lose_node(turn, it->second, down.died);
}

void take(Turn& turn, const NodeSilent& event) {
  const auto it = turn.state.nodes.find(event.node);
  if (it == turn.state.nodes.end()) return;
  NodeRecord& node = it->second;
  // It is up again once it has told which ranks it has. It is refused if another agent has its
  // name.
  if (event.silent && node.up && node.incarnation == event.incarnation)
    fall_silent(turn, node);
  else if (!event.silent)
    turn.send(AskNode{event.node, event.incarnation});
}

void give_up_silent(Turn& turn, NodeRecord& node) {
  if (node.silent) lose_ranks(turn, node.name, Lost::kGivenUp);
}

}  // namespace tandem::controller
