#include "actors/runs/cluster_journal.h"

#include <gtest/gtest.h>

#include "runtime/sqlite/sqlite.h"
#include "tests/actors/runs/event_texts.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

class ClusterJournalTest : public testing::Test {
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
    const auto events = announced_events(folder_.home, "sums-1", query);
    EXPECT_TRUE(events.has_value());
    return texts(*events);
  }

  const RunFolder folder_;
};

TEST_F(ClusterJournalTest, EventsOfEarlierControllersAreFound) {
  EXPECT_EQ(kept({}), Messages{});  // a state folder without a journal
  announce_all();
  EXPECT_EQ(kept({}), (Messages{"submitted", "ready", "resumed", "succeeded"}));
  EXPECT_EQ(kept({.limit = 2}), (Messages{"resumed", "succeeded"}));
  EXPECT_EQ(kept({.since = 1, .limit = 2}), (Messages{"ready", "resumed"}));
  EXPECT_EQ(kept({.since = 6}), Messages{});
}

TEST_F(ClusterJournalTest, ADirectoryThatCannotBeWrittenIsReadAllTheSame) {
  announce_all();
  fs::permissions(folder_.home, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(kept({}).size(), 4U);
  fs::permissions(folder_.home, fs::perms::owner_all);
  folder_.replace(folder_.home / "controller.sqlite", "not a database at all, but text");
  EXPECT_FALSE(announced_events(folder_.home, "sums-1", {}).has_value());
}

TEST_F(ClusterJournalTest, TheStateOfAControllerIsThatOfTheNext) {
  const auto rows = [](const ClusterJournal::KeptState& state) {
    Messages texts;
    for (const StateRow& row : state.rows) texts.push_back(row.kind + " " + row.subject + row.body);
    return texts;
  };
  const StateRow taken{"job_taken", "sums-1", std::string("\0body", 5)};
  {
    auto journal = ClusterJournal::begin(folder_.home, 1000);
    ASSERT_TRUE(journal.has_value());
    EXPECT_EQ(rows(*journal->state(1)), Messages{});
    ASSERT_TRUE(journal->append(std::vector{taken}, 1, 1001).has_value());
    ASSERT_TRUE(
        journal->append(std::vector{StateRow{"node_joined", "a", "b"}}, 1, 1002).has_value());
  }
  auto journal = ClusterJournal::begin(folder_.home, 2000);
  EXPECT_EQ(journal->epoch(), Epoch{2});
  const auto kept = journal->state(1);
  EXPECT_EQ(rows(*kept), (Messages{"job_taken sums-1" + taken.body, "node_joined ab"}));
  EXPECT_FALSE(kept->other_schema);
  ASSERT_TRUE(journal->replace_state({taken}, 1, 2001).has_value());
  EXPECT_EQ(rows(*journal->state(1)), Messages{"job_taken sums-1" + taken.body});
  const auto other = journal->state(2);
  EXPECT_TRUE(other->other_schema);
  EXPECT_TRUE(other->rows.empty()) << "what other versions wrote is not guessed at";
  ASSERT_TRUE(journal->replace_state({}, 2, 2002).has_value());
  EXPECT_EQ(rows(*journal->state(1)).size(), 1u) << "and is not removed";
}

TEST_F(ClusterJournalTest, LevelsAreKeptAndOlderJournalsHaveNone) {
  announce_all();
  EXPECT_EQ(levels(*announced_events(folder_.home, "sums-1", {})),
            (Messages{"info", "info", "info", "info"}));
  auto journal = sqlite::Sqlite::open((folder_.home / "controller.sqlite").string(),
                                      "ALTER TABLE events ADD COLUMN level TEXT");
  ASSERT_TRUE(journal.has_value());
  ASSERT_TRUE((*journal)->insert("INSERT INTO events VALUES(7,2,7000,'job','sums-1','x',?)",
                                 {{std::string("error")}}));
  EXPECT_EQ(levels(*announced_events(folder_.home, "sums-1", {})),
            (Messages{"info", "info", "info", "info", "error"}));
}

TEST_F(ClusterJournalTest, EachControllerHasAGreaterEpochAndGoesOnBehindTheEventsThatThereAre) {
  std::uint64_t epoch = 0;
  for (std::int64_t seq = 1; seq <= 3; ++seq) {
    auto journal = ClusterJournal::begin(folder_.home, 1000 * seq);
    ASSERT_TRUE(journal.has_value());
    EXPECT_GT(journal->epoch().value, epoch);
    EXPECT_EQ(journal->events_before(), seq - 1);
    epoch = journal->epoch().value;
    ASSERT_TRUE(journal->append({.seq = seq,
                                 .time_ms = 1000 * seq,
                                 .kind = "job",
                                 .subject = "sums-1",
                                 .message = "started",
                                 .level = messages::EventLevel::kWarning}));
  }
  EXPECT_EQ(kept({}), (Messages{"started", "started", "started"}));
}

TEST_F(ClusterJournalTest, AJournalOfAnEarlierVersionGetsItsLevelsFromTheNextControllerOn) {
  announce_all();
  auto journal = ClusterJournal::begin(folder_.home, 1000);
  ASSERT_TRUE(journal.has_value());
  EXPECT_EQ(journal->events_before(), 6);
  ASSERT_TRUE(journal->append({.seq = 7,
                               .time_ms = 7000,
                               .kind = "job",
                               .subject = "sums-1",
                               .message = "failed",
                               .level = messages::EventLevel::kError}));
  EXPECT_EQ(levels(*announced_events(folder_.home, "sums-1", {})),
            (Messages{"info", "info", "info", "info", "error"}));
}

TEST_F(ClusterJournalTest, OldEventsAndEpochsGo) {
  { ASSERT_TRUE(ClusterJournal::begin(folder_.home, 1)); }
  const std::string path = (folder_.home / "controller.sqlite").string();
  const auto numbered = [](const std::string& what, std::int64_t rows) {
    return "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < " +
           std::to_string(rows) + ") " + what + " FROM n";
  };
  auto database = sqlite::Sqlite::open(path, "");
  ASSERT_TRUE((*database)->run_script(
      numbered("INSERT INTO events SELECT i, 1, i, 'job', 'a-1', 'it', 'info'",
               kClusterEventsKept + 700) +
      ";" + numbered("INSERT INTO epochs SELECT i, i", kEpochsKept + 50)));
  const auto number = [&](const std::string& query) {
    std::int64_t found = -1;
    EXPECT_TRUE((*database)->query(
        query, [&](const sqlite::Sqlite::Row& row) { found = sqlite::number_of(row[0]); }));
    return found;
  };
  auto journal = ClusterJournal::begin(folder_.home, 2);
  ASSERT_TRUE(journal);
  EXPECT_EQ(journal->epoch().value, static_cast<std::uint64_t>(kEpochsKept + 51));
  EXPECT_EQ(number("SELECT count(*) FROM epochs"), kEpochsKept);
  EXPECT_EQ(number("SELECT count(*) FROM events"), kClusterEventsKept);
  EXPECT_EQ(number("SELECT max(seq) FROM events"), kClusterEventsKept + 700);
  for (int i = 0; i < 1500; ++i)
    ASSERT_TRUE(journal->append({.seq = 200'000 + i, .kind = "job", .subject = "a-1"}));
  EXPECT_LT(number("SELECT count(*) FROM events"), kClusterEventsKept + 1000);
}

}  // namespace
}  // namespace tandem::runs
