// An entry describes one role of training: its name, what its actors reserve and allocate, and how
// one of them is built. Each role brings one entry, in a source of its own in this folder;
// registry.h lists them. The role's keys in a job file lie beside it (rollout_keys.cc and so on).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "actors/job/job_spec.h"
#include "actors/main/roles/planned_model.h"
#include "actors/main/roles/rank_resources.h"
#include "actors/messages/rank.h"
#include "scheduler/fleet/placement.h"

namespace tandem::app {

// The resources that the job reserves for the role's actors.
struct RoleDemands {
  std::int64_t replicas = 1;
  std::int64_t ranks = 1;  // ranks per actor
  scheduler::Resources per_rank;
  std::optional<scheduler::Strategy> strategy;  // nullopt: PACK
  std::int64_t threads = 1;                     // threads per rank
  bool nccl = false;                            // its ranks meet in communicators of NCCL
};

// A role that has been built in this process.
struct BuiltRole {
  std::function<void()> begin;  // the actor starts work; once, after RankReady
  // Another exchange follows the one that has died: the actor tells it what it holds. False: its
  // mailbox is full. Null: it speaks with none.
  std::function<bool()> meet_again = {};
  // Whether this rank waits within a handler for another rank, so that its process must be ended by
  // force. Null: it never does.
  std::shared_ptr<const std::atomic<bool>> waits = nullptr;
  std::string sandbox = {};  // RankReady::sandbox
};

struct RoleEntry {
  messages::Role role;
  RoleDemands (*demands)(const job::JobSpec& job);
  // The memory of one rank on its host (memory_plan.h).
  scheduler::MemoryDemand (*memory)(const job::JobSpec& job, const PlannedModel& model,
                                    Hosts hosts);
  // Called once, on the thread of the rank's actor; may take as long as loading a model does.
  // Errors: input that is wrong (kInvalid, kNotFound), a GPU or memory that is missing, ranks that
  // do not come in time. `controller` hears where rank 0 of a gang listens.
  Result<BuiltRole> (*build)(RankResources& resources, const messages::StartRank& start,
                             const job::JobSpec& job,
                             const actor::Ref<messages::RankEvents>& controller);
};

}  // namespace tandem::app
