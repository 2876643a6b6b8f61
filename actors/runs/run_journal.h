// The journal of a run's exchange as a SQLite database (RUN_DIR/journal.sqlite): the one place that
// knows how an event is stored.
//
//   table events   a row per event, or for several events of one kind, in order: `body` is the
//                  encoded events, from which the program reads them; all other columns are for
//                  people (journal_rows.h)
//                  A row of the kind `archived` has the events of many rows before it, which are
//                  no rows any more: those that came first, beyond a limit
//   table histories  one row: what the events up to row `seq` come to for a resume
//                  (group_history.h). The rows `archived` among them are removed: there is a
//                  second limit, for these. Of the others, which people see in lists, the newest
//                  stay (FileLimits::rows_for_people)
//   table images   one row: what all events up to row `seq` come to (run_image.h), for a reader
//                  that goes on with the run
//   view  journal  a row per event and, where one event is about many groups, per group: the
//                  columns that users' queries name (docs/design/contract.md)
//
//   JA-1  Archiving changes no event and not their order: read() gives the same before and after.
//   JA-2  Archiving and summing up do not change what history() says of the newest checkpoints.
//
// `PRAGMA user_version` is kJournalSchema. A journal of another schema is refused by name: an event
// of another version must not be taken for one of this.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "actors/exchange/file_limits.h"
#include "actors/exchange/group_history.h"
#include "actors/exchange/run_image.h"
#include "actors/exchange/run_record.h"
#include "actors/exchange/state/journal_event.h"
#include "runtime/sqlite/sqlite.h"

namespace tandem::runs {

// The kinds of events that are milestones of a run, as a list of SQL. An index of these alone finds
// them among any number of events about groups.
inline constexpr const char* kMilestoneKinds =
    "('phase','checkpoint','learner_restarted','resumed','evaluated','evaluation_incomplete',"
    "'samples_full','metrics_thinned','ended')";

// Owned by one exchange, or by one reader.
class RunJournal {
 public:
  // Opens or creates the journal of a run. Errors: kFailed for a file that cannot be opened,
  // kInvalid for another schema, both with the path.
  static Result<RunJournal> open(const std::string& run_dir,
                                 const exchange::FileLimits& limits = {});
  // Whether open() would take the journal of a run that is to go on. Writes nothing.
  static Result<void> check(const std::string& run_dir);
  // The number of the last row; 0: there is none, also where its writer died before it had made
  // the tables. Errors as those of check().
  static Result<std::int64_t> last_row_of(const std::string& run_dir);
  // Whether there are rows of an attempt before the newest. Reads the whole table.
  Result<bool> has_earlier_attempt() const;
  // Opens the journal for reading alone: nothing is written.
  static Result<RunJournal> open_to_read(const std::string& run_dir);

  // Archives the oldest rows where all that are not archived would have more than `journal_bytes`,
  // and sums up the oldest of the archived ones where these have more than `archive_bytes`.
  Result<void> append(std::span<const exchange::JournalEvent> events, std::int64_t time_ms,
                      sqlite::Durability durability);
  // Calls `take` with all events in order, but for those that are summed up. kInvalid, with the
  // event's number, for bytes that are no event; those before it have been taken.
  Result<void> read(const std::function<void(const exchange::JournalEntry&)>& take) const;
  // What all events come to, those that are summed up included.
  Result<exchange::GroupHistory> history() const;
  // Keeps an image of the run after all events that were appended, in place of the one before.
  Result<void> keep_image(const exchange::RunImage& image);
  // As read(), but with the kept image in place of the events before it: `begin` is called with it
  // first. Where there is none, or it is damaged, `take` is called with all events; kInvalid if
  // some of them are summed up.
  Result<void> read_from_image(
      const std::function<void(const exchange::RunImage&)>& begin,
      const std::function<void(const exchange::JournalEntry&)>& take) const;
  // The events in one value of the column `body`, at least one.
  static Result<std::vector<exchange::JournalEvent>> events_in(const sqlite::Sqlite::Value& body);

 private:
  RunJournal(std::string path, std::unique_ptr<sqlite::Sqlite> database)
      : path_(std::move(path)), database_(std::move(database)) {}
  Result<void> archive();
  Result<void> sum_up();
  Result<void> count_bytes();
  // What the events up to the row come to.
  Result<exchange::GroupHistory> history_to(std::int64_t seq) const;

  // The events of the rows after `first`, up to `last`.
  Result<void> read_rows(std::int64_t first, std::int64_t last,
                         const std::function<void(const exchange::JournalEntry&)>& take) const;

  std::string path_;
  std::unique_ptr<sqlite::Sqlite> database_;
  exchange::FileLimits limits_;       // a reader has none
  std::uint64_t bytes_ = 0;           // of them, about
  std::uint64_t archive_at_ = 0;      // bytes_ at which archiving is tried
  std::int64_t archived_to_ = 0;      // rows up to this one are archived, or stay as they are
  std::int64_t image_seq_ = 0;        // the row of the image; 0: there is none
  std::uint64_t archived_bytes_ = 0;  // of rows that are archived
  bool archives_ = false, sums_up_ = false, said_not_summed_ = false;  // in the log
};

}  // namespace tandem::runs
