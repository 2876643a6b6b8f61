#include "actors/exchange/group_history.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "actors/controller/run_files.h"
#include "actors/exchange/evaluation_json.h"
#include "runtime/base/json.h"

namespace tandem::actors {
namespace {

const std::vector<JournalEvent> kTwoLives = {
    {.kind = "admitted", .group = 1, .position = 0},
    {.kind = "admitted", .group = 2, .position = 1},
    {.kind = "admitted", .group = 3, .position = 2},
    {.kind = "rolling", .group = 1, .lease = 1, .holder = "j/rollout/0#4", .version = 0},
    {.kind = "trained", .group = 1, .step = 0, .version = 1},
    {.kind = "evaluated", .version = 0, .detail = "before=0.25 failed=0"},
    {.kind = "discarded", .group = 2, .detail = "reward_failed"},
    {.kind = "trained", .group = 3, .step = 1, .version = 2},
    {.kind = "evaluated", .version = 2, .detail = "periodic=0.5 failed=1"},
    {.kind = "admitted", .group = 4, .position = 3},
    {.kind = "discarded", .group = 4, .detail = "cancelled"},
    {.kind = "admitted", .group = 5, .position = 4},
    {.kind = "discarded", .group = 5, .detail = "job_finished"},
    {.kind = "resumed", .step = 1},
    {.kind = "admitted", .group = 3, .position = 2},
    {.kind = "admitted", .group = 4, .position = 3},
    {.kind = "trained", .group = 4, .step = 1, .version = 2},
    {.kind = "evaluated", .version = 2, .detail = "final=none failed=9"},
};

GroupHistory history_of(std::span<const JournalEvent> events) {
  GroupHistory history;
  for (const JournalEvent& event : events) history.take(event);
  return history;
}

void expect_two_lives(const GroupHistory& history) {
  const auto groups = history.at(StepId{2});
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0].trained_at, StepId{0});
  EXPECT_EQ(groups[1].discarded, scheduler::DiscardReason::kRewardFailed);
  EXPECT_FALSE(groups[2].trained_at) << "trained in the first life beyond its checkpoint";
  EXPECT_EQ(groups[2].position, 2);
  EXPECT_EQ(groups[3].trained_at, StepId{1});
  EXPECT_FALSE(groups[4].discarded) << "the end of a life discards nothing";
  EXPECT_FALSE(history.at(StepId{1})[3].trained_at);
}

using Means = std::map<std::string, double>;
Means means_of(const RunStatistics& statistics) {
  Means means;
  for (const auto& [kind, figures] : statistics.evaluations)
    if (figures.all.mean) means[kind] = *figures.all.mean;
  return means;
}

TEST(GroupHistory, LastFateOfEachGroupCountsAsOfTheCheckpoint) {
  const GroupHistory history = history_of(kTwoLives);
  expect_two_lives(history);
  EXPECT_EQ(means_of(history.statistics(StepId{1}, 9)), (Means{{"before", 0.25}, {"last", 0.25}}));
  EXPECT_EQ(history.statistics(StepId{1}, 9).evaluations_failed, 0);
  EXPECT_EQ(means_of(history.statistics(StepId{2}, 9)), (Means{{"before", 0.25}}))
      << "an older mean is not that of an evaluation in which everything failed";
  EXPECT_EQ(history.statistics(StepId{2}, 9).evaluations_failed, 10);
}

TEST(GroupHistory, AnEvaluationKeepsHowManyItLeftOut) {
  const std::vector<JournalEvent> events = {
      {.kind = "evaluated", .version = 0, .detail = "before=0.25 scored=10 failed=0"},
      {.kind = "evaluated", .version = 2, .detail = "periodic=0.5 scored=7 failed=3"},
      {.kind = "evaluated", .version = 4, .detail = "periodic=none scored=0 failed=10"}};
  const RunStatistics some = history_of(events).statistics(StepId{2}, 9);
  EXPECT_EQ(some.evaluations.at("before").all, (RewardFigures{.mean = 0.25, .scored = 10}));
  EXPECT_EQ(some.evaluations.at("last").all,
            (RewardFigures{.mean = 0.5, .scored = 7, .failed = 3}));
  const RunStatistics none = history_of(events).statistics(StepId{4}, 9);
  EXPECT_EQ(none.evaluations.at("last").all, (RewardFigures{.failed = 10}))
      << "an older mean is not this evaluation's";
  EXPECT_EQ(none.evaluations_failed, 13);
}

TEST(GroupHistory, AnEvaluationKeepsAllItsFigures) {
  const EvaluationFigures figures{
      .all =
          {.mean = 0.1, .greedy = 0.3, .pass = {{1, 0.1}, {4, 1.0 / 3}}, .scored = 7, .failed = 3},
      .sources = {{"a", {.failed = 3}}, {"b", {.mean = 0.1, .scored = 7}}}};
  const std::vector<JournalEvent> events = {
      {.kind = "evaluated",
       .version = 0,
       .detail = "before=0.1 scored=7 failed=3 figures=" + dump_json(figures_json(figures))}};
  EXPECT_EQ(history_of(events).statistics(StepId{0}, 9).evaluations.at("before"), figures);
}

TEST(GroupHistory, AFinalEvaluationIsThatOfTheLastStepAlone) {
  const std::vector<JournalEvent> events = {
      {.kind = "evaluated", .version = 2, .detail = "final=0.5 failed=0"}};
  EXPECT_EQ(means_of(history_of(events).statistics(StepId{2}, 2)),
            (Means{{"final", 0.5}, {"last", 0.5}}));
  EXPECT_EQ(means_of(history_of(events).statistics(StepId{2}, 3)),
            (Means{{"periodic", 0.5}, {"last", 0.5}}));
}

JournalEvent totals_at(std::int64_t step, const RunTotals& totals) {
  return {.kind = "totals", .step = step, .detail = to_text(totals)};
}

// Two steps of one group each, the second of which is lost, then trained anew by a second life that
// had to repeat it once more after its learner's death.
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
  std::vector<JournalEvent> events = {{.kind = "trained", .group = 1, .step = 0},
                                      totals_at(1, first),
                                      {.kind = "trained", .group = 2, .step = 1},
                                      totals_at(2, second),
                                      totals_at(2, end)};
  const RunStatistics resumed = history_of(events).statistics(StepId{1}, 9);
  EXPECT_EQ(resumed.trained.tokens, 100u);
  EXPECT_EQ(resumed.trained.tokens_at_staleness_0, 100u);
  EXPECT_EQ(resumed.trained.logprob_diff_max_at_staleness_0, 0);
  EXPECT_EQ(resumed.trained.staleness.mean(), 0);
  EXPECT_EQ(resumed.work.tokens_generated, 300u) << "though half of it was lost";
  EXPECT_EQ(resumed.work.wall_seconds, 7);
  EXPECT_EQ(resumed.publish_seconds, (std::deque<double>{0.25, 0.75}));
  EXPECT_EQ(history_of(events).retrained(StepId{1}, 1), 1);
  EXPECT_EQ(history_of(events).statistics(StepId{0}, 9).trained.tokens, 0u);

  events.push_back({.kind = "admitted", .group = 2});
  events.push_back({.kind = "trained", .group = 3, .step = 1});
  events.push_back(totals_at(2, again));
  events.push_back({.kind = "retrained", .step = 1});
  const GroupHistory history = history_of(events);
  EXPECT_EQ(history.statistics(StepId{2}, 9).trained.tokens, 240u);
  EXPECT_EQ(history.statistics(StepId{2}, 9).trained.staleness.max(), 2);
  EXPECT_EQ(history.statistics(StepId{2}, 9).work.tokens_generated, 450u);
  EXPECT_EQ(history.retrained(StepId{2}, 1), 2) << "group 2 lost, group 3 repeated";
}

TEST(GroupHistory, SlotsOfAFixedLagAreKept) {
  const std::vector<JournalEvent> events = {
      {.kind = "admitted", .group = 9, .step = 4, .position = 17, .detail = "3/1"}};
  const auto groups = history_of(events).at(StepId{0});
  EXPECT_EQ(groups[0].slot, (scheduler::Slot{StepId{4}, 3, 1}));
}

TEST(GroupHistory, JournalFileTellsTheSame) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("tandem_group_history_test." + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  {
    auto files = RunFiles::open(folder.string());
    ASSERT_TRUE(files.has_value()) << files.error().message;
    ASSERT_TRUE((*files)->journal(kTwoLives, Durability::kKill).has_value());
  }
  auto again = RunFiles::open(folder.string());
  ASSERT_TRUE(again.has_value());
  GroupHistory history;
  ASSERT_TRUE((*again)->replay([&](const JournalEvent& event) { history.take(event); }));
  expect_two_lives(history);
  EXPECT_EQ(means_of(history.statistics(StepId{2}, 9)).at("before"), 0.25);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tandem::actors
