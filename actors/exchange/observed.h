// The knowledge of an exchange about a run besides its facts (state/run_facts.h): times, the
// progress of peers and of evaluations, and figures for people. Nothing here is journalled or
// hashed; an exchange that replays a journal begins without it.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/broadcasts.h"
#include "actors/exchange/evaluation.h"
#include "actors/exchange/figure_history.h"
#include "actors/exchange/fleet_window.h"
#include "actors/exchange/group_history.h"
#include "actors/exchange/reward_extras.h"
#include "actors/exchange/reward_troubles.h"
#include "actors/exchange/run_statistics.h"
#include "actors/messages/learner.h"
#include "actors/messages/rollout.h"
#include "runtime/base/clock.h"
#include "runtime/wire/weight_source.h"
#include "scheduler/fleet/collapse.h"
#include "scheduler/fleet/cost.h"
#include "scheduler/fleet/suspects.h"

namespace tandem::exchange {

// An actor that is up, of a role that works under leases.
struct WorkerSeen {
  Time up;
  Time worked;                  // when it last came up, installed a version or answered
  PolicyVersion announced{-2};  // the newest version that the rollout was told of
  Time announced_at{};          // when it was told first
  bool away = false;          // it has outlived the exchange before and not met this one (follow.h)
  bool came_back = false;     // it was away
  bool broke = false;         // its engine has failed, and its end follows
  bool generated = false;     // anything, in this incarnation, since this exchange hears it
  bool silent = false;        // it cannot be reached
  bool may_evaluate = false;  // it had prompts of an evaluation that are asked of others since
  // While it has prompts of evaluations: since when, or the time of its last token or answer; and
  // how often it was looked at since then.
  Time part_since{};
  int part_looks = 0;
  void begin_part(Time now) { part_since = now, part_looks = 0; }
  std::optional<Time> drain_deadline;
  bool returns = false;    // it drains, and its next incarnation is to come up
  int damaged_in_row = 0;  // versions that it found damaged since it last installed one
  messages::RolloutStats stats;
  std::optional<Time> stats_at;       // when `stats` came; they count up to here
  std::optional<Time> no_room_since;  // while stats.no_room is set
};

struct WorkersSeen {
  // When the parts of evaluations that rollouts have are looked at again (evaluation_parts.h).
  // None: nobody had one at the last look.
  std::optional<Time> parts_due;
  std::map<std::string, WorkerSeen> by_actor;  // of all roles; no two have one name
  RewardTroubles troubles;
  // The newest end of an actor of a role; nothing where none has ended.
  std::map<messages::Role, Time> none_since;
};

// A run whose history was asked for.
struct RestoringRun {
  StepId checkpoint;
  GroupHistory history;
};

// A step of the warm start and when it was reported.
struct WarmStartPoint {
  std::int32_t step = 0;
  Time at{};
};

struct LearnerSeen {
  // Set while it waits for room on a disk: why, and since when.
  std::optional<std::pair<std::string, Time>> no_room;
  std::optional<Time> none_since;  // when the last learner ended
  std::optional<Time> committed;   // when it committed a step, until the next decision
  bool away = false;               // as WorkerSeen's
  bool said_batches_gone = false, said_no_replay = false;  // of the record of batches
  bool save_due = false;              // the next Decide asks for the checkpoint that is awaited
  std::optional<Time> save_asked;     // when it was last asked for
  std::optional<Time> publish_asked;  // when the learner was last asked to publish what it holds
  messages::WarmStartProgress warm_start;
  // The learner's first report of this warm start, and the time of the newest one.
  std::optional<WarmStartPoint> warm_start_first;
  Time warm_start_reported{};
  std::optional<wire::WeightSource> source;  // where the learner's publisher is reached
  // The learner's log-probabilities of the probe under published versions. Not journalled: after
  // the exchange's death the learner tells the newest one again.
  std::map<PolicyVersion, std::vector<float>> probes;
  std::optional<RestoringRun> restoring;
  // The learner ends its step, saves and goes; it is let go then, or at this time (drain.h).
  std::optional<Time> drain_deadline;
  bool let_go = false;  // the controller was told that it may end
};

struct BroadcastsSeen {
  std::optional<Broadcasts> groups;                      // set if the job's weights are broadcast
  std::map<PolicyVersion, wire::BroadcastPlace> places;  // as VersionFacts::checksums
  std::int64_t started = 0;
};

struct GroupTimes {
  Time admitted;
  Time moved;  // when the group came into its present state
};

struct Observed {
  std::map<GroupId, GroupTimes> groups;  // those in GroupFlow::entries
  std::set<std::uint32_t> poisoned;      // the prompts of GroupFlow::poisoned, by their index
  WorkersSeen workers;
  LearnerSeen learner;
  // Notes of scored groups that have any, until they are trained.
  std::map<GroupId, ScoreNotes> notes;
  ExtraKeys extra_keys;
  std::list<Evaluation> evaluations;  // the evaluations of EvaluationFacts::running, by id
  // Prompts of the evaluations by their index: those that are suspected of crashes, and why others
  // are given up (evaluation_suspects.h).
  scheduler::SuspectsOf<std::int32_t> evaluation_suspects;
  std::map<std::int32_t, std::string> poisoned_prompts;
  BroadcastsSeen broadcasts;
  RunStatistics statistics;
  FleetWindow fleet;  // begins anew with each exchange
  FigureHistory
      history;  // follows from the run's events, and goes along with an image of the facts
  scheduler::CollapseWatch collapse;
  std::deque<scheduler::CostPoint> cost_points;  // at the newest commits of this incarnation
  std::string quarantined;            // the newest prompt that was given up as poison_prompt
  std::optional<Time> progressed;     // the newest commit, or answer of an evaluation
  bool best_key_missed = false;       // an evaluation had no BestBy::key, which was told
  bool filter_keeps = false;          // the newest batch has groups that the filter is for
  std::optional<Time> save_deadline;  // EX-5: of EndFacts::last_save
  // Payloads may still be told of that were stored in the time of the exchange before.
  bool payloads_unsettled = false;
  // Leases of that time under which rollouts that have come back hold groups: they may have stored
  // the answer already, and tell of it next.
  std::vector<std::pair<GroupId, scheduler::LeaseId>> answers_due;
  Time away_until{};  // when actors that have not come back by then are given up (follow.h)
};

}  // namespace tandem::exchange
