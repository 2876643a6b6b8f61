#include "actors/runs/cluster_journal.h"

#include <utility>

#include "actors/runs/event_rows.h"
#include "runtime/base/log.h"

namespace tandem::runs {

namespace fs = std::filesystem;

namespace {

// AUTOINCREMENT never gives a number again, so that an epoch is greater than all earlier ones.
constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS epochs(epoch INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER);"
    "CREATE TABLE IF NOT EXISTS events(seq INTEGER, epoch INTEGER, time_ms INTEGER, kind TEXT, "
    "subject TEXT, message TEXT, level TEXT);"
    "CREATE INDEX IF NOT EXISTS events_by_subject ON events(subject);"
    "CREATE TABLE IF NOT EXISTS state(seq INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER, "
    "time_ms INTEGER, schema INTEGER, kind TEXT, subject TEXT, body BLOB)";
constexpr const char* kInsertState =
    "INSERT INTO state(epoch, time_ms, schema, kind, subject, body) VALUES(?,?,?,?,?,?)";

constexpr std::int64_t kDropEvery = 1000;  // events

fs::path file_in(const fs::path& home) { return home / "controller.sqlite"; }

// Whether the table `events` has the column `level`, which those of earlier versions lack.
Result<bool> has_levels(sqlite::Sqlite& database) {
  bool found = false;
  auto done = database.query("SELECT 1 FROM pragma_table_info('events') WHERE name = 'level'",
                             [&](const sqlite::Sqlite::Row&) { found = true; });
  if (!done) return done.error();
  return found;
}

}  // namespace

Result<ClusterJournal> ClusterJournal::begin(const fs::path& home, std::int64_t time_ms) {
  auto opened = sqlite::Sqlite::open(file_in(home).string(), kSchema);
  if (!opened) return opened.error();
  ClusterJournal journal(*std::move(opened));
  sqlite::Sqlite& database = *journal.database_;
  const auto levels = has_levels(database);
  if (!levels) return levels.error();
  if (!*levels)
    if (auto done = database.run_script("ALTER TABLE events ADD COLUMN level TEXT"); !done)
      return done.error();
  if (auto done = database.insert("INSERT INTO epochs(time_ms) VALUES(?)", {{time_ms}}); !done)
    return done.error();
  const auto done = database.query(
      "SELECT max(epoch), (SELECT coalesce(max(seq), 0) FROM events) FROM epochs",
      [&](const sqlite::Sqlite::Row& row) {
        journal.epoch_ = Epoch{static_cast<std::uint64_t>(sqlite::number_of(row[0]))};
        journal.events_before_ = sqlite::number_of(row[1]);
      });
  if (!done) return done.error();
  if (const auto dropped = journal.drop_old(); !dropped) return dropped.error();
  return journal;
}

Result<void> ClusterJournal::append(const ClusterEvent& event) {
  const auto done = database_->insert(
      "INSERT INTO events(seq, epoch, time_ms, kind, subject, message, level) "
      "VALUES(?,?,?,?,?,?,?)",
      {{event.seq, static_cast<std::int64_t>(epoch_.value), event.time_ms, event.kind,
        event.subject, event.message, std::string(name(event.level))}});
  if (done && ++appended_ >= kDropEvery)
    if (const auto dropped = drop_old();
        !dropped)  // the event is kept, and the next time tries again
      log::warn("event=old_events_not_dropped message=\"{}\"", dropped.error().message);
  return done;
}

// SQLite uses the room again for new rows, so that the file stays as large as it is.
Result<void> ClusterJournal::drop_old() {
  appended_ = 0;
  std::int64_t gone = 0;
  const auto counted = database_->query(
      "SELECT count(*) FROM events WHERE rowid <= (SELECT max(rowid) FROM events) - ?",
      [&](const sqlite::Sqlite::Row& row) { gone = sqlite::number_of(row[0]); },
      {kClusterEventsKept});
  if (!counted) return counted;
  if (gone > 0 && !std::exchange(dropped_, true))
    log::info("event=old_events_dropped count={} kept={}", gone, kClusterEventsKept);
  return database_->change(
      {{"DELETE FROM events WHERE rowid <= (SELECT max(rowid) FROM events) - ?",
        {kClusterEventsKept}},
       {"DELETE FROM epochs WHERE epoch <= (SELECT max(epoch) FROM epochs) - ?", {kEpochsKept}}});
}

Result<ClusterJournal::KeptState> ClusterJournal::state(std::int64_t schema) {
  KeptState kept;
  const auto done =
      database_->query("SELECT schema, kind, subject, body FROM state ORDER BY seq",
                       [&](const sqlite::Sqlite::Row& row) {
                         if (sqlite::number_of(row[0], -1) != schema) {
                           kept.other_schema = true;
                           return;
                         }
                         const auto* const body = std::get_if<sqlite::Sqlite::Blob>(&row[3]);
                         kept.rows.push_back({sqlite::text_of(row[1]), sqlite::text_of(row[2]),
                                              body ? body->bytes : ""});
                       });
  if (!done) return done.error();
  return kept;
}

Result<void> ClusterJournal::append(const std::vector<StateRow>& rows, std::int64_t schema,
                                    std::int64_t time_ms) {
  return database_->insert(kInsertState, values_of(rows, schema, time_ms),
                           sqlite::Durability::kPowerCut);
}

std::vector<sqlite::Sqlite::Row> ClusterJournal::values_of(const std::vector<StateRow>& rows,
                                                           std::int64_t schema,
                                                           std::int64_t time_ms) const {
  std::vector<sqlite::Sqlite::Row> values;
  for (const StateRow& row : rows)
    values.push_back({static_cast<std::int64_t>(epoch_.value), time_ms, schema, row.kind,
                      row.subject, sqlite::Sqlite::Blob{row.body}});
  return values;
}

Result<void> ClusterJournal::replace_state(const std::vector<StateRow>& rows, std::int64_t schema,
                                           std::int64_t time_ms) {
  std::int64_t last = 0;
  const auto found =
      database_->query("SELECT coalesce(max(seq), 0) FROM state",
                       [&](const sqlite::Sqlite::Row& row) { last = sqlite::number_of(row[0]); });
  if (!found) return found;
  std::vector<sqlite::Sqlite::Change> changes;
  for (sqlite::Sqlite::Row& values : values_of(rows, schema, time_ms))
    changes.push_back({kInsertState, std::move(values)});
  changes.push_back({"DELETE FROM state WHERE seq <= ? AND schema = ?", {last, schema}});
  return database_->change(changes);
}

Result<std::vector<ClusterEvent>> announced_events(const fs::path& home, const std::string& job,
                                                   const EventQuery& query) {
  std::vector<ClusterEvent> events;
  const auto database = open_if_there(file_in(home));
  if (!database) return database.error();
  if (!*database) return events;
  const auto levels = has_levels(**database);
  if (!levels) return levels.error();
  // '0' follows '/' in ASCII: the range is every subject that begins with "JOB/".
  const auto done = (*database)->query(
      "SELECT seq, time_ms, kind, subject, message, " + std::string(*levels ? "level" : "NULL") +
          " FROM events WHERE (subject = ? OR "
          "(subject > ? AND subject < ?)) AND seq > ?" +
          order_and_limit("rowid", query),
      [&](const sqlite::Sqlite::Row& row) {
        events.push_back({.seq = sqlite::number_of(row[0]),
                          .time_ms = sqlite::number_of(row[1]),
                          .kind = sqlite::text_of(row[2]),
                          .subject = sqlite::text_of(row[3]),
                          .message = sqlite::text_of(row[4]),
                          .level = messages::event_level(sqlite::text_of(row[5]))});
      },
      {job, job + "/", job + "0", query.since.value_or(-1)});
  if (!done) return done.error();
  put_in_order(events, query);
  return events;
}

}  // namespace tandem::runs
