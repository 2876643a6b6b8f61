// The state of an exchange's core, in parts: groups, the workers that hold them, the conversation
// with the learner, published versions, evaluations, and the job's end. Plain data; ExchangeCore
// changes it.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/exchange/broadcasts.h"
#include "actors/exchange/evaluation.h"
#include "actors/exchange/group_history.h"
#include "actors/exchange/held_payloads.h"
#include "actors/exchange/reward_troubles.h"
#include "actors/messages/exchange.h"
#include "actors/messages/learner.h"
#include "actors/messages/rollout.h"
#include "runtime/actor/ref.h"
#include "runtime/base/clock.h"
#include "runtime/wire/weight_source.h"
#include "scheduler/fleet/fixed_lag.h"
#include "scheduler/fleet/ledger.h"

namespace tandem::actors {

// The exchange's record of one actor.
struct ExchangeWorker {
  runtime::Address address;
  Time up;
  std::int64_t capacity = 0;  // trajectories (rollout) or groups (reward)
  std::set<GroupId> holding;
  std::optional<PolicyVersion> installed;
  PolicyVersion announced{-2};
  bool draining = false;
  RolloutStats stats;
};

// The exchange's record of one group, besides the ledger's.
struct ExchangeEntry {
  std::int64_t position = 0;  // of its prompt in the shuffled sequence
  std::uint64_t seed = 0;
  std::optional<scheduler::Slot> slot;  // under fixed_lag
  std::optional<GroupHeader> header;    // once generated
  std::vector<float> rewards;           // once scored, one for each trajectory
  Time admitted;
};

// Groups, from the next prompt to the checkpoint that covers them.
struct GroupFlow {
  scheduler::Ledger ledger;
  std::optional<scheduler::FixedLag> fixed = {};  // set under fixed_lag
  std::map<GroupId, ExchangeEntry> entries = {};  // live, or trained and not yet durable
  HeldPayloads held = {};                         // of the entries
  std::int64_t position_next = 0;
  std::int64_t generated_for_step = 0;  // groups since the last batch was formed (filter_groups)
  std::int64_t reward_failures = 0;     // groups in a row
};

// Rollouts and rewards that are up, by name.
struct ExchangeWorkers {
  std::map<std::string, ExchangeWorker> rollouts, rewards;
  std::map<std::string, Incarnation> ended;  // EX-L: the newest of each actor that has ended
  std::map<std::string, Time> drain_deadlines;
  RewardTroubles troubles;
  // Since when there is no rollout, or no reward; nothing where there was none yet.
  std::optional<Time> no_rollout_since, no_reward_since;
};

// A run whose history was asked for.
struct RestoringRun {
  StepId checkpoint;
  GroupHistory history;
  std::vector<RestoredGroup> groups;  // as of the checkpoint
};

// The conversation with the learner.
struct LearnerTalk {
  std::optional<ExchangeWorker> learner;
  std::optional<Time> none_since;                  // when the last learner ended
  bool busy = false;                               // it owes an answer
  std::optional<StepId> step;                      // in training
  std::vector<GroupId> batch;                      // of the step that was sent last
  std::deque<scheduler::Ledger::Resend> replay;    // batches to send again after a restart
  std::map<StepId, std::uint64_t> checksums;       // of versions since the last checkpoint
  StepId durable;                                  // a checkpoint covers the steps below it
  std::optional<std::int64_t> checkpoint_awaited;  // EX-C
  bool save_due = false;  // the next Decide asks the learner for checkpoint_awaited
  WarmStartProgress warm_start;
  std::optional<RestoringRun> restoring;
  bool restored = false;  // from the journal of an earlier incarnation of the run
};

// Versions, as the learner publishes and the rollouts install them.
struct PublishedVersions {
  PolicyVersion published{-2}, oldest_retained{-2};   // newest and oldest that the publisher has
  std::map<PolicyVersion, Publication> publications;  // those retained, and some before them
  std::optional<runtime::WeightSource> source;        // of the learner's publisher
  std::optional<Broadcasts> broadcasts;               // of a job whose weights are broadcast
  std::int64_t broadcasts_started = 0;
};

struct EvaluationsUnderWay {
  std::list<Evaluation> running;
  std::uint64_t last = 0;         // the newest id
  std::set<EvaluationKind> once;  // those of which a run has one, and which began
};

struct ExchangeEnding {
  std::optional<EndJob> why;
  StepId last_save;                   // EX-S: the checkpoint that is waited for
  std::optional<Time> save_deadline;  // EX-S: of that checkpoint
};

}  // namespace tandem::actors
