// A row of the table is one event, or several of one kind that follow each other in one append and
// are each about one group: 64 groups that are admitted at once are one row to write, not 64, and
// the encoded events are packed together. The columns of the groups are a JSON list in that row, of
// which the view makes rows. An item is the group's number, or a list [group, lease, step, version,
// position, detail, holder] without the nulls at its end; a column that all groups have in common
// stands in the row instead.
#include "actors/runs/run_journal.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/exchange/journal_rows.h"
#include "actors/runs/packed.h"
#include "runtime/base/digest.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/wire/codec.h"

namespace tandem::runs {
namespace {

constexpr const char* kFile = "/journal.sqlite";
constexpr std::size_t kGroupsPerRow = 1024;
// So much is packed at a time: it takes some 10 ms.
constexpr std::size_t kArchiveBytes = std::size_t{2} << 20, kArchiveRows = 2000;
// So many archived rows are summed up at a time.
constexpr int kSummedRows = 4;
// About the bytes that a row takes in the file.
constexpr const char* kRowBytes =
    "40 + length(body) + coalesce(length(CAST(groups AS BLOB)), 0) + "
    "coalesce(length(CAST(detail AS BLOB)), 0)";
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
constexpr const char* kInsert =
    "INSERT INTO events(time_ms, kind, group_id, lease, holder, step, version, position, detail, "
    "groups_kind, groups, body) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)";

sqlite::Sqlite::Value value_of(const std::optional<std::int64_t>& number) {
  return number ? sqlite::Sqlite::Value{*number} : sqlite::Sqlite::Value{};
}

sqlite::Sqlite::Value value_of(const std::string& text) {
  return text.empty() ? sqlite::Sqlite::Value{} : sqlite::Sqlite::Value{text};
}

nlohmann::json json_of(const std::optional<std::int64_t>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json();
}

nlohmann::json json_of(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

// The value that all rows have in one of the columns; an empty value where they differ.
template <class Column>
Column in_common(const std::vector<exchange::JournalRow>& rows,
                 Column exchange::JournalRow::*column) {
  const bool equal = std::ranges::all_of(
      rows, [&](const exchange::JournalRow& row) { return row.*column == rows.front().*column; });
  return equal ? rows.front().*column : Column{};
}

exchange::JournalRow in_common(const std::vector<exchange::JournalRow>& rows) {
  return {.kind = {},
          .group = {},
          .lease = in_common(rows, &exchange::JournalRow::lease),
          .holder = in_common(rows, &exchange::JournalRow::holder),
          .step = in_common(rows, &exchange::JournalRow::step),
          .version = in_common(rows, &exchange::JournalRow::version),
          .position = in_common(rows, &exchange::JournalRow::position),
          .detail = in_common(rows, &exchange::JournalRow::detail)};
}

// The list of the groups, without the columns that stand in their row already.
std::string list_of(const std::vector<exchange::JournalRow>& groups,
                    const exchange::JournalRow& common) {
  nlohmann::json list = nlohmann::json::array();
  for (const exchange::JournalRow& row : groups) {
    nlohmann::json item{json_of(row.group),
                        common.lease ? nlohmann::json() : json_of(row.lease),
                        common.step ? nlohmann::json() : json_of(row.step),
                        common.version ? nlohmann::json() : json_of(row.version),
                        common.position ? nlohmann::json() : json_of(row.position),
                        common.detail.empty() ? json_of(row.detail) : nlohmann::json(),
                        common.holder.empty() ? json_of(row.holder) : nlohmann::json()};
    while (item.size() > 1 && item.back().is_null()) item.erase(item.size() - 1);
    list.push_back(item.size() > 1 ? std::move(item) : std::move(item.front()));
  }
  return dump_json(list);
}

// A row of the table while events are gathered for it.
struct Gathered {
  exchange::JournalRow own;  // the event's row; without a kind it has its groups' columns
  std::vector<exchange::JournalRow> groups;  // rows of one kind
  std::string body;
};

// Events stand in a body one behind the other, each after its length as four bytes, the lowest
// first.
void add_to_body(std::string& body, const exchange::JournalEvent& event) {
  const std::string bytes = wire::encode(event);
  for (int shift = 0; shift < 32; shift += 8)
    body += static_cast<char>(bytes.size() >> shift & 0xff);
  body += bytes;
}

// The events of a body; empty where it holds anything else.
std::vector<exchange::JournalEvent> events_of(std::string_view body) {
  std::vector<exchange::JournalEvent> events;
  while (body.size() > 4) {
    std::size_t size = 0;
    for (int i = 3; i >= 0; --i) size = size << 8 | static_cast<unsigned char>(body[i]);
    body.remove_prefix(4);
    if (size > body.size()) return {};
    auto event = wire::decode<exchange::JournalEvent>(std::string(body.substr(0, size)));
    if (!event) return {};
    events.push_back(std::move(*event));
    body.remove_prefix(size);
  }
  return body.empty() ? std::move(events) : std::vector<exchange::JournalEvent>{};
}

std::vector<Gathered> gather(std::span<const exchange::JournalEvent> events) {
  std::vector<Gathered> rows;
  for (const exchange::JournalEvent& event : events) {
    exchange::JournalRows columns = rows_of(event);
    const bool of_one_group = columns.of_groups.empty() && columns.of_event.group;
    const bool goes_on = of_one_group && !rows.empty() && rows.back().own.kind.empty() &&
                         rows.back().groups.back().kind == columns.of_event.kind &&
                         rows.back().groups.size() < kGroupsPerRow;
    if (goes_on) {
      rows.back().groups.push_back(std::move(columns.of_event));
    } else if (of_one_group) {
      rows.push_back({.own = {}, .groups = {std::move(columns.of_event)}, .body = {}});
    } else {
      rows.push_back(
          {.own = std::move(columns.of_event), .groups = std::move(columns.of_groups), .body = {}});
    }
    add_to_body(rows.back().body, event);
  }
  return rows;
}

sqlite::Sqlite::Row row_of(Gathered gathered, std::int64_t time_ms) {
  const auto& groups = gathered.groups;
  const bool own = !gathered.own.kind.empty();
  sqlite::Sqlite::Value kind, list;
  exchange::JournalRow common = gathered.own;
  if (!groups.empty()) {
    kind = groups.front().kind;
    if (!own) common = in_common(groups);
    // Beside an event's own columns its groups keep theirs, but for those that the view shares.
    exchange::JournalRow shared = own ? exchange::JournalRow{} : common;
    if (own && groups.front().kind == "trained") {
      shared.step = common.step;
      shared.version = common.version;
    }
    list = list_of(groups, shared);
  }
  return {time_ms,
          value_of(gathered.own.kind),
          own ? value_of(common.group) : sqlite::Sqlite::Value{},
          value_of(common.lease),
          value_of(common.holder),
          value_of(common.step),
          value_of(common.version),
          value_of(common.position),
          value_of(common.detail),
          std::move(kind),
          std::move(list),
          sqlite::Sqlite::Blob{packed(std::move(gathered.body))}};
}

// As kRowBytes. What is added for a row must be what is taken off when it is archived, or the sum
// would run away.
std::uint64_t bytes_of(const sqlite::Sqlite::Row& row) {
  std::uint64_t bytes = 40;
  for (const std::size_t column : {8, 10}) bytes += sqlite::text_of(row[column]).size();
  return bytes + std::get<sqlite::Sqlite::Blob>(row[11]).bytes.size();
}

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

Result<std::int64_t> number_from(sqlite::Sqlite& database, const char* query) {
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
  std::vector<sqlite::Sqlite::Row> rows;
  for (Gathered& gathered : gather(events)) {
    rows.push_back(row_of(std::move(gathered), time_ms));
    bytes_ += bytes_of(rows.back());
  }
  if (const auto written = database_->insert(kInsert, rows, durability); !written) return written;
  if (bytes_ <= archive_at_) return {};
  auto archived = archive();
  if (archived) archived = sum_up();
  archive_at_ = archived ? limits_.journal_bytes : bytes_ + kArchiveBytes;
  // The events are kept, which is what counts; the file grows on until it works.
  if (!archived)
    log::warn("event=journal_not_archived file=\"{}\" message=\"{}\"", path_,
              archived.error().message);
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
  const auto step = value_of(batch.step);
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

Result<exchange::GroupHistory> RunJournal::history() const { return history_to(kLastRow); }

// Rows that stay before the last one that is summed up are for people alone.
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
  auto history = history_to(last);
  if (!history) return history.error();
  history->sum_up(limits_.checkpoints);
  std::string body = packed(wire::encode(history->image()));
  const std::int64_t checksum = checksum_of(body);
  const auto changed =
      database_->change({{"INSERT OR REPLACE INTO histories VALUES(1, ?, ?, ?)",
                          {last, checksum, sqlite::Sqlite::Blob{std::move(body)}}},
                         {"DELETE FROM events WHERE kind = 'archived' AND seq <= ?", {last}}});
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
