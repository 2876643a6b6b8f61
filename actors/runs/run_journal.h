// The journal of a run's exchange as a SQLite database (RUN_DIR/journal.sqlite): the one place that
// knows how an event is stored.
//
//   table events   a row per event, or for several events of one kind, in order: `body` is the
//                  encoded events, from which the program reads them; all other columns are for
//                  people (journal_rows.h)
//                  A row of the kind `archived` has the events of many rows before it, which are
//                  no rows any more: those that came first, beyond a limit
//   table images   one row: what all events up to row `seq` come to (run_image.h), for a reader
//                  that goes on with the run
//   view  journal  a row per event and, where one event is about many groups, per group: the
//                  columns that users' queries name (docs/design/contract.md)
//
//   JA-1  Archiving changes no event and not their order: read() gives the same before and after.
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
                                 std::uint64_t bytes_max = exchange::FileLimits{}.journal_bytes);
  // Whether open() would take the journal of a run that is to go on. Writes nothing.
  static Result<void> check(const std::string& run_dir);
  // Opens the journal for reading alone: nothing is written.
  static Result<RunJournal> open_to_read(const std::string& run_dir);

  // Archives the oldest rows where all that are not archived would have more than `bytes_max`.
  Result<void> append(std::span<const exchange::JournalEvent> events, std::int64_t time_ms,
                      sqlite::Durability durability);
  // Calls `take` with all events in order. kInvalid, with the event's number, for bytes that are no
  // event; those before it have been taken.
  Result<void> read(const std::function<void(const exchange::JournalEntry&)>& take) const;
  // Keeps an image of the run after all events that were appended, in place of the one before.
  Result<void> keep_image(const exchange::RunImage& image);
  // As read(), but with the kept image in place of the events before it: `begin` is called with it
  // first. Where there is none, or it is damaged, `take` is called with all events.
  Result<void> read_from_image(
      const std::function<void(const exchange::RunImage&)>& begin,
      const std::function<void(const exchange::JournalEntry&)>& take) const;
  // The events in one value of the column `body`, at least one.
  static Result<std::vector<exchange::JournalEvent>> events_in(const sqlite::Sqlite::Value& body);

 private:
  RunJournal(std::string path, std::unique_ptr<sqlite::Sqlite> database)
      : path_(std::move(path)), database_(std::move(database)) {}
  Result<void> archive();
  Result<void> count_bytes();

  // The events of the rows after `seq`.
  Result<void> read_after(std::int64_t seq,
                          const std::function<void(const exchange::JournalEntry&)>& take) const;

  std::string path_;
  std::unique_ptr<sqlite::Sqlite> database_;
  std::uint64_t bytes_max_ = 0;   // of rows that are not archived; a reader has none
  std::uint64_t bytes_ = 0;       // of them, about
  std::uint64_t archive_at_ = 0;  // bytes_ at which archiving is tried
  std::int64_t archived_to_ = 0;  // rows up to this one are archived, or stay as they are
  std::int64_t image_seq_ = 0;    // the row of the image; 0: there is none
  bool archives_ = false;         // and the log says so
};

}  // namespace tandem::runs
