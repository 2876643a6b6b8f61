// Groups of one event are stored as a JSON list in the event's own row, and the view makes rows of
// them: a batch of 64 groups is one row to write, not 65. An item is the group's number, or
// [group, step, position, detail] where these differ from group to group.
#include "actors/controller/run_journal.h"

#include <utility>

#include "actors/exchange/journal_rows.h"
#include "runtime/wire/codec.h"

namespace tandem::actors {
namespace {

constexpr const char* kFile = "/journal.sqlite";
constexpr const char* kTables =
    "CREATE TABLE events(seq INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER, kind TEXT, "
    "group_id INTEGER, lease INTEGER, holder TEXT, step INTEGER, version INTEGER, "
    "position INTEGER, detail TEXT, groups_kind TEXT, groups TEXT, body BLOB);"
    "CREATE VIEW journal AS "
    "SELECT seq, time_ms, kind, group_id, lease, holder, step, version, position, detail "
    "FROM events WHERE kind IS NOT NULL "
    "UNION ALL "
    "SELECT e.seq, e.time_ms, e.groups_kind, "
    "iif(g.type = 'array', json_extract(g.value, '$[0]'), g.value), NULL, NULL, "
    "iif(g.type = 'array', json_extract(g.value, '$[1]'), e.step), "
    "iif(e.groups_kind = 'trained', e.version, NULL), "
    "iif(g.type = 'array', json_extract(g.value, '$[2]'), NULL), "
    "CASE WHEN g.type = 'array' THEN json_extract(g.value, '$[3]') "
    "WHEN e.groups_kind = 'discarded' THEN e.detail END "
    "FROM events e, json_each(e.groups) g WHERE e.groups_kind IS NOT NULL;";
constexpr const char* kInsert =
    "INSERT INTO events(time_ms, kind, group_id, lease, holder, step, version, position, detail, "
    "groups_kind, groups, body) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)";

runtime::Sqlite::Value value_of(const std::optional<std::int64_t>& number) {
  return number ? runtime::Sqlite::Value{*number} : runtime::Sqlite::Value{};
}

runtime::Sqlite::Value value_of(const std::string& text) {
  return text.empty() ? runtime::Sqlite::Value{} : runtime::Sqlite::Value{text};
}

std::string json_of(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "null";
}

// Details of groups are our own words: no character of theirs needs an escape in JSON.
std::string list_of(const std::vector<JournalRow>& groups) {
  std::string list = "[";
  for (const JournalRow& row : groups) {
    if (list.size() > 1) list += ',';
    if (!row.position)
      list += json_of(row.group);
    else
      list += "[" + json_of(row.group) + "," + json_of(row.step) + "," + json_of(row.position) +
              (row.detail.empty() ? ",null]" : ",\"" + row.detail + "\"]");
  }
  return list + "]";
}

runtime::Sqlite::Row row_of(const JournalEvent& event, std::int64_t time_ms) {
  const JournalRows rows = rows_of(event);
  const bool of_groups = !rows.of_groups.empty();
  // An event that has no row of its own keeps the values that its groups have in common there.
  const JournalRow& row =
      rows.of_event.kind.empty() && of_groups ? rows.of_groups.front() : rows.of_event;
  const bool own = !rows.of_event.kind.empty();
  return {
      time_ms,
      value_of(rows.of_event.kind),
      own ? value_of(row.group) : runtime::Sqlite::Value{},
      value_of(row.lease),
      value_of(row.holder),
      value_of(row.step),
      value_of(row.version),
      value_of(row.position),
      value_of(row.detail),
      of_groups ? runtime::Sqlite::Value{rows.of_groups.front().kind} : runtime::Sqlite::Value{},
      of_groups ? runtime::Sqlite::Value{list_of(rows.of_groups)} : runtime::Sqlite::Value{},
      runtime::Sqlite::Blob{runtime::encode(event)}};
}

Result<std::int64_t> number_from(runtime::Sqlite& database, const char* query) {
  std::int64_t number = 0;
  const auto asked = database.query(query, [&number](const runtime::Sqlite::Row& row) {
    number = runtime::number_of(row.front());
  });
  if (!asked) return asked.error();
  return number;
}

// Which schema the journal has; 0: it is empty.
Result<std::int64_t> schema_of(runtime::Sqlite& database) {
  const auto version = number_from(database, "PRAGMA user_version");
  if (!version || *version > 0) return version;
  const auto tables = number_from(database, "SELECT count(*) FROM sqlite_master");
  if (!tables) return tables.error();
  return *tables > 0 ? 1 : 0;  // the first schema had no number
}

Error other_schema(const std::string& path, std::int64_t schema) {
  return {ErrorCode::kInvalid,
          "the run's journal has schema " + std::to_string(schema) +
              ", and this version of tandem reads schema " + std::to_string(kJournalSchema),
          path,
          "resume the run with the version of tandem that wrote it, or begin a new run from its "
          "checkpoint (model.path: RUN_DIR/checkpoints/step-N)"};
}

// Whether the journal is empty. kInvalid for another schema.
Result<bool> is_new(runtime::Sqlite& database, const std::string& path) {
  const auto schema = schema_of(database);
  if (!schema) return schema.error();
  if (*schema != 0 && *schema != kJournalSchema) return other_schema(path, *schema);
  return *schema == 0;
}

}  // namespace

Result<void> RunJournal::check(const std::string& run_dir) {
  const std::string path = run_dir + kFile;
  const auto database = runtime::Sqlite::open_to_read(path);
  if (!database) return database.error();
  if (const auto fine = is_new(**database, path); !fine) return fine.error();
  return {};
}

Result<RunJournal> RunJournal::open(const std::string& run_dir) {
  const std::string path = run_dir + kFile;
  auto database = runtime::Sqlite::open(path, "");
  if (!database) return database.error();
  const auto empty = is_new(**database, path);
  if (!empty) return empty.error();
  if (*empty) {
    const std::string made = std::string("BEGIN IMMEDIATE;") + kTables +
                             "CREATE INDEX milestones ON events(kind) WHERE kind IN " +
                             kMilestoneKinds +
                             ";PRAGMA user_version = " + std::to_string(kJournalSchema) + ";COMMIT";
    if (const auto done = (*database)->run_script(made); !done) return done.error();
  }
  return RunJournal(path, std::move(*database));
}

Result<RunJournal> RunJournal::open_to_read(const std::string& run_dir) {
  const std::string path = run_dir + kFile;
  auto database = runtime::Sqlite::open_to_read(path);
  if (!database) return database.error();
  const auto schema = schema_of(**database);
  if (!schema) return schema.error();
  if (*schema != kJournalSchema) return other_schema(path, *schema);
  return RunJournal(path, std::move(*database));
}

Result<void> RunJournal::append(std::span<const JournalEvent> events, std::int64_t time_ms,
                                Durability durability) {
  std::vector<runtime::Sqlite::Row> rows;
  rows.reserve(events.size());
  for (const JournalEvent& event : events) rows.push_back(row_of(event, time_ms));
  return database_->insert(kInsert, rows, durability);
}

Result<void> RunJournal::read(const std::function<void(const JournalEntry&)>& take) const {
  std::optional<Error> damaged;
  const auto asked = database_->query(
      "SELECT seq, time_ms, body FROM events ORDER BY seq", [&](const runtime::Sqlite::Row& row) {
        if (damaged) return;
        const auto* body = std::get_if<runtime::Sqlite::Blob>(&row[2]);
        auto event = runtime::decode<JournalEvent>(body ? body->bytes : "");
        if (!event) {
          damaged = Error{ErrorCode::kInvalid,
                          "event " + std::to_string(runtime::number_of(row[0])) +
                              " of the journal is damaged: " + event.error().message,
                          path_, "restore the file, or begin a new run"};
          return;
        }
        take({runtime::number_of(row[1]), std::move(*event)});
      });
  if (!asked) return asked;
  if (damaged) return *damaged;
  return {};
}

}  // namespace tandem::actors
