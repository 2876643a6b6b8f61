#include "actors/runs/run_events.h"

#include "actors/runs/run_files.h"
#include "runtime/sqlite/sqlite.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::actors {
namespace {

namespace fs = std::filesystem;

using Messages = std::vector<std::string>;

Messages messages(const std::vector<ClusterEvent>& events) {
  Messages texts;
  for (const ClusterEvent& event : events) texts.push_back(event.message);
  return texts;
}

class RunEventsTest : public testing::Test {
 protected:
  // Events as the controllers of one state folder have left them: two epochs, three jobs.
  void announce_all() const {
    auto journal =
        sqlite::Sqlite::open((folder_.home / "controller.sqlite").string(),
                             "CREATE TABLE events(seq INTEGER, epoch INTEGER, time_ms INTEGER, "
                             "kind TEXT, subject TEXT, message TEXT)");
    ASSERT_TRUE(journal.has_value());
    std::vector<sqlite::Sqlite::Row> rows;
    const auto add = [&](std::int64_t seq, std::int64_t epoch, const char* subject,
                         const char* message) {
      rows.push_back(
          {seq, epoch, seq * 1000, std::string("job"), std::string(subject), std::string(message)});
    };
    add(1, 1, "sums-1", "submitted");
    add(2, 1, "sums-1/rollout/0", "ready");
    add(3, 1, "sums-12", "another job");
    add(4, 2, "sums-1", "resumed");
    add(5, 2, "sums-1.5", "yet another");
    add(6, 2, "sums-1", "succeeded");
    ASSERT_TRUE((*journal)->insert("INSERT INTO events VALUES(?,?,?,?,?,?)", rows));
  }
  Messages kept(const EventQuery& query) const {
    const auto events = kept_events(folder_.home, "sums-1", query);
    EXPECT_TRUE(events.has_value());
    return messages(*events);
  }

  const RunFolder folder_;
};

TEST_F(RunEventsTest, EventsOfEarlierControllersAreFound) {
  EXPECT_EQ(kept({}), Messages{});  // a state folder without a journal
  announce_all();
  EXPECT_EQ(kept({}), (Messages{"submitted", "ready", "resumed", "succeeded"}));
  EXPECT_EQ(kept({.limit = 2}), (Messages{"resumed", "succeeded"}));
  EXPECT_EQ(kept({.since = 1, .limit = 2}), (Messages{"ready", "resumed"}));
  EXPECT_EQ(kept({.since = 6}), Messages{});
}

TEST_F(RunEventsTest, ADirectoryThatCannotBeWrittenIsReadAllTheSame) {
  announce_all();
  fs::permissions(folder_.home, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(kept({}).size(), 4U);
  fs::permissions(folder_.home, fs::perms::owner_all);
  folder_.replace(folder_.home / "controller.sqlite", "not a database at all, but text");
  EXPECT_FALSE(kept_events(folder_.home, "sums-1", {}).has_value());
}

TEST_F(RunEventsTest, ARunsJournalTellsItsMilestonesAndHolders) {
  const fs::path run = folder_.run("sums-1");
  EXPECT_TRUE(journal_events(run, "sums-1", {})->empty());
  {
    const auto files = RunFiles::open(run.string());
    ASSERT_TRUE(files.has_value());
    const std::vector<JournalEvent> events = {
        StageEntered{RunStage::kWarmStart, "warm_start"},
        WorkerCameUp{.who = {"sums-1/rollout/0", Incarnation{3}}, .capacity = 8},
        WorkerCameUp{.who = {"sums-1/rollout/0", Incarnation{5}}, .capacity = 8},
        CheckpointKept{.step = StepId{10}, .directory = {}, .weights_sha256 = {}},
        RunEnded{"Succeeded"}};
    ASSERT_TRUE((*files)->journal(events, Durability::kKill));
    // The run's own process still has it open.
    const auto found = journal_events(run, "sums-1", {});
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(messages(*found),
              (Messages{"phase warm_start", "checkpoint at step 10", "ended Succeeded"}));
    EXPECT_EQ(found->front().subject, "sums-1");
  }
  EXPECT_EQ(messages(*journal_events(run, "sums-1", {.limit = 1})), Messages{"ended Succeeded"});
  const auto holders = journal_holders(run);
  ASSERT_TRUE(holders.contains("rollout/0"));
  EXPECT_EQ(holders.at("rollout/0"), (std::set<std::uint64_t>{3, 5}));
}

TEST_F(RunEventsTest, MilestonesOfALongRunAreAllThere) {
  const fs::path run = folder_.run("sums-1");
  const auto files = RunFiles::open(run.string());
  ASSERT_TRUE(files.has_value());
  ASSERT_TRUE((*files)->journal(
      std::vector<JournalEvent>{StageEntered{RunStage::kRunning, "early"}}, Durability::kKill));
  const std::vector<JournalEvent> many(
      1000, RolloutLeased{.group = GroupId{1}, .holder = {"sums-1/rollout/0", Incarnation{3}}});
  for (std::int64_t rows = 0; rows <= kJournalRowsMax; rows += std::ssize(many))
    ASSERT_TRUE((*files)->journal(many, Durability::kKill));
  ASSERT_TRUE((*files)->journal(std::vector<JournalEvent>{RunEnded{"late"}}, Durability::kKill));
  EXPECT_EQ(messages(*journal_events(run, "sums-1", {})), (Messages{"phase early", "ended late"}));
}

std::vector<std::string> levels(const std::vector<ClusterEvent>& events) {
  std::vector<std::string> names;
  for (const ClusterEvent& event : events) names.emplace_back(name(event.level));
  return names;
}

TEST_F(RunEventsTest, TheLevelOfAMilestoneIsOfItsFiguresAndNotOfItsWords) {
  const fs::path run = folder_.run("sums-1");
  const auto files = RunFiles::open(run.string());
  ASSERT_TRUE(files.has_value());
  const auto evaluated = [](std::int64_t failed) {
    return EvaluationEnded{.all = {.mean = 0.5, .scored = 10, .failed = failed}};
  };
  ASSERT_TRUE((*files)->journal(
      std::vector<JournalEvent>{evaluated(0), evaluated(3), EvaluationIncomplete{.prompts = 2},
                                SamplesFull{64 << 20},
                                RunEnded{"killed, lost and failed are words"},
                                RunEnded{"a wrong label", JobOutcome::kFailed}},
      Durability::kKill));
  const auto events = journal_events(run, "sums-1", {});
  ASSERT_TRUE(events.has_value());
  EXPECT_NE(events->front().message.find("failed=0"), std::string::npos);
  EXPECT_EQ(levels(*events), (Messages{"info", "warning", "warning", "warning", "info", "error"}));
}

TEST_F(RunEventsTest, LevelsAreKeptAndOlderJournalsHaveNone) {
  announce_all();
  EXPECT_EQ(levels(*kept_events(folder_.home, "sums-1", {})),
            (Messages{"info", "info", "info", "info"}));
  auto journal = sqlite::Sqlite::open((folder_.home / "controller.sqlite").string(),
                                      "ALTER TABLE events ADD COLUMN level TEXT");
  ASSERT_TRUE(journal.has_value());
  ASSERT_TRUE((*journal)->insert("INSERT INTO events VALUES(7,2,7000,'job','sums-1','x',?)",
                                 {{std::string("error")}}));
  EXPECT_EQ(levels(*kept_events(folder_.home, "sums-1", {})),
            (Messages{"info", "info", "info", "info", "error"}));
}

TEST(MergedEvents, EachEventIsThereOnceInTheOrderOfTime) {
  const ClusterEvent a{1, 10, "job", "s-1", "a"}, b{2, 20, "job", "s-1", "b"},
      c{1, 30, "job", "s-1", "c"};
  EXPECT_EQ(messages(merged({a, b}, {b, c}, {})), (Messages{"a", "b", "c"}));
  EXPECT_EQ(messages(merged({a, b}, {c}, {.limit = 2})), (Messages{"b", "c"}));
  EXPECT_EQ(messages(merged({a, b}, {c}, {.since = 0, .limit = 2})), (Messages{"a", "b"}));
}

}  // namespace
}  // namespace tandem::actors
