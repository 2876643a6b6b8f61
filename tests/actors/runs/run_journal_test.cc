// The journal's file: every event comes back as it was, the view has the columns that users query,
// and a file of another schema, or a damaged one, is refused by name.
#include "actors/runs/run_journal.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "actors/exchange/journal_rows.h"
#include "runtime/base/rng.h"
#include "runtime/wire/codec.h"
#include "tests/actors/exchange/random_run.h"
#include "tests/actors/exchange/state/every_event.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

class RunJournalTest : public testing::Test {
 protected:
  RunJournalTest() { fs::create_directories(run_); }
  ~RunJournalTest() override { fs::remove_all(run_); }

  RunJournal open(std::uint64_t journal_bytes = exchange::FileLimits{}.journal_bytes,
                  std::uint64_t archive_bytes = exchange::FileLimits{}.archive_bytes) {
    auto journal = RunJournal::open(
        run_.string(), {.journal_bytes = journal_bytes, .archive_bytes = archive_bytes});
    EXPECT_TRUE(journal.has_value()) << journal.error().message;
    return std::move(*journal);
  }
  std::vector<sqlite::Sqlite::Row> rows(const std::string& query) {
    auto database = sqlite::Sqlite::open_to_read((run_ / "journal.sqlite").string());
    std::vector<sqlite::Sqlite::Row> found;
    const auto asked = (*database)->query(query, [&](const auto& row) { found.push_back(row); });
    EXPECT_TRUE(asked.has_value()) << asked.error().message;
    return found;
  }

  const fs::path run_ =
      fs::temp_directory_path() / ("tandem_run_journal_test." + std::to_string(::getpid()));
};

TEST_F(RunJournalTest, EveryEventComesBackAsItWas) {
  const std::vector<exchange::JournalEvent> events = exchange::every_event();
  std::set<std::size_t> kinds;
  for (const exchange::JournalEvent& event : events) kinds.insert(event.index());
  ASSERT_EQ(kinds.size(), std::variant_size_v<exchange::JournalEvent>) << "every_event() lacks one";
  ASSERT_TRUE(open().append(events, 1234, sqlite::Durability::kKill));
  std::size_t at = 0;
  const auto read = open().read([&](const exchange::JournalEntry& entry) {
    ASSERT_LT(at, events.size());
    EXPECT_EQ(entry.time_ms, 1234);
    EXPECT_EQ(wire::encode(entry.event), wire::encode(events[at])) << "event " << at;
    ++at;
  });
  EXPECT_TRUE(read.has_value());
  EXPECT_EQ(at, events.size());
}

sqlite::Sqlite::Value value_of(const std::optional<std::int64_t>& number) {
  return number ? sqlite::Sqlite::Value{*number} : sqlite::Sqlite::Value{};
}
sqlite::Sqlite::Value value_of(const std::string& text) {
  return text.empty() ? sqlite::Sqlite::Value{} : sqlite::Sqlite::Value{text};
}
sqlite::Sqlite::Row as_row(const exchange::JournalRow& row) {
  return {row.kind,           value_of(row.group),   value_of(row.lease),    value_of(row.holder),
          value_of(row.step), value_of(row.version), value_of(row.position), value_of(row.detail)};
}

TEST_F(RunJournalTest, TheViewHasTheRowsOfEveryEvent) {
  std::int64_t seq = 0;
  for (const exchange::JournalEvent& event : exchange::every_event()) {
    ASSERT_TRUE(open().append(std::span(&event, 1), 1, sqlite::Durability::kKill));
    ++seq;
    const exchange::JournalRows expected = rows_of(event);
    std::multiset<sqlite::Sqlite::Row> wanted, found;
    if (!expected.of_event.kind.empty()) wanted.insert(as_row(expected.of_event));
    for (const exchange::JournalRow& row : expected.of_groups) wanted.insert(as_row(row));
    for (const sqlite::Sqlite::Row& row :
         rows("SELECT kind, group_id, lease, holder, step, version, position, detail FROM journal "
              "WHERE seq = " +
              std::to_string(seq)))
      found.insert(row);
    EXPECT_EQ(found, wanted) << "event " << event.index();
    EXPECT_FALSE(wanted.empty()) << "an event that nobody can see: " << event.index();
  }
}

// README's query: one row for each group, its last among admitted, trained and discarded.
TEST_F(RunJournalTest, TheLastRowOfAGroupTellsWhatBecameOfIt) {
  const auto admitted = [](std::uint64_t group) {
    return exchange::GroupAdmitted{.group = GroupId{group}, .position = 0, .slot = {}};
  };
  const std::vector<exchange::JournalEvent> events = {
      admitted(1),
      admitted(2),
      admitted(3),
      admitted(4),
      exchange::BatchFormed{StepId{0}, {GroupId{1}, GroupId{2}}},
      exchange::StepTrained{
          .step = StepId{0}, .groups = {GroupId{1}, GroupId{2}}, .publication = {}},
      exchange::GroupDiscarded{GroupId{3}, scheduler::DiscardReason::kZeroVariance},
      exchange::LiveDiscarded{scheduler::DiscardReason::kCancelled, {GroupId{4}}},
      exchange::RunResumed{
          .checkpoint = StepId{1},
          .groups = {{.group = GroupId{4}, .position = 3, .slot = {}, .discarded = {}}}},
      exchange::StepTrained{.step = StepId{1}, .groups = {GroupId{4}}, .publication = {}}};
  ASSERT_TRUE(open().append(events, 1, sqlite::Durability::kKill));
  const auto counts = rows(
      "select kind, count(*) from (select kind, max(seq) from journal where kind in ('admitted', "
      "'trained', 'discarded') group by group_id) group by kind order by kind");
  const std::vector<sqlite::Sqlite::Row> wanted = {{std::string("discarded"), std::int64_t{1}},
                                                   {std::string("trained"), std::int64_t{3}}};
  EXPECT_EQ(counts, wanted);
}

TEST_F(RunJournalTest, AJournalOfAnotherSchemaIsRefusedByName) {
  const std::string path = (run_ / "journal.sqlite").string();
  ASSERT_TRUE(
      sqlite::Sqlite::open(path, "CREATE TABLE journal(seq INTEGER, kind TEXT)").has_value());
  for (const auto& refused :
       {RunJournal::open(run_.string()), RunJournal::open_to_read(run_.string())}) {
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_NE(refused.error().message.find("schema 1"), std::string::npos);
    EXPECT_EQ(refused.error().where, path);
    EXPECT_EQ(RunJournal::check(run_.string()).error().message, refused.error().message);
    EXPECT_EQ(RunJournal::last_row_of(run_.string()).error().message, refused.error().message);
  }
  EXPECT_EQ(rows("SELECT name FROM sqlite_master").size(), 1u)
      << "a refused journal is not touched";
}

// A run whose writer died before it had made the tables can be resumed as any other.
TEST_F(RunJournalTest, AnEmptyFileIsAJournalWithoutRows) {
  std::ofstream(run_ / "journal.sqlite").close();
  EXPECT_TRUE(RunJournal::check(run_.string()));
  EXPECT_EQ(RunJournal::last_row_of(run_.string()).value(), 0);
}

// Steps of a trip that many groups take at one moment, by several holders.
std::vector<exchange::JournalEvent> trips(std::uint64_t first, std::uint64_t groups) {
  const ActorId holders[] = {{"job-1/rollout/0", Incarnation{3}},
                             {"job-1/rollout/1", Incarnation{4}}};
  std::vector<exchange::JournalEvent> events;
  for (std::uint64_t g = first; g < first + groups; ++g)
    events.push_back(exchange::GroupAdmitted{GroupId{g}, static_cast<std::int64_t>(g), {}});
  for (std::uint64_t g = first; g < first + groups; ++g)
    events.push_back(exchange::RolloutLeased{GroupId{g}, scheduler::LeaseId{g + 100},
                                             holders[g % 2], PolicyVersion{7}});
  for (std::uint64_t g = first; g < first + groups; ++g) {
    messages::GroupHeader header{.group = GroupId{g},
                                 .attempt = static_cast<std::uint32_t>(g) + 100};
    header.payload = {
        .node = "job-1", .segment = 1, .offset = g * 400, .bytes = 400, .checksum = g * g};
    header.trajectories.assign(8, {.oldest = {7}, .newest = {7}, .completion_tokens = 4});
    events.push_back(exchange::GroupGenerated{holders[g % 2], std::move(header)});
  }
  for (std::uint64_t g = first; g < first + groups; ++g)
    events.push_back(exchange::GroupHandedBack{GroupId{g}, scheduler::LeaseId{g}, holders[0],
                                               "said \"no\" to " + std::to_string(g)});
  return events;
}

// Groups that take a step together share a row of the table, and the view shows each as alone.
TEST_F(RunJournalTest, GroupsThatTakeAStepTogetherAreStoredTogether) {
  const std::vector<exchange::JournalEvent> events = trips(1, 64);
  ASSERT_TRUE(open().append(events, 5, sqlite::Durability::kKill));
  EXPECT_EQ(rows("SELECT seq FROM events").size(), 4u) << "one for each step of the trip";
  std::multiset<sqlite::Sqlite::Row> wanted, found;
  for (const exchange::JournalEvent& event : events) wanted.insert(as_row(rows_of(event).of_event));
  for (const sqlite::Sqlite::Row& row :
       rows("SELECT kind, group_id, lease, holder, step, version, position, detail FROM journal"))
    found.insert(row);
  EXPECT_EQ(found, wanted);
  std::size_t at = 0;
  ASSERT_TRUE(open().read([&](const exchange::JournalEntry& entry) {
    ASSERT_LT(at, events.size());
    EXPECT_EQ(wire::encode(entry.event), wire::encode(events[at])) << "event " << at;
    ++at;
  }));
  EXPECT_EQ(at, events.size());
}

TEST_F(RunJournalTest, AGroupsTripTakesFewBytes) {
  RunJournal journal = open();
  const auto size = [&] {
    return rows("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()");
  };
  for (std::uint64_t batch = 0; batch < 50; ++batch)
    ASSERT_TRUE(journal.append(trips(1 + batch * 64, 64), 5, sqlite::Durability::kKill));
  EXPECT_LT(std::get<std::int64_t>(size()[0][0]) / (50 * 64), 300) << "bytes of a group";
}

TEST_F(RunJournalTest, ADamagedEventIsAnErrorWithItsNumber) {
  ASSERT_TRUE(open().append(exchange::every_event(), 1, sqlite::Durability::kKill));
  ASSERT_TRUE(sqlite::Sqlite::open((run_ / "journal.sqlite").string(),
                                   "UPDATE events SET body = x'c1' WHERE seq = 3")
                  .has_value());
  int taken = 0;
  const auto read = open().read([&](const exchange::JournalEntry&) { ++taken; });
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("row 3 of the journal is damaged"), std::string::npos)
      << read.error().message;
  EXPECT_EQ(taken, 2);
}

// What read_from_image() gives of the journal: the position in the kept image, and the events after
// it.
struct Rest {
  std::optional<std::int64_t> image;
  std::size_t events = 0;
};
Rest rest_of(const RunJournal& journal) {
  Rest rest;
  const auto read = journal.read_from_image(
      [&rest](const exchange::RunImage& image) { rest.image = image.state.position_next; },
      [&rest](const exchange::JournalEntry&) { ++rest.events; });
  EXPECT_TRUE(read.has_value());
  return rest;
}

// A reader that goes on with a run reads what came after the image alone, however long the run is.
TEST_F(RunJournalTest, AnImageStandsForTheEventsBeforeIt) {
  RunJournal journal = open();
  EXPECT_EQ(rest_of(journal).events, 0u);
  for (std::int64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(journal.append(trips(100 * i, 10), i, sqlite::Durability::kKill));
    EXPECT_EQ(rest_of(journal).events, i == 1 ? 40u : 80u) << "since the image before";
    ASSERT_TRUE(journal.append(trips(100 * i + 10, 10), i, sqlite::Durability::kKill));
    exchange::RunImage image;
    image.state.position_next = i;
    ASSERT_TRUE(journal.keep_image(image));
    EXPECT_EQ(rest_of(journal).image, i);
    EXPECT_EQ(rest_of(journal).events, 0u);
    ASSERT_TRUE(journal.append(trips(100 * i + 20, 10), i, sqlite::Durability::kKill));
  }
  EXPECT_EQ(rows("SELECT seq FROM images").size(), 1u);
  std::size_t all = 0;
  ASSERT_TRUE(journal.read([&all](const exchange::JournalEntry&) { ++all; }));
  EXPECT_EQ(all, 600u) << "for all other readers they are there";
}

// Archived rows may span the row of the image, which then would not stand for all of their events.
TEST_F(RunJournalTest, AnImageAndAnArchiveTogetherLoseNoEvent) {
  std::size_t appended = 0;
  for (std::int64_t i = 1; i <= 60; ++i) {
    auto journal = RunJournal::open(run_.string(), {.journal_bytes = 60'000});
    ASSERT_TRUE(journal);
    const auto events = trips(static_cast<std::uint64_t>(100 * i), 16);
    ASSERT_TRUE(journal->append(events, i, sqlite::Durability::kKill));
    appended += events.size();
    exchange::RunImage image;
    image.state.position_next = static_cast<std::int64_t>(appended);
    if (i % 7 == 0) {
      ASSERT_TRUE(journal->keep_image(image));
    }
    const Rest rest = rest_of(*journal);
    ASSERT_EQ(static_cast<std::size_t>(rest.image.value_or(0)) + rest.events, appended) << i;
    EXPECT_EQ(rest.image.has_value(), i >= 7) << "it stays";
  }
  EXPECT_FALSE(rows("SELECT seq FROM events WHERE kind = 'archived'").empty());
}

TEST_F(RunJournalTest, WithoutAWholeImageAllEventsAreRead) {
  ASSERT_TRUE(open().append(trips(1, 10), 1, sqlite::Durability::kKill));
  ASSERT_TRUE(open().keep_image({}));
  const std::string path = (run_ / "journal.sqlite").string();
  for (const char* damage :
       {"UPDATE images SET body = substr(body, 2)", "UPDATE images SET body = 7",
        "UPDATE images SET checksum = checksum + 1", "DELETE FROM images", "DROP TABLE images"}) {
    ASSERT_TRUE((*sqlite::Sqlite::open(path, ""))->run_script(damage).has_value());
    auto journal = RunJournal::open_to_read(run_.string());
    ASSERT_TRUE(journal.has_value());
    EXPECT_FALSE(rest_of(*journal).image) << damage;
    EXPECT_EQ(rest_of(*journal).events, 40u) << damage;
  }
}

// JA-2, over many starts of the writer. The archive has its limit, and little else is added.
TEST_F(RunJournalTest, WhatIsSummedUpIsMissedByNoResume) {
  constexpr std::uint64_t kArchiveBytes = 20'000;
  for (const bool fixed_lag : {false, true}) {
    fs::remove_all(run_);
    fs::create_directories(run_);
    // Five checkpoints are there, more than a resume is promised: it may go back to each for which
    // the journal still has all.
    exchange::RandomRun run(7, fixed_lag, 5);
    std::uint64_t most = 0;
    std::int64_t summed_to = 0;
    for (int start = 0; start < 8; ++start) {
      RunJournal journal = open(8'000, kArchiveBytes);
      for (int i = 0; i < 100; ++i) {
        const auto last = rows("SELECT coalesce(max(seq), 0) FROM histories").at(0);
        const std::int64_t now = sqlite::number_of(last[0]);
        if (now != summed_to) run.not_before(journal.history()->from());  // else as before
        summed_to = now;
        ASSERT_TRUE(journal.append(run.next(), i, sqlite::Durability::kKill));
        if (i % 5 == 0) {
          ASSERT_TRUE(journal.keep_image({}));
        }
      }
      const auto archived = rows("SELECT sum(length(body)) FROM events WHERE kind = 'archived'");
      most = std::max(most, static_cast<std::uint64_t>(sqlite::number_of(archived[0][0])));
      const auto history = RunJournal::open_to_read(run_.string())->history();
      ASSERT_TRUE(history) << history.error().message;
      run.not_before(history->from());
      ASSERT_FALSE(run.checkpoints().empty());
      for (const StepId checkpoint : run.checkpoints())
        ASSERT_EQ(wire::encode(history->resumed(checkpoint, run.budget(), fixed_lag)),
                  wire::encode(run.whole().resumed(checkpoint, run.budget(), fixed_lag)))
            << "start " << start;
    }
    const auto summed = rows("SELECT seq, length(body) FROM histories");
    ASSERT_EQ(summed.size(), 1u);
    EXPECT_GT(sqlite::number_of(summed[0][0]), 1000);
    EXPECT_LT(sqlite::number_of(summed[0][1]), 20'000);
    EXPECT_GT(most, kArchiveBytes / 2);
    EXPECT_LT(most, kArchiveBytes * 3 / 2);
    // People's list of events is whole.
    EXPECT_GT(rows("SELECT seq FROM journal WHERE kind = 'checkpoint'").size(), 150u);
  }
}

// JA-2, where rows about checkpoints and the like go as well: they are for people.
TEST_F(RunJournalTest, OfTheRowsBeforeTheSumTheNewestStay) {
  constexpr std::size_t kRows = 20;
  exchange::RandomRun run(5, false);
  for (int start = 0; start < 4; ++start) {
    auto journal = RunJournal::open(
        run_.string(), {.journal_bytes = 8'000, .archive_bytes = 20'000, .rows_for_people = kRows});
    ASSERT_TRUE(journal.has_value());
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(journal->append(run.next(), i, sqlite::Durability::kKill));
      if (i % 5 == 0) {
        ASSERT_TRUE(journal->keep_image({}));
      }
    }
    const auto history = journal->history();
    ASSERT_TRUE(history) << history.error().message;
    for (const StepId checkpoint : run.checkpoints())
      ASSERT_EQ(wire::encode(history->resumed(checkpoint, run.budget(), false)),
                wire::encode(run.whole().resumed(checkpoint, run.budget(), false)))
          << "start " << start;
  }
  EXPECT_EQ(rows("SELECT seq FROM events WHERE seq <= (SELECT seq FROM histories)").size(), kRows);
  EXPECT_GE(rows("SELECT seq FROM journal WHERE kind = 'checkpoint'").size(), 2u);
}

TEST_F(RunJournalTest, WhatIsSummedUpIsReadWholeOrNotAtAll) {
  exchange::RandomRun run(3, false);
  {
    RunJournal journal = open(8'000, 10'000);
    for (int i = 0; i < 600; ++i) {
      ASSERT_TRUE(journal.append(run.next(), i, sqlite::Durability::kKill));
      if (i % 5 == 0) {
        ASSERT_TRUE(journal.keep_image({}));
      }
    }
  }
  ASSERT_EQ(rows("SELECT seq FROM histories").size(), 1u);
  auto journal = RunJournal::open_to_read(run_.string());
  std::size_t all = 0;
  ASSERT_TRUE(journal->read([&all](const exchange::JournalEntry&) { ++all; }));
  EXPECT_TRUE(rest_of(*journal).image.has_value());
  const std::string path = (run_ / "journal.sqlite").string();
  const auto damage = [&](const char* script) {
    ASSERT_TRUE((*sqlite::Sqlite::open(path, ""))->run_script(script).has_value()) << script;
  };
  damage("UPDATE images SET checksum = checksum + 1");
  const auto follows = journal->read_from_image(
      [](const exchange::RunImage&) { ADD_FAILURE() << "the image is damaged"; },
      [](const exchange::JournalEntry&) { ADD_FAILURE() << "it follows on nothing"; });
  ASSERT_FALSE(follows);
  EXPECT_EQ(follows.error().code, ErrorCode::kInvalid);
  EXPECT_NE(follows.error().message.find("are summed up"), std::string::npos);
  EXPECT_TRUE(journal->history()) << "a resume needs no image";
  for (const char* script :
       {"UPDATE histories SET body = substr(body, 2)", "UPDATE histories SET body = 7",
        "UPDATE histories SET checksum = checksum + 1"}) {
    damage(script);
    const auto history = journal->history();
    ASSERT_FALSE(history) << script;
    EXPECT_EQ(history.error().code, ErrorCode::kInvalid);
  }
}

// JA-1, whatever the order of the events, over many starts of the writer.
TEST_F(RunJournalTest, ArchivedRowsKeepTheirEventsInOrder) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  const std::vector<exchange::JournalEvent> kinds = exchange::every_event();
  std::string written;
  std::int64_t milestones = 0;
  for (int start = 0; start < 4; ++start) {
    RunJournal journal = open(40'000);
    for (int i = 0; i < 300; ++i) {
      std::vector<exchange::JournalEvent> events;
      for (std::uint64_t n = 1 + rng.below(8); n > 0; --n) {
        events.push_back(kinds[rng.below(kinds.size())]);
        written += wire::encode(events.back());
        milestones += std::holds_alternative<exchange::EvaluationEnded>(events.back()) ? 1 : 0;
      }
      ASSERT_TRUE(journal.append(events, 1000 + i, sqlite::Durability::kKill));
    }
  }
  std::string read;
  const auto done =
      RunJournal::open_to_read(run_.string())->read([&](const exchange::JournalEntry& entry) {
        read += wire::encode(entry.event);
      });
  EXPECT_TRUE(done.has_value());
  EXPECT_TRUE(read == written);
  EXPECT_GT(rows("SELECT seq FROM journal WHERE kind = 'archived'").size(), 10u);
  EXPECT_LT(rows("SELECT seq FROM journal WHERE kind = 'admitted'").size(), 300u);
  // People's list of events is whole.
  EXPECT_EQ(std::ssize(rows("SELECT seq FROM journal WHERE kind = 'evaluated'")), milestones);
  const auto bytes = rows(
      "SELECT sum(length(body) + coalesce(length(groups), 0)) FROM events WHERE kind IS NOT "
      "'archived' AND coalesce(kind, '') NOT IN " +
      std::string(kMilestoneKinds));
  EXPECT_LT(sqlite::number_of(bytes.front().front()), 40'000);
}

// The sum of bytes by which it is decided does not run away: each archived row has many.
TEST_F(RunJournalTest, ArchivedRowsAreFewHoweverLongTheRun) {
  RunJournal journal = open(40'000);
  for (std::uint64_t i = 1; i <= 3000; ++i) {
    const exchange::JournalEvent event = exchange::LeaseReleased{
        GroupId{i}, {"a-job-with-a-long-name-" + std::string(60, 'x') + "/rollout/0", {3}}};
    ASSERT_TRUE(journal.append(std::span(&event, 1), 1, sqlite::Durability::kKill));
  }
  const std::size_t archived = rows("SELECT seq FROM journal WHERE kind = 'archived'").size();
  EXPECT_GT(archived, 5u);
  EXPECT_LT(archived, 80u);
}

TEST_F(RunJournalTest, RowsThatCannotBeArchivedStayAndTheRunGoesOn) {
  const exchange::JournalEvent event = exchange::LeaseExpired{GroupId{1}};
  RunJournal journal = open(2000);
  ASSERT_TRUE(journal.append(std::span(&event, 1), 1, sqlite::Durability::kKill));
  auto database = sqlite::Sqlite::open((run_ / "journal.sqlite").string(), "");
  ASSERT_TRUE((*database)->run_script("UPDATE events SET body = x'28b52ffd00'"));
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(journal.append(std::span(&event, 1), 1, sqlite::Durability::kKill));
  EXPECT_EQ(rows("SELECT seq FROM journal WHERE kind = 'archived'").size(), 0u);
  EXPECT_EQ(rows("SELECT seq FROM journal").size(), 201u);
}

}  // namespace
}  // namespace tandem::runs
