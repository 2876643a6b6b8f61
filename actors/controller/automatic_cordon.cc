#include "actors/controller/automatic_cordon.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "actors/controller/cordon_mark.h"
#include "actors/controller/demands.h"
#include "actors/controller/rank_end.h"
#include "actors/controller/room.h"
#include "scheduler/fleet/placement.h"

namespace tandem::controller {

using scheduler::ActorState;

namespace {

constexpr const char* kAutomatic = "automatic: ";  // begins the reason of such a cordon

bool is_automatic(const NodeRecord& node) {
  return node.cordoned && node.cordoned->starts_with(kAutomatic);
}

// An end by which a node may show that it is at fault.
bool may_be_of_the_node(const scheduler::Reason& why) {
  const auto* const hung = std::get_if<scheduler::Hung>(&why);
  return is_crash(why) || (hung && hung->silent_s > 0) ||
         std::holds_alternative<scheduler::ExitCode>(why) ||
         std::holds_alternative<scheduler::RankError>(why) ||
         std::holds_alternative<scheduler::SpawnFailed>(why);
}

std::string kind_of(const ActorRecord& actor) { return actor.job + "/" + name(actor.role); }

bool works_elsewhere(const ControllerState& state, const std::string& kind,
                     const std::string& node) {
  for (const auto& [id, job] : state.jobs)
    for (const auto& [name, actor] : job.actors)
      if (actor.status.state == ActorState::kReady && kind_of(actor) == kind &&
          std::ranges::none_of(actor.ranks, [&](const auto& rank) { return rank.node == node; }))
        return true;
  return false;
}

// Whether everything that waits, and the actor that has just died, finds room without the node.
bool can_do_without(const ControllerState& state, const JobRecord& job, const ActorRecord& died,
                    const std::string& node) {
  std::vector<scheduler::NodeCapacity> room = capacity(state);
  std::erase_if(room, [&](const scheduler::NodeCapacity& one) { return one.name == node; });
  std::vector<scheduler::Gang> gangs{gang_of(job, died)};
  for (const auto& [id, other] : state.jobs)
    for (const std::string& waiting : other.waiting)
      if (waiting != died.name) gangs.push_back(gang_of(other, other.actors.at(waiting)));
  return std::holds_alternative<std::vector<scheduler::Assignment>>(scheduler::place(room, gangs));
}

bool waits_for_cordoned(const scheduler::Reason& reason) {
  const auto* const waits = std::get_if<scheduler::WaitingForCapacity>(&reason);
  return waits && !waits->cordoned.empty();
}

bool stands_still(const JobRecord& job) {
  if (job.status.state == scheduler::JobState::kQueued)
    return waits_for_cordoned(job.status.reason);
  return std::ranges::any_of(job.waiting, [&](const std::string& name) {
    const ActorRecord& actor = job.actors.at(name);
    const bool lives = std::ranges::any_of(job.actors, [&](const auto& other) {
      return other.second.role == actor.role && alive(other.second);
    });
    return !lives && (waits_for_cordoned(actor.status.reason) ||
                      std::holds_alternative<scheduler::NodeLost>(actor.status.reason));
  });
}

}  // namespace

void note_death(Turn& turn, const JobRecord& job, const ActorRecord& actor, const std::string& node,
                const scheduler::Reason& why) {
  const auto record = turn.state.nodes.find(node);
  if (record == turn.state.nodes.end() || !record->second.up || !may_be_of_the_node(why)) return;
  scheduler::NodeDeaths& deaths = turn.state.node_deaths;
  deaths.died({.node = node,
               .actor = actor.name,
               .kind = kind_of(actor),
               .cause = scheduler::message(why, turn.now),
               .at = turn.now});
  if (record->second.cordoned) return;
  const auto fault = deaths.fault_of(node, [&](const std::string& kind, const std::string& here) {
    return works_elsewhere(turn.state, kind, here);
  });
  if (!fault) return;
  if (!can_do_without(turn.state, job, actor, node))
    return turn.announce(record->second, "is not cordoned, since no other node has room: " + *fault,
                         messages::EventLevel::kWarning);
  mark_cordoned(turn, node, record->second, kAutomatic + *fault);
}

bool lift_needed_cordons(Turn& turn) {
  ControllerState& state = turn.state;
  if (state.durable.cordoned().empty()) return false;
  const bool needed =
      std::ranges::any_of(state.jobs, [](const auto& job) { return stands_still(job.second); });
  if (!needed) return false;
  bool lifted = false;
  for (auto& [name, node] : state.nodes) {
    if (!node.up || !is_automatic(node)) continue;
    turn.announce(node, "is needed: a job has no room without it", messages::EventLevel::kWarning);
    unmark_cordoned(turn, name, node);
    lifted = true;
  }
  return lifted;
}

}  // namespace tandem::controller
