// One event of each kind, no field of which has its default.
#pragma once

#include <vector>

#include "actors/exchange/state/journal_event.h"

namespace tandem::exchange {

// NOLINTNEXTLINE(readability-function-size): a table
inline std::vector<JournalEvent> every_event() {
  using scheduler::LeaseId;
  using scheduler::Slot;
  const ActorId rollout{"job-1/rollout/0", Incarnation{3}},
      reward{"job-1/reward/0", Incarnation{4}}, learner{"job-1/learner/0", Incarnation{5}};
  const messages::GroupHeader header{
      .group = GroupId{7},
      .attempt = 2,
      .prompt_tokens = 5,
      .trajectories = {{PolicyVersion{3}, PolicyVersion{4}, 9, messages::FinishReason::kLength}},
      .payload = {.node = "n", .segment = 1, .offset = 64, .bytes = 128, .checksum = 99}};
  const messages::Publication publication{.version = PolicyVersion{4},
                                          .oldest_retained = PolicyVersion{2},
                                          .checksum = 0xfedcba9876543210u,
                                          .bytes = 10,
                                          .seconds = 0.5,
                                          .broadcast = {}};
  const scheduler::Budget budget{
      .max_staleness = 2, .lookahead = 1, .sync_steps = 1, .groups_per_step = 2, .steps_total = 9};
  RunTotals totals;
  totals.trained.staleness.add(1, 4);
  totals.trained.tokens = 8;
  totals.work.wall_seconds = 0.1;
  totals.publish_seconds = 0.25;
  return {
      RunBegan{budget, true, 17, Epoch{6}},
      ExchangeFollowed{Epoch{4}},
      RunResumed{.checkpoint = StepId{1},
                 .issued = 5,
                 .trained = 2,
                 .retrained = 1,
                 .discarded = {1, 0, 0, 0, 0, 0},
                 .next_group = GroupId{6},
                 .next_position = 8,
                 .groups = {{GroupId{4}, 3, Slot{StepId{1}, 0, 0}, {}},
                            {GroupId{5}, 4, Slot{StepId{1}, 1, 0},
                             scheduler::DiscardReason::kZeroVariance}},
                 .evaluated = {EvaluationKind::kBefore}},
      StageEntered{RunStage::kRunning, "training"},
      EndAsked{messages::JobOutcome::kFailed, "the reason"},
      LastSaveAsked{StepId{3}},
      RunEnded{"all steps are trained"},
      StateHashed{0xffffffffffffffffu},
      TotalsNoted{StepId{3}, totals},
      WorkerCameUp{messages::Role::kReward, reward, 12},
      WorkerDrains{rollout},
      InstallPaused{rollout, PolicyVersion{3}, 0.25},
      VersionInstalled{rollout, PolicyVersion{3}},
      IncarnationEnded{rollout},
      GroupAdmitted{GroupId{7}, 11, Slot{StepId{4}, 1, 2}},
      RolloutLeased{GroupId{7}, LeaseId{2}, rollout, PolicyVersion{3}},
      GroupGenerated{rollout, header},
      RewardLeased{GroupId{7}, LeaseId{3}, reward},
      GroupScored{GroupId{7}, LeaseId{3}, {1.5F, -0.5F}, true, 1},
      BatchFormed{StepId{4}, {GroupId{7}, GroupId{8}}},
      StepTrained{StepId{4}, Incarnation{5}, 77, {GroupId{7}, GroupId{8}}, publication},
      EngineCrashed{rollout, "killed by SIGSEGV (11)", {GroupId{7}}, true, true},
      LeaseReleased{GroupId{7}, rollout},
      LeaseAdopted{GroupId{7}, LeaseId{3}, rollout},
      LeaseExpired{GroupId{7}},
      GroupHandedBack{GroupId{7}, LeaseId{2}, rollout, "too long"},
      GroupDiscarded{GroupId{7}, scheduler::DiscardReason::kPromptTooLong},
      LiveDiscarded{scheduler::DiscardReason::kCancelled, {GroupId{7}, GroupId{8}}},
      AnswerRefused{RefusedAnswer::kScores, GroupId{7}, LeaseId{2}, reward, PolicyVersion{1},
                    scheduler::Refusal::kOverAge},
      LearnerCameUp{learner, StepId{2}, {PolicyVersion{3}, PolicyVersion{4}}},
      LearnerRestarted{learner, StepId{2}, 3},
      LineageBegan{learner, StepId{2}, 7, 8},
      LearnerAsked{LearnerTask::kTrain, StepId{4}},
      VersionPublished{learner, publication, 40},
      VersionsRestored{learner, publication},
      VersionWithdrawn{rollout, PolicyVersion{3}},
      CommitRefused{StepId{4}, Incarnation{5}, scheduler::Refusal::kOldLease},
      CheckpointAsked{StepId{4}},
      BatchesKept{StepId{2}},
      BroadcastEpochOpened{3},
      CheckpointKept{StepId{4}, "step-4", "sha"},
      EvaluationBegan{messages::EvaluationId{2}, EvaluationKind::kFinal, PolicyVersion{4}},
      EvaluationEnded{messages::EvaluationId{2},
                      EvaluationKind::kFinal,
                      PolicyVersion{4},
                      {.mean = 0.5,
                       .greedy = 0.25,
                       .pass = {{2, 0.75}},
                       .scored = 3,
                       .failed = 1,
                       .standard_error = 0.125,
                       .majority = {{2, 1}},
                       .mean_with_failures = 0.375,
                       .extra = {{"format", 0.5}}},
                      {{"a", {.failed = 1}}}},
      EvaluationIncomplete{PolicyVersion{4}, 6},
      SamplesFull{64 << 20},
      MetricsThinned{256 << 20},
  };
}

}  // namespace tandem::exchange
