#include "actors/controller/automatic_cordon.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "actors/controller/cordon_mark.h"
#include "actors/controller/demands.h"
#include "actors/controller/rank_end.h"
#include "actors/controller/upkeep.h"
#include "scheduler/fleet/placement.h"

namespace tandem::controller {

using scheduler::ActorState;

namespace {

// An end by which a node may show that it is at fault.
bool may_be_of_the_node(const scheduler::Reason& why) {
  const auto* const hung = std::get_if<scheduler::Hung>(&why);
  return is_crash(why) || (hung && hung->silent_s > 0) ||
         std::holds_alternative<scheduler::ExitCode>(why) ||
         std::holds_alternative<scheduler::RankError>(why) ||
         std::holds_alternative<scheduler::SpawnFailed>(why);
}

std::string kind_of(const ActorRecord& actor) { return actor.job + "/" + name(actor.role); }

bool works_elsewhere(ControllerState& state, const std::string& kind, const std::string& node) {
  const JobRecord* const job = state.job_of(kind);
  if (!job) return false;
  const auto [from, behind] = names_below(kind);
  for (auto at = job->actors.lower_bound(from); at != job->actors.end() && at->first < behind; ++at)
    if (const ActorRecord& actor = at->second;
        actor.status.state == ActorState::kReady &&
        std::ranges::none_of(actor.ranks, [&](const auto& rank) { return rank.node == node; }))
      return true;
  return false;
}

// Whether everything that waits, and the actor that has just died, finds room without the node.
bool can_do_without(ControllerState& state, const JobRecord& job, const ActorRecord& died,
                    const std::string& node) {
  scheduler::FreeRoom room = state.found.room;
  room.erase(node);
  std::vector<scheduler::Gang> gangs{gang_of(job, died)};
  for (const auto& [submitted, id] : state.found.wanting) {
    const JobRecord& other = state.jobs.at(id);
    for (const std::string& waiting : other.waiting)
      if (waiting != died.name) gangs.push_back(gang_of(other, other.actors.at(waiting)));
  }
  return std::holds_alternative<std::vector<scheduler::Assignment>>(place_all(room, gangs));
}

bool waits_for_cordoned(const scheduler::Reason& reason) {
  const auto* const waits = std::get_if<scheduler::WaitingForCapacity>(&reason);
  return waits && !waits->cordoned.empty();
}

bool stands_still(const JobRecord& job) {
  if (job.status.state == scheduler::JobState::kQueued)
    return waits_for_cordoned(job.status.reason);
  return std::ranges::any_of(job.shape.roles, [&](const messages::Role& role) {
    if (any_lives(job, role)) return false;
    const auto [from, behind] = names_below(job.id + "/" + name(role));
    return std::any_of(job.waiting.lower_bound(from), job.waiting.lower_bound(behind),
                       [&](const std::string& waiting) {
                         const scheduler::Reason& why = reason_shown(job, job.actors.at(waiting));
                         return waits_for_cordoned(why) ||
                                std::holds_alternative<scheduler::NodeLost>(why);
                       });
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
  std::vector<std::string> automatic;
  for (const auto& [name, why] : state.durable.cordoned()) {
    const auto node = state.nodes.find(name);
    if (node != state.nodes.end() && node->second.up && is_automatic(node->second))
      automatic.push_back(name);
  }
  if (automatic.empty()) return false;
  const bool needed = std::ranges::any_of(state.found.wanting, [&](const auto& job) {
    return stands_still(state.jobs.at(job.second));
  });
  if (!needed) return false;
  for (const std::string& name : automatic) {
    NodeRecord& node = state.nodes.at(name);
    turn.announce(node, "is needed: a job has no room without it", messages::EventLevel::kWarning);
    unmark_cordoned(turn, name, node);
  }
  return true;
}

}  // namespace tandem::controller
