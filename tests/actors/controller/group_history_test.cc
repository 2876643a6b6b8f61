#include "actors/controller/group_history.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "actors/controller/run_files.h"

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

TEST(GroupHistory, LastFateOfEachGroupCountsAsOfTheCheckpoint) {
  const GroupHistory history = history_of(kTwoLives);
  expect_two_lives(history);
  using Means = std::map<std::string, double>;
  EXPECT_EQ(history.evaluations(StepId{1}), (Means{{"before", 0.25}, {"last", 0.25}}));
  EXPECT_EQ(history.evaluations(StepId{2}),
            (Means{{"before", 0.25}, {"last", 0.5}, {"periodic", 0.5}}));
}

TEST(GroupHistory, SlotsOfAFixedLagAreKept) {
  const std::vector<JournalEvent> events = {
      {.kind = "admitted", .group = 9, .step = 4, .position = 17, .detail = "3/1"}};
  const auto groups = history_of(events).at(StepId{0});
  EXPECT_EQ(groups[0].slot, (scheduler::Slot{StepId{4}, 3, 1}));
}

TEST(GroupHistory, JournalFileTellsTheSame) {
  const auto folder = std::filesystem::temp_directory_path() / "tandem_group_history_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  {
    auto files = RunFiles::open(folder.string());
    ASSERT_TRUE(files.has_value()) << files.error().message;
    ASSERT_TRUE((*files)->journal(kTwoLives).has_value());
  }
  auto again = RunFiles::open(folder.string());
  ASSERT_TRUE(again.has_value());
  GroupHistory history;
  ASSERT_TRUE((*again)->replay([&](const JournalEvent& event) { history.take(event); }));
  expect_two_lives(history);
  EXPECT_EQ(history.evaluations(StepId{2}).at("periodic"), 0.5);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tandem::actors
