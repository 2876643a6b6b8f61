#include "actors/controller/automatic_cordon.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
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

using scheduler::DeathPlace;
using scheduler::FreeRoom;
using scheduler::Gang;

// An end by which a node may show that it is at fault.
bool may_be_of_the_node(const scheduler::Reason& why) {
  const auto* const hung = std::get_if<scheduler::Hung>(&why);
  return is_crash(why) || (hung && hung->silent_s > 0) ||
         std::holds_alternative<scheduler::ExitCode>(why) ||
         std::holds_alternative<scheduler::RankError>(why) ||
         std::holds_alternative<scheduler::SpawnFailed>(why);
}

// A process that was not started, or found no disk, has not come to use its GPUs.
bool may_be_of_the_gpus(const scheduler::Reason& why) {
  return !std::holds_alternative<scheduler::SpawnFailed>(why) && !is_of_disk(why);
}

std::string kind_of(const ActorRecord& actor) { return actor.job + "/" + name(actor.role); }

bool holds_any(const RankRecord& rank, std::span<const std::string> gpus) {
  return std::ranges::any_of(rank.gpu_uuids, [&](const auto& uuid) {
    return std::ranges::find(gpus, uuid) != gpus.end();
  });
}

bool lies_in(const RankRecord& rank, const DeathPlace& place) {
  return rank.node == place.node && (place.gpus.empty() || holds_any(rank, place.gpus));
}

bool works_elsewhere(ControllerState& state, const std::string& kind, const DeathPlace& place) {
  const JobRecord* const job = state.job_of(kind);
  if (!job) return false;
  const auto [from, behind] = names_below(kind);
  for (auto at = job->actors.lower_bound(from); at != job->actors.end() && at->first < behind; ++at)
    if (const ActorRecord& actor = at->second;
        actor.status.state == ActorState::kReady &&
        std::ranges::none_of(actor.ranks, [&](const auto& rank) { return lies_in(rank, place); }))
      return true;
  return false;
}

// The room as it will be when the other ranks of the actor, of which one has died, have ended.
FreeRoom room_after(const ControllerState& state, const ActorRecord& died) {
  FreeRoom room = state.found.room;
  for (const RankRecord& rank : died.ranks) {
    const auto node = state.nodes.find(rank.node);
    if (!rank.alive || node == state.nodes.end() || !node->second.up || node->second.cordoned ||
        !node->second.unwanted.empty())
      continue;
    const bool offered = std::ranges::all_of(rank.gpus, [&](std::int32_t gpu) {
      const GpuRecord& record = node->second.gpus.at(static_cast<std::size_t>(gpu));
      return !record.cordoned && !record.gone;
    });
    if (offered) room.give(rank.node, rank.gpus, rank.need);
  }
  return room;
}

void take_away(FreeRoom& room, const DeathPlace& place, const NodeRecord& node) {
  if (place.gpus.empty()) return room.erase(place.node);
  scheduler::NodeCapacity left = room.nodes().at(place.node);
  for (std::size_t i = 0; i < node.gpus.size(); ++i)
    if (std::ranges::find(place.gpus, node.gpus[i].device.uuid) != place.gpus.end())
      left.free.gpu_milli -= std::exchange(left.gpus_free_milli.at(i), 0);
  room.set(std::move(left));
}

bool placed(const std::variant<std::vector<scheduler::Assignment>, scheduler::Reason>& plan) {
  return plan.index() == 0;
}

// Whether the actor that has just died finds room without the place, together with all else that
// waits and would find room with it.
bool can_do_without(const ControllerState& state, const JobRecord& job, const ActorRecord& died,
                    const DeathPlace& place) {
  FreeRoom with = room_after(state, died);
  FreeRoom without = with;
  take_away(without, place, state.nodes.at(place.node));
  std::vector<Gang> gangs{gang_of(job, died)};
  if (!placed(place_all(with, gangs))) return false;
  for (const auto& [submitted, id] : state.found.wanting) {
    const JobRecord& other = state.jobs.at(id);
    const bool together = other.status.state == scheduler::JobState::kQueued;
    std::vector<Gang> waiting;
    for (const std::string& actor : other.waiting) {
      if (actor == died.name) continue;
      if (!together) waiting.clear();
      waiting.push_back(gang_of(other, other.actors.at(actor)));
      if (!together && placed(place_all(with, waiting))) gangs.push_back(waiting.front());
    }
    if (together && placed(place_all(with, waiting)))
      gangs.insert(gangs.end(), waiting.begin(), waiting.end());
  }
  return placed(place_all(without, gangs));
}

bool waits_for_cordoned(const scheduler::Reason& reason) {
  const auto* const waits = std::get_if<scheduler::WaitingForCapacity>(&reason);
  return waits && !waits->cordoned.empty();
}

// What stands still in the job since it has no room, each with the gangs that need it together: the
// job itself, or a role of which nothing lives.
std::vector<std::vector<Gang>> standing_still(const JobRecord& job) {
  std::vector<std::vector<Gang>> all;
  if (job.status.state == scheduler::JobState::kQueued) {
    if (!waits_for_cordoned(job.status.reason)) return all;
    all.emplace_back();
    for (const auto& [name, actor] : job.actors) all.back().push_back(gang_of(job, actor));
    return all;
  }
  for (const messages::Role& role : job.shape.roles) {
    if (any_lives(job, role)) continue;
    const auto [from, behind] = names_below(job.id + "/" + name(role));
    const auto end = job.waiting.lower_bound(behind);
    const auto one = std::find_if(job.waiting.lower_bound(from), end, [&](const auto& waiting) {
      const scheduler::Reason& why = reason_shown(job, job.actors.at(waiting));
      return waits_for_cordoned(why) || std::holds_alternative<scheduler::NodeLost>(why);
    });
    if (one != end) all.push_back({gang_of(job, job.actors.at(*one))});
  }
  return all;
}

// Whether there is room for the gangs if these nodes and their GPUs had no mark.
bool would_fit(ControllerState& state, std::span<const std::string> unmarked,
               const std::vector<Gang>& gangs) {
  FreeRoom& room = state.found.room;
  for (const std::string& name : unmarked) {
    NodeRecord node = state.nodes.at(name);
    node.cordoned.reset();
    for (GpuRecord& gpu : node.gpus) gpu.cordoned.reset();
    room.set(capacity_of(node));
  }
  const auto plan = place_all(room, gangs);
  if (const auto* places = std::get_if<0>(&plan))
    for (std::size_t i = 0; i < gangs.size(); ++i)
      for (const scheduler::RankPlace& place : (*places)[i].ranks)
        room.give(place.node, place.gpus, gangs[i].per_rank);
  for (const std::string& name : unmarked) renew_room(state, state.nodes.at(name));
  return placed(plan);
}

// The nodes, one if that is enough, without whose marks the gangs have room; empty: no mark is why.
std::vector<std::string> needed_for(ControllerState& state, const std::vector<std::string>& marked,
                                    const std::vector<Gang>& gangs) {
  for (const std::string& one : marked)
    if (would_fit(state, std::span(&one, 1), gangs)) return {one};
  return marked.size() > 1 && would_fit(state, marked, gangs) ? marked : std::vector<std::string>();
}

// Where the death of the rank counts.
DeathPlace place_of(const RankRecord& rank, const scheduler::Reason& why) {
  DeathPlace place{rank.node};
  if (may_be_of_the_gpus(why)) place.gpus = rank.gpu_uuids;
  std::ranges::sort(place.gpus);
  return place;
}

// Nothing new is to be had of a death where no actor is placed any more.
bool is_out_of_use(const NodeRecord& node, const RankRecord& rank) {
  return node.cordoned || std::ranges::any_of(rank.gpus, [&](std::int32_t gpu) {
           const GpuRecord& record = node.gpus.at(static_cast<std::size_t>(gpu));
           return record.cordoned || record.gone;
         });
}

void cordon(Turn& turn, NodeRecord& node, const RankRecord& rank, const DeathPlace& place,
            const std::string& fault) {
  if (place.gpus.empty()) return mark_cordoned(turn, node.name, node, kAutomatic + fault);
  mark_gpus_cordoned(turn, node, rank.gpus, kAutomatic + fault);
  turn.state.node_deaths.found_at_fault(place);
}

}  // namespace

void note_death(Turn& turn, const JobRecord& job, const ActorRecord& actor, const RankRecord& rank,
                const scheduler::Reason& why) {
  const auto found = turn.state.nodes.find(rank.node);
  if (found == turn.state.nodes.end() || !found->second.up || !may_be_of_the_node(why)) return;
  NodeRecord& node = found->second;
  if (is_out_of_use(node, rank)) return;
  scheduler::NodeDeaths& deaths = turn.state.node_deaths;
  const DeathPlace place = place_of(rank, why);
  deaths.died({.place = place,
               .actor = actor.name,
               .kind = kind_of(actor),
               .cause = scheduler::message(why, turn.now),
               .at = turn.now});
  if (!place.gpus.empty())
    for (const DeathPlace& cleared : deaths.cleared_by(actor.name, place))
      for (const std::string& gpu : cleared.gpus)
        unmark_gpu_cordoned(turn, cleared.node, gpu, actor.name + " dies elsewhere too");
  for (const DeathPlace& suspect : {place, DeathPlace{place.node}}) {
    const auto fault = deaths.fault_of(suspect, [&](const std::string& kind) {
      return works_elsewhere(turn.state, kind, suspect);
    });
    if (!fault) continue;
    if (can_do_without(turn.state, job, actor, suspect))
      return cordon(turn, node, rank, suspect, *fault);
    const std::string what = suspect.gpus.empty() ? "is" : gpus_in_words(rank.gpus);
    return turn.announce(node, what + " not cordoned, since there is no other room: " + *fault,
                         messages::EventLevel::kWarning);
  }
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
  bool lifted = false;
  for (const auto& [submitted, id] : state.found.wanting) {
    if (automatic.empty()) break;
    for (const std::vector<Gang>& gangs : standing_still(state.jobs.at(id)))
      for (const std::string& name : needed_for(state, automatic, gangs)) {
        NodeRecord& node = state.nodes.at(name);
        turn.announce(node, "is needed: a job has no room without it",
                      messages::EventLevel::kWarning);
        unmark_cordoned(turn, name, node);
        std::erase(automatic, name);
        lifted = true;
      }
  }
  return lifted;
}

}  // namespace tandem::controller
