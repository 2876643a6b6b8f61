// Whether a place is at fault is asked at each death (note_death), and whether a cordon is needed
// after each look at the queue (lift_needed_cordon). Both place gangs on trial, in the room as it
// would be without the place, or with it.
#include "actors/controller/automatic_cordon.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/controller/cordon_mark.h"
#include "actors/controller/demands.h"
#include "actors/controller/queue.h"
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

bool touches(const RankRecord& rank, const DeathPlace& place) {
  return rank.node == place.node && (place.gpus.empty() || holds_any(rank, place.gpus));
}

// Whether an actor of the kind works elsewhere and, where the place is GPUs, none works there.
bool only_dies_there(ControllerState& state, const std::string& kind, const DeathPlace& place,
                     const ActorRecord& died) {
  const JobRecord* const job = state.job_of(kind);
  if (!job) return false;
  bool elsewhere = false;
  const auto [from, behind] = names_below(kind);
  for (auto at = job->actors.lower_bound(from); at != job->actors.end() && at->first < behind;
       ++at) {
    const ActorRecord& actor = at->second;
    if (actor.status.state != ActorState::kReady || actor.name == died.name) continue;
    const bool there =
        std::ranges::any_of(actor.ranks, [&](const auto& rank) { return touches(rank, place); });
    if (there && !place.gpus.empty()) return false;
    elsewhere = elsewhere || !there;
  }
  return elsewhere;
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
    std::optional<messages::Role> full;  // the next ones of the role find no room either
    for (const std::string& name : other.waiting) {
      const ActorRecord& actor = other.actors.at(name);
      if (name == died.name || actor.role == full) continue;
      if (!together) waiting.clear();
      waiting.push_back(gang_of(other, actor));
      if (together) continue;
      if (placed(place_all(with, waiting)))
        gangs.push_back(waiting.front());
      else
        full = actor.role;
    }
    if (together && placed(place_all(with, waiting)))
      gangs.insert(gangs.end(), waiting.begin(), waiting.end());
  }
  return placed(place_all(without, gangs));
}

// What a job, or a role, needs that waits since something is cordoned; null where it does not.
const scheduler::WaitingForCapacity* waits_for_cordoned(const scheduler::Reason& reason) {
  const auto* const waits = std::get_if<scheduler::WaitingForCapacity>(&reason);
  return waits && !waits->cordoned.empty() ? waits : nullptr;
}

// Something that stands still since it has no room: a queued job, or a role of which nothing lives.
struct StandsStill {
  std::optional<messages::Role> role;  // nullopt: the job
  scheduler::Resources need;           // of all of it; nothing where its last node was lost
};

std::vector<StandsStill> standing_still(const JobRecord& job) {
  std::vector<StandsStill> all;
  if (job.status.state == scheduler::JobState::kQueued) {
    if (const auto* waits = waits_for_cordoned(job.status.reason))
      all.push_back({std::nullopt, waits->need});
    return all;
  }
  for (const messages::Role& role : job.shape.roles) {
    if (any_lives(job, role)) continue;
    const auto [from, behind] = names_below(job.id + "/" + name(role));
    const auto one = job.waiting.lower_bound(from);
    if (one == job.waiting.lower_bound(behind)) continue;
    const scheduler::Reason& why = reason_shown(job, job.actors.at(*one));
    if (const auto* waits = waits_for_cordoned(why))
      all.push_back({role, waits->need});
    else if (std::holds_alternative<scheduler::NodeLost>(why))
      all.push_back({role, {}});
  }
  return all;
}

// Of a job all gangs, with those whose room it must leave free; of a role the first that waits.
std::vector<Gang> gangs_of(ControllerState& state, const JobRecord& job, const StandsStill& what) {
  if (what.role) {
    const auto [from, behind] = names_below(job.id + "/" + name(*what.role));
    return {gang_of(job, job.actors.at(*job.waiting.lower_bound(from)))};
  }
  std::vector<Gang> gangs = gangs_to_restart(state);
  for (const auto& [name, actor] : job.actors) gangs.push_back(gang_of(job, actor));
  return gangs;
}

scheduler::NodeCapacity without_marks(NodeRecord node) {
  node.cordoned.reset();
  for (GpuRecord& gpu : node.gpus) gpu.cordoned.reset();
  return capacity_of(node);
}

// Whether there would be room for the gangs if these nodes and their GPUs had no mark.
bool would_fit(ControllerState& state, std::span<const std::string> unmarked,
               const std::vector<Gang>& gangs) {
  FreeRoom& room = state.found.room;
  for (const std::string& name : unmarked) room.set(without_marks(state.nodes.at(name)));
  const auto plan = place_all(room, gangs);
  if (const auto* places = std::get_if<0>(&plan))
    for (std::size_t i = 0; i < gangs.size(); ++i)
      for (const scheduler::RankPlace& place : (*places)[i].ranks)
        room.give(place.node, place.gpus, gangs[i].per_rank);
  for (const std::string& name : unmarked) renew_room(state, state.nodes.at(name));
  return placed(plan);
}

// A first look, at sums alone: what is too large anyway is placed on trial at no event.
bool may_fit(const ControllerState& state, const std::vector<std::string>& marked,
             const scheduler::Resources& need) {
  scheduler::Resources most = state.found.room.free();
  for (const std::string& name : marked) most = most + without_marks(state.nodes.at(name)).free;
  return need.cpu_milli <= most.cpu_milli && need.gpu_milli <= most.gpu_milli;
}

// The nodes whose marks keep the gangs from having room: one if that is enough, else all. Empty
// where they have room as it is, or have none even without the marks.
std::vector<std::string> needed_for(ControllerState& state, const std::vector<std::string>& marked,
                                    const std::vector<Gang>& gangs) {
  if (would_fit(state, {}, gangs) || !would_fit(state, marked, gangs)) return {};
  for (const std::string& one : marked)
    if (would_fit(state, std::span(&one, 1), gangs)) return {one};
  return marked;
}

// Where the death of the rank counts.
DeathPlace place_of(const RankRecord& rank, const scheduler::Reason& why) {
  DeathPlace place{rank.node};
  if (may_be_of_the_gpus(why)) place.gpus = rank.gpu_uuids;
  std::ranges::sort(place.gpus);
  return place;
}

// Whether no actor is placed any more where the rank was.
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
  scheduler::NodeDeaths& deaths = turn.state.node_deaths;
  const DeathPlace place = place_of(rank, why);
  deaths.died({.place = place,
               .actor = actor.name,
               .kind = kind_of(actor),
               .cause = scheduler::message(why, turn.now),
               .at = turn.now});
  if (!place.gpus.empty())
    for (const DeathPlace& cleared : deaths.cleared_by(actor.name, place))
      unmark_gpus_cordoned(turn, cleared, actor.name + " dies elsewhere too");
  if (is_out_of_use(node, rank)) return;
  for (const DeathPlace& suspect : {place, DeathPlace{place.node}}) {
    const auto fault = deaths.fault_of(suspect, [&](const std::string& kind) {
      return only_dies_there(turn.state, kind, suspect, actor);
    });
    if (!fault) continue;
    if (can_do_without(turn.state, job, actor, suspect))
      return cordon(turn, node, rank, suspect, *fault);
    const std::string what = suspect.gpus.empty() ? "is" : gpus_in_words(node, rank.gpus);
    return turn.announce(node, what + " not cordoned, since there is no other room: " + *fault,
                         messages::EventLevel::kWarning);
  }
}

bool lift_needed_cordon(Turn& turn) {
  ControllerState& state = turn.state;
  if (state.journal_fails) return false;  // nothing starts anyway
  std::vector<std::string> automatic;
  const auto look_at = [&](const std::string& name) {
    const auto node = state.nodes.find(name);
    if (node != state.nodes.end() && node->second.up && is_automatic(state, node->second))
      automatic.push_back(name);
  };
  for (const auto& [name, gpus] : state.durable.cordoned_gpus())
    if (!state.durable.cordoned().contains(name)) look_at(name);
  for (const auto& [name, why] : state.durable.cordoned()) look_at(name);
  if (automatic.empty()) return false;
  for (const auto& [submitted, id] : state.found.wanting) {
    const JobRecord& job = state.jobs.at(id);
    for (const StandsStill& what : standing_still(job)) {
      if (!may_fit(state, automatic, what.need)) continue;
      const auto needed = needed_for(state, automatic, gangs_of(state, job, what));
      for (const std::string& name : needed) {
        NodeRecord& node = state.nodes.at(name);
        turn.announce(node, "is needed: job " + id + " has no room without it",
                      messages::EventLevel::kWarning);
        unmark_cordoned(turn, name, node);
      }
      if (!needed.empty()) return true;
    }
  }
  return false;
}

}  // namespace tandem::controller
