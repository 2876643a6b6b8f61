// The records of jobs, their actors and ranks, and nodes: plain values that ControllerCore alone
// changes and that views, journals and the HTTP API read. They decide nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/messages/exchange.h"
#include "actors/messages/rank.h"
#include "runtime/base/clock.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/lifecycle.h"
#include "scheduler/fleet/placement.h"
#include "scheduler/fleet/restart_budget.h"

namespace tandem::actors {

// What the controller needs of a job file.
struct JobShape {
  std::string name;
  std::string yaml;  // effective
  std::map<Role, std::int32_t> replicas;
  std::map<Role, scheduler::Resources> per_rank;  // the memory: as settled() decides
  std::map<Role, scheduler::Strategy> strategy;   // a role that is not in it: PACK
  std::int32_t learner_ranks = 1;
  bool one_gpu = false;       // all actors that take a share of a GPU must take it of the same one
  std::set<Role> nccl_roles;  // whose ranks meet in communicators of NCCL
  std::map<Role, scheduler::MemoryDemand> memory;       // of each rank; a role not in it: unplanned
  std::vector<scheduler::MemoryOption> memory_options;  // what a refusal can propose
  std::int64_t total_steps = 0;
  std::int64_t staleness_bound = 0;
  std::optional<std::string> resume_dir;  // take up this run directory
  std::vector<std::string> warnings;      // for whoever submits it, a sentence each
};

struct RankRecord {
  std::string node;
  std::int64_t pid = 0;
  bool alive = false;  // spawned, not yet exited
  bool connected = false, ready = false;
  bool started = false;                     // StartRank was sent
  std::vector<std::int32_t> gpus;           // of its node's
  std::optional<runtime::RankUsage> usage;  // last reported
};

struct ActorRecord {
  std::string name, job;
  Role role = Role::kRollout;
  std::int32_t index = 0;
  scheduler::ActorStatus status;
  Time created;
  Incarnation incarnation;
  std::vector<RankRecord> ranks;
  std::string gang_endpoint;
  std::string gang_secret;
  std::optional<Time> ready_since;
  std::optional<Time> restart_at;
  Time report_deadline{};  // all ranks of this life have reported by then
  scheduler::CrashLoop crash_loop;
  bool ever_ready = false;
  std::optional<scheduler::Reason> ending;  // why its processes are being ended
};

struct JobRecord {
  std::string id;
  JobShape shape;
  std::string run_dir;
  scheduler::JobStatus status;
  Time created;         // submitted, also to be taken up again
  std::string message;  // of its last JobProgress
  std::map<std::string, ActorRecord> actors;
  // Of `actors`, kept by ControllerCore::set so that an event need not look at all of them.
  std::set<std::string> waiting;  // for room or for their backoff's end
  std::int32_t ready = 0;
  std::map<Role, std::int32_t> desired;
  std::optional<JobEnded> outcome;
  scheduler::RestartLadder ladder;
  std::int64_t submitted = 0;  // order in the queue
  std::string nccl_version;    // that of its ranks of nccl_roles; empty: none of them lives
};

struct GpuRecord {
  runtime::Gpu device;
  std::int64_t free_milli = scheduler::kWholeGpu;  // of it: not held by ranks that live
};

struct NodeRecord {
  std::string name;
  Incarnation incarnation;
  scheduler::Resources total;
  scheduler::Resources leased;  // by ranks that live
  std::vector<GpuRecord> gpus;
  std::vector<std::string> gpus_unusable;  // which else, and why not
  std::string gpus_absent;                 // why it has none
  runtime::NodeNccl nccl;
  std::int64_t pid = 0;
  bool up = false;
  Time since{};         // up or not
  Incarnation refused;  // the last other agent of this name, while this one lives
};

}  // namespace tandem::actors
