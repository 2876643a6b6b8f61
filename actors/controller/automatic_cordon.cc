#include "actors/controller/automatic_cordon.h"

#include <algorithm>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "actors/controller/cordon_mark.h"
#include "actors/controller/demands.h"
#include "actors/controller/rank_end.h"
#include "actors/controller/room.h"
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

bool is_in(const RankRecord& rank, const std::string& node, std::span<const std::int32_t> gpus) {
  return rank.node == node && (gpus.empty() || std::ranges::any_of(rank.gpus, [&](auto gpu) {
                                 return std::ranges::find(gpus, gpu) != gpus.end();
                               }));
}

// Elsewhere than on these GPUs of the node, or, where none are named, than on the node.
bool works_elsewhere(ControllerState& state, const std::string& kind, const std::string& node,
                     std::span<const std::int32_t> gpus) {
  const JobRecord* const job = state.job_of(kind);
  if (!job) return false;
  const auto [from, behind] = names_below(kind);
  for (auto at = job->actors.lower_bound(from); at != job->actors.end() && at->first < behind; ++at)
    if (const ActorRecord& actor = at->second;
        actor.status.state == ActorState::kReady &&
        std::ranges::none_of(actor.ranks,
                             [&](const RankRecord& rank) { return is_in(rank, node, gpus); }))
      return true;
  return false;
}

// The room of all nodes without these GPUs of the node, or without all of it.
scheduler::FreeRoom room_without(const ControllerState& state, NodeRecord node,
                                 std::span<const std::int32_t> gpus) {
  scheduler::FreeRoom room = state.found.room;
  for (const std::int32_t gpu : gpus) node.gpus.at(static_cast<std::size_t>(gpu)).cordoned = "";
  if (gpus.empty())
    room.erase(node.name);
  else
    room.set(capacity_of(node));
  return room;
}

// Whether everything that waits, and the actor that has just died, finds this room.
bool is_enough(scheduler::FreeRoom room, ControllerState& state, const JobRecord& job,
               const ActorRecord& died) {
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

void note_death(Turn& turn, const JobRecord& job, const ActorRecord& actor, const RankRecord& rank,
                const scheduler::Reason& why) {
  const auto found = turn.state.nodes.find(rank.node);
  if (found == turn.state.nodes.end() || !found->second.up || !may_be_of_the_node(why)) return;
  NodeRecord& node = found->second;
  scheduler::DeathPlace place{rank.node};
  for (const std::int32_t gpu : rank.gpus)
    place.gpus.push_back(node.gpus.at(static_cast<std::size_t>(gpu)).device.uuid);
  scheduler::NodeDeaths& deaths = turn.state.node_deaths;
  deaths.died({.place = place,
               .actor = actor.name,
               .kind = kind_of(actor),
               .cause = scheduler::message(why, turn.now),
               .at = turn.now});
  if (node.cordoned) return;
  const auto fault_of = [&](const scheduler::DeathPlace& at, std::span<const std::int32_t> gpus) {
    return deaths.fault_of(at, [&](const std::string& kind) {
      return works_elsewhere(turn.state, kind, rank.node, gpus);
    });
  };
  const auto enough_without = [&](std::span<const std::int32_t> gpus) {
    return is_enough(room_without(turn.state, node, gpus), turn.state, job, actor);
  };
  if (const auto fault = rank.gpus.empty() ? std::nullopt : fault_of(place, rank.gpus)) {
    if (!enough_without(rank.gpus))
      return turn.announce(
          node, gpus_in_words(rank.gpus) + " not cordoned, since there is no other room: " + *fault,
          messages::EventLevel::kWarning);
    mark_gpus_cordoned(turn, node, rank.gpus, kAutomatic + *fault);
    return deaths.forget(place);
  }
  const auto fault = fault_of({rank.node}, {});
  if (!fault) return;
  if (!enough_without({}))
    return turn.announce(node, "is not cordoned, since no other node has room: " + *fault,
                         messages::EventLevel::kWarning);
  mark_cordoned(turn, rank.node, node, kAutomatic + *fault);
}

bool lift_needed_cordons(Turn& turn) {
  ControllerState& state = turn.state;
  std::vector<std::string> automatic;
  const auto look_at = [&](const std::string& name) {
    const auto node = state.nodes.find(name);
    if (node != state.nodes.end() && node->second.up && is_automatic(state, node->second))
      automatic.push_back(name);
  };
  for (const auto& [name, why] : state.durable.cordoned()) look_at(name);
  for (const auto& [name, gpus] : state.durable.cordoned_gpus())
    if (!state.durable.cordoned().contains(name)) look_at(name);
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
