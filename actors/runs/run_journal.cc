// Rows are appended, beyond a limit the oldest are packed into one (archive()), and beyond another
// the oldest of these are summed up (sum_up()). Nothing of this goes beyond the last image, since a
// controller that follows reads the image and the rows behind it.
#include "actors/runs/run_journal.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "actors/runs/journal_table.h"
#include "actors/runs/packed.h"
#include "runtime/base/digest.h"
#include "runtime/base/log.h"
#include "runtime/wire/codec.h"

namespace tandem::runs {
namespace {

constexpr const char* kFile = "/journal.sqlite";
// So much is packed at a time: it takes some 10 ms.
constexpr std::size_t kArchiveBytes = std::size_t{2} << 20, kArchiveRows = 2000;
// So many archived rows are summed up at a time.
constexpr int kSummedRows = 4;
constexpr int kArchiveLevel = 3;  // 9 takes four times as long for a tenth less
constexpr const char* kTables =
    "CREATE TABLE events(seq INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER, kind TEXT, "
    "group_id INTEGER, lease INTEGER, holder TEXT, step INTEGER, version INTEGER, "
    "position INTEGER, detail TEXT, groups_kind TEXT, groups TEXT, body BLOB);"
    "CREATE VIEW journal AS "
    "SELECT seq, time_ms, kind, group_id, lease, holder, step, version, position, detail "
    "FROM events WHERE kind IS NOT NULL "
    "UNION ALL "
    "SELECT e.seq, e.time_ms, e.groups_kind, "
    "iif(g.type = 'array', json_extract(g.value, '$[0]'), g.value), "
    "iif(e.kind IS NULL AND e.lease IS NOT NULL, e.lease, json_extract(g.value, '$[1]')), "
    "iif(e.kind IS NULL AND e.holder IS NOT NULL, e.holder, json_extract(g.value, '$[6]')), "
    "iif((e.kind IS NULL OR e.groups_kind = 'trained') AND e.step IS NOT NULL, e.step, "
    "json_extract(g.value, '$[2]')), "
    "iif((e.kind IS NULL OR e.groups_kind = 'trained') AND e.version IS NOT NULL, e.version, "
    "json_extract(g.value, '$[3]')), "
    "iif(e.kind IS NULL AND e.position IS NOT NULL, e.position, json_extract(g.value, '$[4]')), "
    "iif(e.kind IS NULL AND e.detail IS NOT NULL, e.detail, json_extract(g.value, '$[5]')) "
    "FROM events e, json_each(e.groups) g WHERE e.groups_kind IS NOT NULL;";
// The table and the indexes that journals of earlier versions lack.
constexpr const char* kLater =
    "CREATE INDEX IF NOT EXISTS archives ON events(seq) WHERE kind = 'archived';"
    "CREATE TABLE IF NOT EXISTS images(id INTEGER PRIMARY KEY CHECK(id = 1), seq INTEGER, "
    "checksum INTEGER, body BLOB, row_bytes INTEGER, archived_to INTEGER);"
    "CREATE TABLE IF NOT EXISTS histories(id INTEGER PRIMARY KEY CHECK(id = 1), seq INTEGER, "
    "checksum INTEGER, body BLOB)";
constexpr const char* kKeepImage =
    "INSERT OR REPLACE INTO images VALUES(1, (SELECT max(seq) FROM events), ?, ?, ?, ?)";
constexpr std::int64_t kLastRow = std::numeric_limits<std::int64_t>::max();
constexpr const char* kDamagedHelp = "restore the file, or begin a new run";

// The oldest rows that can become one, and what they are together.
struct Batch {
  std::int64_t first = 0, last = 0, rows = 0;
  std::int64_t read_to = 0;  // this row and those before it need not be looked at again
  std::optional<std::int64_t> step;
  std::uint64_t bytes = 0;
  std::string body;
};

std::string archived_text(const Batch& batch) {
  return "rows " + std::to_string(batch.first) + " to " + std::to_string(batch.last) +
         ": the program can read their events, and SQL no more (retention.journal_bytes)";
}

Result<std::int64_t> number_from(sqlite::Sqlite& database, const std::string& query) {
  std::int64_t number = 0;
  const auto asked = database.query(query, [&number](const sqlite::Sqlite::Row& row) {
    number = sqlite::number_of(row.front());
  });
  if (!asked) return asked.error();
  return number;
}

// Which schema the journal has; 0: it is empty.
Result<std::int64_t> schema_of(sqlite::Sqlite& database) {
  const auto version = number_from(database, "PRAGMA user_version");
  if (!version || *version > 0) return version;
  const auto tables = number_from(database, "SELECT count(*) FROM sqlite_master");
  if (!tables) return tables.error();
  return *tables > 0 ? 1 : 0;  // the first schema had no number
}

Error other_schema(const std::string& path, std::int64_t schema) {
  return {ErrorCode::kInvalid,
          "the run's journal has schema " + std::to_string(schema) +
              ", and this version of tandem reads schema " +
              std::to_string(exchange::kJournalSchema),
          path,
          "resume the run with the version of tandem that wrote it, or begin a new run from its "
          "checkpoint (model.path: RUN_DIR/checkpoints/step-N)"};
}

// Whether the journal is empty. kInvalid for another schema.
Result<bool> is_new(sqlite::Sqlite& database, const std::string& path) {
  const auto schema = schema_of(database);
  if (!schema) return schema.error();
  if (*schema != 0 && *schema != exchange::kJournalSchema) return other_schema(path, *schema);
  return *schema == 0;
}

}  // namespace

Result<void> RunJournal::check(const std::string& run_dir) {
  const std::string path = run_dir + kFile;
  const auto database = sqlite::Sqlite::open_to_read(path);
  if (!database) return database.error();
  if (const auto fine = is_new(**database, path); !fine) return fine.error();
  return {};
}

Result<RunJournal> RunJournal::open(const std::string& run_dir,
                                    const exchange::FileLimits& limits) {
  const std::string path = run_dir + kFile;
  auto database = sqlite::Sqlite::open(path, "");
  if (!database) return database.error();
  const auto empty = is_new(**database, path);
  if (!empty) return empty.error();
  if (*empty) {
    const std::string made = std::string("BEGIN IMMEDIATE;") + kTables +
                             "PRAGMA user_version = " + std::to_string(exchange::kJournalSchema) +
                             ";COMMIT";
    if (const auto done = (*database)->run_script(made); !done) return done.error();
  }
  // SQLite uses an index of some kinds only for a query of the very same ones.
  const std::string later =
      std::string(kLater) +
      ";DROP INDEX IF EXISTS milestones;"
      "CREATE INDEX IF NOT EXISTS milestones_2 ON events(kind) WHERE kind IN " +
      kMilestoneKinds;
  if (const auto made = (*database)->run_script(later); !made) return made.error();
  RunJournal journal(path, std::move(*database));
  journal.limits_ = limits;
  journal.archive_at_ = limits.journal_bytes;
  if (const auto counted = journal.count_bytes(); !counted) return counted.error();
  return journal;
}

Result<RunJournal> RunJournal::open_to_read(const std::string& run_dir) {
  const std::string path = run_dir + kFile;
  auto database = sqlite::Sqlite::open_to_read(path);
  if (!database) return database.error();
  const auto schema = schema_of(**database);
  if (!schema) return schema.error();
  if (*schema != exchange::kJournalSchema) return other_schema(path, *schema);
  return RunJournal(path, std::move(*database));
}

Result<void> RunJournal::append(std::span<const exchange::JournalEvent> events,
                                std::int64_t time_ms, sqlite::Durability durability) {
  const std::vector<sqlite::Sqlite::Row> rows = table_rows(events, time_ms);
  if (const auto written = database_->insert(kInsertEvent, rows, durability); !written)
    return written;
  for (const sqlite::Sqlite::Row& row : rows) bytes_ += bytes_of(row);
  if (bytes_ <= archive_at_) return {};
  const auto archived = archive();
  archive_at_ = archived ? limits_.journal_bytes : bytes_ + kArchiveBytes;
  // The events are kept, which is what counts; the file grows on until it works.
  if (!archived)
    log::warn("event=journal_not_archived file=\"{}\" message=\"{}\"", path_,
              archived.error().message);
  if (const auto summed = sum_up(); !summed && !std::exchange(said_not_summed_, true))
    log::warn("event=journal_not_summed_up file=\"{}\" message=\"{}\"", path_,
              summed.error().message);
  return {};
}

// Rows that stay before the last archived one do not count: they are few. The image has the count
// as of its row, so that only those after it are looked at.
Result<void> RunJournal::count_bytes() {
  std::int64_t counted_to = 0;
  const auto asked = database_->query(
      "SELECT seq, row_bytes, archived_to FROM images", [&](const sqlite::Sqlite::Row& row) {
        counted_to = image_seq_ = sqlite::number_of(row[0]);
        bytes_ = static_cast<std::uint64_t>(std::max(sqlite::number_of(row[1]), std::int64_t{0}));
        archived_to_ = sqlite::number_of(row[2]);
      });
  if (!asked) return asked;
  const auto packed_bytes = number_from(
      *database_, "SELECT coalesce(sum(length(body)), 0) FROM events WHERE kind = 'archived'");
  if (!packed_bytes) return packed_bytes.error();
  archived_bytes_ = static_cast<std::uint64_t>(*packed_bytes);
  if (counted_to == 0) {
    const auto archived =
        number_from(*database_, "SELECT coalesce(max(seq), 0) FROM events WHERE kind = 'archived'");
    if (!archived) return archived.error();
    counted_to = archived_to_ = *archived;
  }
  return database_->query(
      std::string("SELECT coalesce(sum(") + kRowBytes + "), 0) FROM events WHERE seq > ?",
      [this](const sqlite::Sqlite::Row& row) {
        bytes_ += static_cast<std::uint64_t>(sqlite::number_of(row.front()));
      },
      {counted_to});
}

// Packs the oldest rows, up to kArchiveBytes of events, into the first of them. Milestones and the
// rows about actors stay, since people see them in lists of events: such a row ends the batch.
// Nobody but the owner writes, so that a batch that was read is still there when it is replaced.
Result<void> RunJournal::archive() {
  Batch batch;
  std::optional<Error> damaged;
  bool ended = false;
  const std::uint64_t stays = limits_.journal_bytes / 4 * 3;
  const auto take = [&](const sqlite::Sqlite::Row& row) {
    if (ended || damaged) return;
    const std::int64_t seq = sqlite::number_of(row[0]);
    // What came after the image stays: a row that spans it could not be read from its midst.
    if (image_seq_ > 0 && seq > image_seq_) {
      ended = true;
      return;
    }
    const auto bytes = static_cast<std::uint64_t>(sqlite::number_of(row[4]));
    if (sqlite::number_of(row[1]) != 0) {
      ended = batch.rows > 0;
      if (ended) return;
      batch.read_to = seq;
      batch.bytes += bytes;
      return;
    }
    const auto* blob = std::get_if<sqlite::Sqlite::Blob>(&row[3]);
    auto events = unpacked(blob ? blob->bytes : "");
    if (!events) {
      damaged = events.error();
      return;
    }
    if (batch.rows++ == 0) batch.first = seq;
    batch.last = batch.read_to = seq;
    if (std::holds_alternative<std::int64_t>(row[2])) batch.step = sqlite::number_of(row[2]);
    batch.bytes += bytes;
    batch.body += *events;
    ended = batch.body.size() >= kArchiveBytes || batch.bytes >= bytes_ - stays;
  };
  const auto read = database_->query(
      std::string("SELECT seq, coalesce(kind, '') IN ") + kMilestoneKinds +
          " OR coalesce(kind, '') IN ('worker_up', 'learner_up', 'archived'), step, "
          "body, " +
          kRowBytes + " FROM events WHERE seq > ? ORDER BY seq LIMIT " +
          std::to_string(kArchiveRows),
      take, {archived_to_});
  if (!read) return read;
  if (damaged) return *damaged;
  const auto pass_by = [&] {
    archived_to_ = std::max(archived_to_, batch.read_to);
    bytes_ -= std::min(bytes_, batch.bytes);
  };
  if (batch.rows < 2) {
    pass_by();
    return {};
  }
  const auto step = batch.step ? sqlite::Sqlite::Value{*batch.step} : sqlite::Sqlite::Value{};
  std::string body = packed(std::move(batch.body), kArchiveLevel);
  const std::size_t body_bytes = body.size();
  const auto replaced = database_->change(
      {{"UPDATE images SET row_bytes = max(0, row_bytes - ?), archived_to = ?",
        {static_cast<std::int64_t>(batch.bytes), batch.read_to}},
       {"DELETE FROM events WHERE seq > ? AND seq <= ?", {batch.first, batch.last}},
       {"UPDATE events SET kind = 'archived', group_id = NULL, lease = NULL, holder = NULL, "
        "step = ?, version = NULL, position = NULL, detail = ?, groups_kind = NULL, groups = NULL, "
        "body = ? WHERE seq = ?",
        {step, archived_text(batch), sqlite::Sqlite::Blob{std::move(body)}, batch.first}}});
  if (!replaced) return replaced;
  pass_by();
  archived_bytes_ += body_bytes;
  if (!std::exchange(archives_, true))
    log::info("event=journal_archived file=\"{}\" rows={} limit={}", path_, batch.rows,
              limits_.journal_bytes);
  return {};
}

Result<std::vector<exchange::JournalEvent>> RunJournal::events_in(
    const sqlite::Sqlite::Value& body) {
  const auto* blob = std::get_if<sqlite::Sqlite::Blob>(&body);
  const auto bytes = unpacked(blob ? blob->bytes : "");
  if (!bytes) return bytes.error();
  auto events = events_of(*bytes);
  if (events.empty()) return Error{ErrorCode::kInvalid, "it holds no events"};
  return events;
}

namespace {

std::int64_t checksum_of(const std::string& bytes) {
  return static_cast<std::int64_t>(checksum64(std::as_bytes(std::span(bytes))));
}

// Of a row with its checksum first and its bytes second; nothing where it holds anything else.
template <class Image>
std::optional<Image> image_in(const sqlite::Sqlite::Row& row) {
  const auto* blob = std::get_if<sqlite::Sqlite::Blob>(&row[1]);
  if (!blob || sqlite::number_of(row[0]) != checksum_of(blob->bytes)) return std::nullopt;
  const auto bytes = unpacked(blob->bytes);
  if (!bytes) return std::nullopt;
  auto image = wire::decode<Image>(*bytes);
  return image ? std::optional(std::move(*image)) : std::nullopt;
}

}  // namespace

Result<void> RunJournal::keep_image(const exchange::RunImage& image) {
  std::string body = packed(wire::encode(image));
  const std::int64_t checksum = checksum_of(body);
  const auto kept =
      database_->insert(kKeepImage, {{checksum, sqlite::Sqlite::Blob{std::move(body)},
                                      static_cast<std::int64_t>(bytes_), archived_to_}});
  if (!kept) return kept;
  const auto last = number_from(*database_, "SELECT seq FROM images");
  if (!last) return last.error();
  image_seq_ = *last;
  return {};
}

namespace {

// Up to which row the journal is summed up; 0: it is not.
Result<std::int64_t> summed_to(sqlite::Sqlite& database) {
  const auto tables =
      number_from(database, "SELECT count(*) FROM sqlite_master WHERE name = 'histories'");
  if (!tables || *tables == 0) return tables;  // a journal of an earlier version
  return number_from(database, "SELECT coalesce(max(seq), 0) FROM histories");
}

}  // namespace

Result<exchange::GroupHistory> RunJournal::history_to(std::int64_t seq) const {
  const auto begin = summed_to(*database_);
  if (!begin) return begin.error();
  exchange::GroupHistory history;
  if (*begin > 0) {
    std::optional<exchange::HistoryImage> image;
    const auto asked = database_->query(
        "SELECT checksum, body FROM histories",
        [&](const sqlite::Sqlite::Row& row) { image = image_in<exchange::HistoryImage>(row); });
    if (!asked) return asked.error();
    if (!image)
      return Error{ErrorCode::kInvalid, "the sum of the journal's oldest events is damaged", path_,
                   kDamagedHelp};
    history = exchange::GroupHistory(*image);
  }
  const auto read = read_rows(
      *begin, seq, [&](const exchange::JournalEntry& entry) { history.take(entry.event); });
  if (!read) return read.error();
  return history;
}

Result<std::int64_t> RunJournal::last_row_of(const std::string& run_dir) {
  const std::string path = run_dir + kFile;
  const auto database = sqlite::Sqlite::open_to_read(path);
  if (!database) return database.error();
  const auto empty = is_new(**database, path);
  if (!empty) return empty.error();
  if (*empty) return 0;
  return number_from(**database, "SELECT coalesce(max(seq), 0) FROM events");
}

Result<bool> RunJournal::has_earlier_attempt() const {
  const auto before =
      number_from(*database_,
                  "SELECT count(*) FROM (SELECT 1 FROM events WHERE seq < "
                  "(SELECT coalesce(max(seq), 0) FROM events WHERE kind = 'began') LIMIT 1)");
  if (!before) return before.error();
  return *before > 0;
}

Result<exchange::GroupHistory> RunJournal::history() const { return history_to(kLastRow); }

// Rows that stay before the last one that is summed up are for people alone, and of many the oldest
// go. A query of one kind names all kinds of the index, which serves no other.
Result<void> RunJournal::sum_up() {
  std::int64_t last = 0;
  std::uint64_t bytes = 0;
  if (archived_bytes_ <= limits_.archive_bytes) return {};
  const auto asked = database_->query(
      "SELECT seq, length(body) FROM events WHERE kind = 'archived' ORDER BY seq LIMIT " +
          std::to_string(kSummedRows),
      [&](const sqlite::Sqlite::Row& row) {
        // Without an image those events are all that a controller has to follow the run.
        if (archived_bytes_ - bytes <= limits_.archive_bytes ||
            sqlite::number_of(row[0]) > image_seq_)
          return;
        last = sqlite::number_of(row[0]);
        bytes += static_cast<std::uint64_t>(sqlite::number_of(row[1]));
      });
  if (!asked || last == 0) return asked;
  const auto checkpoints =
      number_from(*database_, std::string("SELECT count(*) FROM events WHERE kind IN ") +
                                  kMilestoneKinds + " AND kind = 'checkpoint'");
  if (!checkpoints) return checkpoints.error();
  // Without so many nothing can be counted, and every group would stay.
  if (*checkpoints < static_cast<std::int64_t>(limits_.checkpoints)) return {};
  const auto resumed =
      number_from(*database_, "SELECT coalesce(min(step), " + std::to_string(kLastRow) +
                                  ") FROM events WHERE kind IN " + kMilestoneKinds +
                                  " AND kind = 'resumed' AND seq > " + std::to_string(last));
  if (!resumed) return resumed.error();
  auto history = history_to(last);
  if (!history) return history.error();
  history->sum_up(limits_.checkpoints, StepId{*resumed}, limits_.best);
  std::string body = packed(wire::encode(history->image()));
  const std::int64_t checksum = checksum_of(body);
  const auto changed = database_->change(
      {{"INSERT OR REPLACE INTO histories VALUES(1, ?, ?, ?)",
        {last, checksum, sqlite::Sqlite::Blob{std::move(body)}}},
       {"DELETE FROM events WHERE kind = 'archived' AND seq <= ?", {last}},
       // The newest checkpoints' rows stay: by their number it is decided whether to sum up.
       {std::string("DELETE FROM events WHERE seq <= (SELECT seq FROM events WHERE seq <= ? "
                    "ORDER BY seq DESC LIMIT 1 OFFSET ?) AND seq < (SELECT min(seq) FROM (SELECT "
                    "seq FROM events WHERE kind IN ") +
            kMilestoneKinds + " AND kind = 'checkpoint' ORDER BY seq DESC LIMIT ?))",
        {last, static_cast<std::int64_t>(limits_.rows_for_people),
         static_cast<std::int64_t>(limits_.checkpoints)}}});
  if (!changed) return changed;
  archived_bytes_ -= std::min(archived_bytes_, bytes);
  if (!std::exchange(sums_up_, true))
    log::info("event=journal_summed_up file=\"{}\" to_row={} limit={}", path_, last,
              limits_.archive_bytes);
  return {};
}

Result<void> RunJournal::read_from_image(
    const std::function<void(const exchange::RunImage&)>& begin,
    const std::function<void(const exchange::JournalEntry&)>& take) const {
  std::int64_t after = 0;
  const auto asked = database_->query("SELECT checksum, body, seq FROM images",
                                      [&](const sqlite::Sqlite::Row& row) {
                                        const auto image = image_in<exchange::RunImage>(row);
                                        if (!image || !can_be_restored(image->state)) return;
                                        after = sqlite::number_of(row[2]);
                                        begin(*image);
                                      });
  (void)asked;  // a journal of an earlier version has no such table
  const auto summed = summed_to(*database_);
  if (!summed) return summed.error();
  if (after < *summed)
    return Error{ErrorCode::kInvalid,
                 "the journal's image is damaged, and its events up to row " +
                     std::to_string(*summed) + " are summed up",
                 path_, "the run can be resumed from its last checkpoint"};
  return read_rows(after, kLastRow, take);
}

Result<void> RunJournal::read(
    const std::function<void(const exchange::JournalEntry&)>& take) const {
  const auto summed = summed_to(*database_);
  if (!summed) return summed.error();
  return read_rows(*summed, kLastRow, take);
}

Result<void> RunJournal::read_rows(
    std::int64_t first, std::int64_t last,
    const std::function<void(const exchange::JournalEntry&)>& take) const {
  std::optional<Error> damaged;
  const auto asked = database_->query(
      "SELECT seq, time_ms, body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq",
      [&](const sqlite::Sqlite::Row& row) {
        if (damaged) return;
        auto events = events_in(row[2]);
        if (!events) {
          damaged = Error{ErrorCode::kInvalid,
                          "row " + std::to_string(sqlite::number_of(row[0])) +
                              " of the journal is damaged: " + events.error().message,
                          path_, kDamagedHelp};
          return;
        }
        for (exchange::JournalEvent& event : *events)
          take({sqlite::number_of(row[1]), std::move(event)});
      },
      {first, last});
  if (!asked) return asked;
  if (damaged) return *damaged;
  return {};
}

}  // namespace tandem::runs
