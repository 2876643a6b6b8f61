#include "actors/runs/run_events.h"

#include "actors/runs/run_files.h"
#include "tests/actors/runs/event_texts.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

class RunEventsTest : public testing::Test {
 protected:
  const RunFolder folder_;
};

TEST_F(RunEventsTest, ARunsJournalTellsItsMilestonesAndHolders) {
  const fs::path run = folder_.run("sums-1");
  EXPECT_TRUE(journal_events(run, "sums-1", {})->empty());
  {
    const auto files = RunFiles::open(run.string());
    ASSERT_TRUE(files.has_value());
    const std::vector<exchange::JournalEvent> events = {
        exchange::StageEntered{exchange::RunStage::kWarmStart, "warm_start"},
        exchange::WorkerCameUp{.who = {"sums-1/rollout/0", Incarnation{3}}, .capacity = 8},
        exchange::WorkerCameUp{.who = {"sums-1/rollout/0", Incarnation{5}}, .capacity = 8},
        exchange::CheckpointKept{.step = StepId{10}, .directory = {}, .weights_sha256 = {}},
        exchange::RunEnded{"Succeeded"}};
    ASSERT_TRUE((*files)->journal(events, sqlite::Durability::kKill));
    // The run's own process still has it open.
    const auto found = journal_events(run, "sums-1", {});
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(texts(*found),
              (Messages{"phase warm_start", "checkpoint at step 10", "ended Succeeded"}));
    EXPECT_EQ(found->front().subject, "sums-1");
  }
  EXPECT_EQ(texts(*journal_events(run, "sums-1", {.limit = 1})), Messages{"ended Succeeded"});
  const auto holders = journal_holders(run);
  ASSERT_TRUE(holders.contains("rollout/0"));
  EXPECT_EQ(holders.at("rollout/0"), (std::set<std::uint64_t>{3, 5}));
}

TEST_F(RunEventsTest, MilestonesOfALongRunAreAllThere) {
  const fs::path run = folder_.run("sums-1");
  const auto files = RunFiles::open(run.string());
  ASSERT_TRUE(files.has_value());
  ASSERT_TRUE((*files)->journal(std::vector<exchange::JournalEvent>{exchange::StageEntered{
                                    exchange::RunStage::kRunning, "early"}},
                                sqlite::Durability::kKill));
  const std::vector<exchange::JournalEvent> many(
      1000,
      exchange::RolloutLeased{.group = GroupId{1}, .holder = {"sums-1/rollout/0", Incarnation{3}}});
  for (std::int64_t rows = 0; rows <= kJournalRowsMax; rows += std::ssize(many))
    ASSERT_TRUE((*files)->journal(many, sqlite::Durability::kKill));
  ASSERT_TRUE((*files)->journal(std::vector<exchange::JournalEvent>{exchange::RunEnded{"late"}},
                                sqlite::Durability::kKill));
  EXPECT_EQ(texts(*journal_events(run, "sums-1", {})), (Messages{"phase early", "ended late"}));
}

TEST_F(RunEventsTest, TheLevelOfAMilestoneIsOfItsFiguresAndNotOfItsWords) {
  const fs::path run = folder_.run("sums-1");
  const auto files = RunFiles::open(run.string());
  ASSERT_TRUE(files.has_value());
  const auto evaluated = [](std::int64_t failed) {
    return exchange::EvaluationEnded{.all = {.mean = 0.5, .scored = 10, .failed = failed}};
  };
  ASSERT_TRUE((*files)->journal(
      std::vector<exchange::JournalEvent>{
          evaluated(0), evaluated(3), exchange::EvaluationIncomplete{.prompts = 2},
          exchange::SamplesFull{64 << 20}, exchange::RunEnded{"killed, lost and failed are words"},
          exchange::RunEnded{"a wrong label", messages::JobOutcome::kFailed}},
      sqlite::Durability::kKill));
  const auto events = journal_events(run, "sums-1", {});
  ASSERT_TRUE(events.has_value());
  EXPECT_NE(events->front().message.find("failed=0"), std::string::npos);
  EXPECT_EQ(levels(*events), (Messages{"info", "warning", "warning", "warning", "info", "error"}));
}

TEST(MergedEvents, EachEventIsThereOnceInTheOrderOfTime) {
  const ClusterEvent a{1, 10, "job", "s-1", "a"}, b{2, 20, "job", "s-1", "b"},
      c{1, 30, "job", "s-1", "c"};
  EXPECT_EQ(texts(merged({a, b}, {b, c}, {})), (Messages{"a", "b", "c"}));
  EXPECT_EQ(texts(merged({a, b}, {c}, {.limit = 2})), (Messages{"b", "c"}));
  EXPECT_EQ(texts(merged({a, b}, {c}, {.since = 0, .limit = 2})), (Messages{"a", "b"}));
}

}  // namespace
}  // namespace tandem::runs
