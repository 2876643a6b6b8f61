// Every connection is opened with SQLITE_OPEN_NOMUTEX, since one thread uses it at a time. A writer
// waits up to five seconds for another process that holds the database (BEGIN IMMEDIATE takes the
// write lock at once, so a transaction cannot fail half-way for want of it).
#include "runtime/sqlite/sqlite.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/text.h"

namespace tandem::sqlite {
namespace {

void bind(sqlite3_stmt* statement, int index, const Sqlite::Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value))
    sqlite3_bind_int64(statement, index, *number);
  else if (const auto* text = std::get_if<std::string>(&value))
    // SQLITE_STATIC: the row outlives the step, so SQLite need not copy the text.
    sqlite3_bind_text(statement, index, text->data(), static_cast<int>(text->size()),
                      SQLITE_STATIC);
  else if (const auto* blob = std::get_if<Sqlite::Blob>(&value))
    sqlite3_bind_blob(statement, index, blob->bytes.data(), static_cast<int>(blob->bytes.size()),
                      SQLITE_STATIC);
  else
    sqlite3_bind_null(statement, index);
}

Sqlite::Row row_of(sqlite3_stmt* statement) {
  Sqlite::Row row;
  for (int i = 0; i < sqlite3_column_count(statement); ++i) {
    switch (sqlite3_column_type(statement, i)) {
      case SQLITE_INTEGER:
        row.emplace_back(static_cast<std::int64_t>(sqlite3_column_int64(statement, i)));
        break;
      case SQLITE_NULL:
        row.emplace_back();
        break;
      case SQLITE_BLOB:
        row.emplace_back(Sqlite::Blob{
            std::string(static_cast<const char*>(sqlite3_column_blob(statement, i)),
                        static_cast<std::size_t>(sqlite3_column_bytes(statement, i)))});
        break;
      default:
        row.emplace_back(
            std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, i)),
                        static_cast<std::size_t>(sqlite3_column_bytes(statement, i))));
    }
  }
  return row;
}

// SQLite opens the database and the files beside it by itself, and would wait for the writer of a
// FIFO.
Result<void> refuse_irregular_parts(const std::string& path) {
  for (const char* const part : {"", "-wal", "-shm", "-journal"})
    if (auto regular = refuse_irregular(path + part); !regular) return regular;
  return {};
}

}  // namespace

Result<std::unique_ptr<Sqlite>> Sqlite::open(const std::string& path, const std::string& schema) {
  if (const auto regular = refuse_irregular_parts(path); !regular) return regular.error();
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  auto opened = std::unique_ptr<Sqlite>(new Sqlite(database, path));
  if (code != SQLITE_OK) return opened->error("open the journal");
  sqlite3_busy_timeout(database, 5000);
  for (const std::string& sql :
       {std::string("PRAGMA journal_mode=WAL"), std::string("PRAGMA synchronous=NORMAL"), schema})
    if (const auto done = opened->run(sql.c_str()); !done) return done.error();
  return opened;
}

// SQLite shares files beside the database with writers, also for reading. A database whose log is
// gone and whose directory cannot be written is therefore opened as one that never changes.
Result<std::unique_ptr<Sqlite>> Sqlite::open_to_read(const std::string& path) {
  if (const auto regular = refuse_irregular_parts(path); !regular) return regular.error();
  const std::string uri = "file:" + percent_encoded(path);
  Error why;
  // Opening alone reads nothing; only the query shows whether the database can be read.
  for (const char* const mode : {"?mode=ro", "?immutable=1"}) {
    sqlite3* database = nullptr;
    const int code =
        sqlite3_open_v2((uri + mode).c_str(), &database,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    auto opened = std::unique_ptr<Sqlite>(new Sqlite(database, path));
    if (code != SQLITE_OK) return opened->error("open the journal");
    sqlite3_busy_timeout(database, 1000);
    const auto readable = opened->query("SELECT count(*) FROM sqlite_master", [](const Row&) {});
    if (readable) return opened;
    why = readable.error();
  }
  return why;
}

// Statements are finalised first: a connection with open statements does not close.
Sqlite::~Sqlite() {
  sqlite3_finalize(prepared_);
  sqlite3_close(database_);
}

// errno where the operating system refused a call of SQLite; 0: it did not.
int Sqlite::os_error() const {
  // A full disk has a code of its own, unless a call of another kind met it.
  const int code = sqlite3_errcode(database_) & 0xff;
  if (code == SQLITE_FULL) return ENOSPC;
  // Other reasons not to write, such as a journal that was moved away, do not pass by themselves.
  if (code == SQLITE_READONLY) {
    const bool plain = sqlite3_extended_errcode(database_) == SQLITE_READONLY;
    return plain && ::access(path_.c_str(), W_OK) != 0 && errno == EROFS ? EROFS : 0;
  }
  const bool refused = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
  return refused ? sqlite3_system_errno(database_) : 0;
}

Error Sqlite::error(std::string_view what) const {
  return {.code = ErrorCode::kFailed,
          .message = "cannot " + std::string(what) + ": " + sqlite3_errmsg(database_),
          .where = path_,
          .help = "is the disk full, or the folder not writable?",
          .os_error = os_error()};
}

Result<void> Sqlite::run(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return error("write the journal");
  return {};
}

Result<void> Sqlite::run_script(const std::string& sql) { return run(sql.c_str()); }

Result<void> Sqlite::insert(const std::string& sql, const std::vector<Row>& rows,
                            Durability durability) {
  if (rows.empty()) return {};
  if (prepared_sql_ != sql) {
    sqlite3_finalize(std::exchange(prepared_, nullptr));
    if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &prepared_, nullptr) != SQLITE_OK)
      return error("prepare a statement for the journal");
    prepared_sql_ = sql;
  }
  if (durability == Durability::kKill) return transact(rows);
  // The sync covers the whole log, so earlier transactions become as durable.
  if (const auto full = run("PRAGMA synchronous=FULL"); !full) return full;
  const auto done = transact(rows);
  // The setting is set back also after a failure, whose error is the one that counts.
  const auto normal = run("PRAGMA synchronous=NORMAL");
  return done ? normal : done;
}

Result<void> Sqlite::transact(const std::vector<Row>& rows) {
  if (const auto begun = run("BEGIN IMMEDIATE"); !begun) return begun;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) bind(prepared_, static_cast<int>(i) + 1, row[i]);
    const int code = sqlite3_step(prepared_);
    // The message must be taken before reset and rollback replace it.
    const Error failure = code == SQLITE_DONE ? Error{} : error("write the journal");
    sqlite3_reset(prepared_);
    if (code == SQLITE_DONE) continue;
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    return failure;
  }
  return commit();
}

Result<void> Sqlite::commit() {
  auto committed = run("COMMIT");
  if (!committed) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  return committed;
}

Result<void> Sqlite::change(const std::vector<Change>& changes) {
  if (const auto begun = run("BEGIN IMMEDIATE"); !begun) return begun;
  for (const Change& one : changes) {
    const auto done = run(one);
    if (done) continue;
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    return done;
  }
  return commit();
}

Result<void> Sqlite::run(const Change& change) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, change.sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    return error("write the journal");
  for (std::size_t i = 0; i < change.values.size(); ++i)
    bind(statement, static_cast<int>(i) + 1, change.values[i]);
  const bool done = sqlite3_step(statement) == SQLITE_DONE;
  // The message must be taken before finalize and rollback replace it.
  const Error failure = done ? Error{} : error("write the journal");
  sqlite3_finalize(statement);
  return done ? Result<void>{} : failure;
}

Result<void> Sqlite::query(const std::string& sql, const std::function<void(const Row&)>& on_row,
                           const Row& parameters) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    return error("read the journal");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    bind(statement, static_cast<int>(i) + 1, parameters[i]);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) on_row(row_of(statement));
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE) return error("read the journal");
  return {};
}

std::int64_t number_of(const Sqlite::Value& value, std::int64_t otherwise) {
  const auto* held = std::get_if<std::int64_t>(&value);
  return held ? *held : otherwise;
}

std::string text_of(const Sqlite::Value& value, const std::string& otherwise) {
  const auto* held = std::get_if<std::string>(&value);
  return held ? *held : otherwise;
}

}  // namespace tandem::sqlite
