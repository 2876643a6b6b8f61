#include "actors/exchange/group_history.h"

#include <gtest/gtest.h>

#include <span>
#include <tuple>

#include "actors/exchange/checks.h"
#include "runtime/wire/codec.h"
#include "tests/actors/exchange/random_run.h"
#include "tests/seeds.h"

namespace tandem::exchange {
namespace {

using scheduler::DiscardReason;

GroupAdmitted admitted(std::uint64_t group, std::int64_t position) {
  return {.group = GroupId{group}, .position = position, .slot = {}};
}

StepTrained trained(std::int64_t step, std::vector<GroupId> groups) {
  return {.step = StepId{step}, .groups = std::move(groups), .publication = {}};
}

EvaluationEnded evaluated(EvaluationKind kind, std::int64_t version, messages::RewardFigures all) {
  return {.kind = kind, .version = PolicyVersion{version}, .all = std::move(all), .sources = {}};
}

const std::vector<JournalEvent> kTwoIncarnations = {
    RunBegan{},
    admitted(1, 0),
    admitted(2, 1),
    admitted(3, 2),
    RolloutLeased{.group = GroupId{1}},
    trained(0, {GroupId{1}}),
    evaluated(EvaluationKind::kBefore, 0, {.mean = 0.25}),
    GroupDiscarded{GroupId{2}, DiscardReason::kRewardFailed},
    trained(1, {GroupId{3}}),
    evaluated(EvaluationKind::kPeriodic, 2, {.mean = 0.5, .failed = 1}),
    admitted(4, 3),
    admitted(5, 4),
    LiveDiscarded{DiscardReason::kCancelled, {GroupId{4}, GroupId{5}}},
    RunBegan{},
    RunResumed{.checkpoint = StepId{1},
               .groups = {{.group = GroupId{3}, .position = 2, .slot = {}, .discarded = {}},
                          {.group = GroupId{4}, .position = 3, .slot = {}, .discarded = {}},
                          {.group = GroupId{5}, .position = 4, .slot = {}, .discarded = {}}}},
    trained(1, {GroupId{4}}),
    evaluated(EvaluationKind::kFinal, 2, {.failed = 9}),
};

GroupHistory history_of(std::span<const JournalEvent> events) {
  GroupHistory history;
  for (const JournalEvent& event : events) history.take(event);
  return history;
}

using Means = std::map<std::string, double>;
Means means_of(const RunStatistics& statistics) {
  Means means;
  for (const auto& [kind, figures] : statistics.evaluations)
    if (figures.all.mean) means[kind] = *figures.all.mean;
  return means;
}

TEST(GroupHistory, LastFateOfEachGroupCountsAsOfTheCheckpoint) {
  const GroupHistory history = history_of(kTwoIncarnations);
  const auto groups = history.at(StepId{2});
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0].trained_at, StepId{0});
  EXPECT_EQ(groups[1].discarded, DiscardReason::kRewardFailed);
  EXPECT_FALSE(groups[2].trained_at) << "trained in the first incarnation beyond its checkpoint";
  EXPECT_EQ(groups[2].position, 2);
  EXPECT_EQ(groups[3].trained_at, StepId{1});
  EXPECT_FALSE(groups[4].discarded) << "the end of an incarnation discards nothing";
  EXPECT_FALSE(history.at(StepId{1})[3].trained_at);
  EXPECT_EQ(means_of(history.figures().statistics(StepId{1}, 9)),
            (Means{{"before", 0.25}, {"last", 0.25}}));
  EXPECT_EQ(history.figures().statistics(StepId{1}, 9).evaluations_failed, 0);
  EXPECT_EQ(means_of(history.figures().statistics(StepId{2}, 9)), (Means{{"before", 0.25}}))
      << "an older mean is not that of an evaluation in which everything failed";
  EXPECT_EQ(history.figures().statistics(StepId{2}, 9).evaluations_failed, 10);
}

TEST(GroupHistory, TheEventThatResumesHasAllThatIsNeeded) {
  const scheduler::Budget budget{.groups_per_step = 1, .steps_total = 9};
  const RunResumed event = history_of(kTwoIncarnations).resumed(StepId{2}, budget, false);
  EXPECT_EQ(event.checkpoint, StepId{2});
  EXPECT_EQ(event.issued, 5);
  EXPECT_EQ(event.trained, 2);
  EXPECT_EQ(event.retrained, 1) << "group 3, whose step was trained anew";
  EXPECT_EQ(event.discarded[static_cast<std::size_t>(DiscardReason::kRewardFailed)], 1);
  EXPECT_EQ(event.next_group, GroupId{6});
  EXPECT_EQ(event.next_position, 5);
  ASSERT_EQ(event.groups.size(), 2u);
  EXPECT_EQ(event.groups[0].group, GroupId{3});
  EXPECT_EQ(event.groups[1].group, GroupId{5});
  EXPECT_EQ(event.evaluated, (std::vector{EvaluationKind::kBefore, EvaluationKind::kPeriodic}));
}

TEST(GroupHistory, AnEvaluationKeepsAllItsFigures) {
  const messages::RewardFigures all{
      .mean = 0.1, .greedy = 0.3, .pass = {{1, 0.1}, {4, 1.0 / 3}}, .scored = 7, .failed = 3};
  EvaluationEnded ended = evaluated(EvaluationKind::kBefore, 0, all);
  ended.sources = {{"a", {.failed = 3}}, {"b", {.mean = 0.1, .scored = 7}}};
  const std::vector<JournalEvent> events = {ended};
  const messages::EvaluationFigures figures{
      .all = all, .sources = {{"a", {.failed = 3}}, {"b", {.mean = 0.1, .scored = 7}}}};
  EXPECT_EQ(history_of(events).figures().statistics(StepId{0}, 9).evaluations.at("before"),
            figures);
}

// Step 1 is trained, lost, and trained anew with another group.
TEST(GroupHistory, TheRewardOfTheNewestStepIsThatOfItsCheckpoint) {
  const auto scored = [](std::uint64_t group, std::vector<float> rewards) {
    return GroupScored{.group = GroupId{group}, .rewards = std::move(rewards)};
  };
  std::vector<JournalEvent> events = {
      scored(1, {1, 0}),    scored(2, {0.5f, 0}),     trained(0, {GroupId{1}, GroupId{2}}),
      scored(3, {1, 1}),    trained(1, {GroupId{3}}), RunResumed{.checkpoint = StepId{1}},
      scored(4, {0, 0.25f})};
  const auto mean_at = [&](std::int64_t checkpoint) {
    return history_of(events).figures().statistics(StepId{checkpoint}, 9).batch.rewards.mean;
  };
  EXPECT_EQ(mean_at(0), 0) << "nothing is trained";
  EXPECT_EQ(mean_at(1), 0.375);
  EXPECT_EQ(mean_at(2), 1);
  events.push_back(trained(1, {GroupId{4}}));
  EXPECT_EQ(mean_at(2), 0.125);
  events.push_back(trained(1, {}));  // repeated after the learner's death
  EXPECT_EQ(mean_at(2), 0.125);
}

TEST(GroupHistory, AFinalEvaluationIsThatOfTheLastStepAlone) {
  const std::vector<JournalEvent> events = {evaluated(EvaluationKind::kFinal, 2, {.mean = 0.5})};
  EXPECT_EQ(means_of(history_of(events).figures().statistics(StepId{2}, 2)),
            (Means{{"final", 0.5}, {"last", 0.5}}));
  EXPECT_EQ(means_of(history_of(events).figures().statistics(StepId{2}, 3)),
            (Means{{"periodic", 0.5}, {"last", 0.5}}));
}

// Two steps of one group each, the second of which is lost, then trained anew by a second
// incarnation that had to repeat it once more after its learner's death.
TEST(GroupHistory, TotalsCountWhatIsTrainedOnceAndWorkAsOftenAsItWasDone) {
  RunTotals first, second, end, again;
  first.trained = {.staleness = {{{0, 8}}}, .tokens = 100, .tokens_at_staleness_0 = 100};
  first.work = {.tokens_generated = 150, .publish_count = 1, .wall_seconds = 5.5};
  first.publish_seconds = 0.25;
  second = first;
  second.trained.staleness.add(2);
  second.trained.tokens = 230;
  second.trained.logprob_diff_max_at_staleness_0 = 0.125;
  second.work.tokens_generated = 300;
  second.publish_seconds = 0.75;
  end = second;
  end.work.wall_seconds = 7;
  end.publish_seconds.reset();
  again = second;
  again.trained.tokens = 240;
  again.work.tokens_generated = 450;
  std::vector<JournalEvent> events = {trained(0, {GroupId{1}}), TotalsNoted{StepId{1}, first},
                                      trained(1, {GroupId{2}}), TotalsNoted{StepId{2}, second},
                                      TotalsNoted{StepId{2}, end}};
  const scheduler::Budget budget{.groups_per_step = 1, .steps_total = 9};
  const RunStatistics resumed = history_of(events).figures().statistics(StepId{1}, 9);
  EXPECT_EQ(resumed.trained.tokens, 100u);
  EXPECT_EQ(resumed.trained.tokens_at_staleness_0, 100u);
  EXPECT_EQ(resumed.trained.logprob_diff_max_at_staleness_0, 0);
  EXPECT_EQ(resumed.trained.staleness.mean(), 0);
  EXPECT_EQ(resumed.work.tokens_generated, 300u) << "though half of it was lost";
  EXPECT_EQ(resumed.work.wall_seconds, 7);
  EXPECT_EQ(resumed.publish_seconds, (std::deque<double>{0.25, 0.75}));
  EXPECT_EQ(history_of(events).resumed(StepId{1}, budget, false).retrained, 1);
  EXPECT_EQ(history_of(events).figures().statistics(StepId{0}, 9).trained.tokens, 0u);

  events.push_back(admitted(2, 0));
  events.push_back(trained(1, {GroupId{3}}));
  events.push_back(TotalsNoted{StepId{2}, again});
  events.push_back(trained(1, {}));  // repeated
  const GroupHistory history = history_of(events);
  EXPECT_EQ(history.figures().statistics(StepId{2}, 9).trained.tokens, 240u);
  EXPECT_EQ(history.figures().statistics(StepId{2}, 9).trained.staleness.max(), 2);
  EXPECT_EQ(history.figures().statistics(StepId{2}, 9).work.tokens_generated, 450u);
  EXPECT_EQ(history.resumed(StepId{2}, budget, false).retrained, 2)
      << "group 2 lost, group 3 repeated";
}

TEST(GroupHistory, SlotsOfAFixedLagAreKept) {
  const scheduler::Slot slot{StepId{4}, 3, 1};
  const std::vector<JournalEvent> events = {
      GroupAdmitted{.group = GroupId{9}, .position = 17, .slot = slot}};
  EXPECT_EQ(history_of(events).at(StepId{0})[0].slot, slot);
}

// GH-1: a run that dies again and again goes on from its newest checkpoints in the same way,
// however often its journal was summed up.
TEST(GroupHistory, SummedUpAtAnyTimeItResumesTheRunAlike) {
  for_seeds(100, [](std::uint64_t seed) {
    RandomRun run(seed, seed % 2 == 1);
    Rng rng(seed);
    GroupHistory summed;
    std::size_t most = 0, resumed = 0;
    for (int i = 0; i < 120; ++i) {
      for (const JournalEvent& event : run.next()) {
        summed.take(event);
        if (rng.below(20) > 0) continue;
        summed.sum_up(2, StepId{1 << 20});
        const HistoryImage image = summed.image();
        most = std::max(most, image.groups.size());
        summed = GroupHistory(*wire::decode<HistoryImage>(wire::encode(image)));
      }
      for (const StepId checkpoint : run.checkpoints()) {
        ASSERT_LE(summed.from(), checkpoint);
        const auto of = [&](const GroupHistory& history) {
          return wire::encode(history.resumed(checkpoint, run.budget(), run.fixed_lag()));
        };
        ASSERT_EQ(of(summed), of(run.whole())) << "step " << i;
        ASSERT_EQ(summed.trained(checkpoint), run.whole().trained(checkpoint));
        const auto figures = [&](const GroupHistory& history) {
          const RunStatistics found = history.figures().statistics(checkpoint, 1 << 20);
          return std::tuple(found.trained.tokens, found.weights_sha256, found.batch.rewards.mean);
        };
        ASSERT_EQ(figures(summed), figures(run.whole())) << "step " << i;
        ++resumed;
      }
    }
    EXPECT_GT(resumed, 100u);
    EXPECT_LT(most, 120u) << "it keeps no more than a few steps' groups one by one";
    EXPECT_GT(summed.from(), StepId{0});
  });
}

TEST(GroupHistory, ACheckpointBeforeWhatIsSummedUpIsRefusedInWords) {
  RandomRun run(5, false);
  for (int i = 0; i < 60; ++i) run.next();
  GroupHistory history = run.whole();
  const ExchangeConfig config{.budget = run.budget()};
  const RunFacts facts;
  const Observed seen;
  const RunView view{.config = config, .facts = facts, .seen = seen, .now = {}};
  const StepId newest = run.checkpoints().back(), first = run.checkpoints().front();
  EXPECT_EQ(misfit(view, history, StepId{4}), std::nullopt);
  history.sum_up(2, StepId{1 << 20});
  EXPECT_EQ(misfit(view, history, newest), std::nullopt);
  EXPECT_EQ(misfit(view, history, first), std::nullopt);
  EXPECT_NE(misfit(view, history, StepId{4})->find("not of checkpoint 4 (retention.archive_bytes)"),
            std::string::npos);
}

// A later event goes back to an older checkpoint, whose groups are trained once more.
TEST(GroupHistory, SummedUpItGoesNoFurtherThanALaterEventGoesBack) {
  GroupHistory history;
  for (std::int64_t step = 0; step < 6; ++step) {
    const auto group = static_cast<std::uint64_t>(step) + 1;
    history.take(admitted(group, step));
    history.take(trained(step, {GroupId{group}}));
    history.take(CheckpointKept{.step = StepId{step + 1}, .directory = "", .weights_sha256 = ""});
  }
  GroupHistory summed = history;
  summed.sum_up(2, StepId{3});
  EXPECT_EQ(summed.from(), StepId{3});
  const scheduler::Budget budget{.groups_per_step = 1, .steps_total = 9};
  const RunResumed back = history.resumed(StepId{3}, budget, false);
  for (GroupHistory* one : {&history, &summed}) {
    one->take(back);
    for (std::int64_t step = 3; step < 6; ++step)
      one->take(trained(step, {GroupId{static_cast<std::uint64_t>(step) + 1}}));
  }
  EXPECT_EQ(wire::encode(summed.resumed(StepId{6}, budget, false)),
            wire::encode(history.resumed(StepId{6}, budget, false)));
  EXPECT_EQ(summed.trained(StepId{6}), 6);
}

// A run of years keeps the figures of its evaluations, and not all of these.
TEST(FigureHistory, OfManyEvaluationsOnlyThoseThatCountAreKept) {
  FigureHistory whole, kept;
  const BestBy by{"val/reward/mean"};
  const auto take = [&](const JournalEvent& event) {
    whole.take(event);
    kept.take(event);
  };
  take(evaluated(EvaluationKind::kBefore, -1, {.mean = 0.1, .failed = 2}));
  std::int64_t version = 1;
  for (; version <= 10'000; ++version) {
    take(evaluated(EvaluationKind::kPeriodic, version,
                   {.mean = version == 77 ? 0.9 : 0.5, .failed = version % 3}));
    if (version % 100 == 0) kept = FigureHistory(kept.image());
    kept.forget_below(StepId{version}, by);
    ASSERT_LE(kept.image().evaluated.size(), 2 * kEvaluationsKept);
  }
  const RunStatistics all = whole.statistics(StepId{version}, 1 << 20, by);
  const RunStatistics some = kept.statistics(StepId{version}, 1 << 20, by);
  EXPECT_EQ(means_of(some), means_of(all));
  EXPECT_EQ(some.best->version, PolicyVersion{77});
  EXPECT_EQ(some.evaluations_failed, all.evaluations_failed);
  EXPECT_EQ(some.evaluation_records.size(), all.evaluation_records.size());
}

// JA-2 of the figures: whichever checkpoint a resume goes back to, it has those as of that one.
TEST(GroupHistory, SummedUpItKeepsFewEvaluationsAndItsFigures) {
  constexpr std::int64_t kVersions = 10'000;
  GroupHistory whole, summed;
  const BestBy by{"val/reward/mean"};
  const auto take = [&](const JournalEvent& event) {
    whole.take(event);
    summed.take(event);
  };
  take(evaluated(EvaluationKind::kBefore, -1, {.mean = 0.1, .failed = 2}));
  for (std::int64_t version = 1; version <= kVersions; ++version) {
    const double mean = version == kVersions - 1 ? 0.95 : version == 77 ? 0.9 : 0.5;
    take(evaluated(EvaluationKind::kPeriodic, version, {.mean = mean, .failed = version % 3}));
    if (version % 5 == 0) take(CheckpointKept{.step = StepId{version}});
    if (version % 500 > 0) continue;
    summed.sum_up(2, StepId{1 << 20}, by);
    const HistoryImage image = summed.image();
    ASSERT_LT(image.figures.evaluated.size(), 3 * kEvaluationsKept);
    ASSERT_EQ(image.checkpoints.size(), 2u);
    summed = GroupHistory(*wire::decode<HistoryImage>(wire::encode(image)));
  }
  ASSERT_EQ(summed.from(), StepId{kVersions - 5});
  for (const StepId checkpoint : {summed.from(), StepId{kVersions}}) {
    const RunStatistics all = whole.figures().statistics(checkpoint, 1 << 20, by);
    const RunStatistics some = summed.figures().statistics(checkpoint, 1 << 20, by);
    EXPECT_EQ(means_of(some), means_of(all));
    EXPECT_EQ(some.best->version.value, checkpoint == summed.from() ? 77 : kVersions - 1);
    EXPECT_EQ(some.evaluations_failed, all.evaluations_failed);
    EXPECT_EQ(some.evaluation_records.size(), all.evaluation_records.size());
    EXPECT_EQ(summed.figures().evaluated(checkpoint, 1 << 20),
              whole.figures().evaluated(checkpoint, 1 << 20));
  }
}

TEST(GroupHistory, ARunGoesOnWithItsBestCheckpoint) {
  const std::vector<JournalEvent> events{
      RunBegan{}, evaluated(EvaluationKind::kBefore, -1, {.mean = 0.9}),
      evaluated(EvaluationKind::kPeriodic, 1, {.mean = 0.5, .pass = {{2, 0.6}}}),
      evaluated(EvaluationKind::kPeriodic, 2, {.mean = 0.5, .pass = {{2, 0.7}}}),
      evaluated(EvaluationKind::kPeriodic, 3, {.mean = 0.8})};
  const auto best = [&](std::int64_t checkpoint, const char* key) {
    const auto found =
        history_of(events).figures().statistics(StepId{checkpoint}, 9, BestBy{key}).best;
    return found ? found->version.value : -9;
  };
  EXPECT_EQ(best(3, "val/reward/mean"), 3);
  EXPECT_EQ(best(2, "val/reward/mean"), 1) << "of equals the earliest, and none beyond";
  EXPECT_EQ(best(3, "val/reward/pass@2"), 2);
  EXPECT_EQ(best(3, ""), -9);
  EXPECT_EQ(best(3, "val/code/reward/mean"), -9);
}

}  // namespace
}  // namespace tandem::exchange
