// A SQLite database as the journals use it: write-ahead log, synchronous=NORMAL, one transaction
// per batch, statements prepared once. Safe against a kill; a power cut loses at most the
// transactions after the last one that asked for Durability::kPowerCut. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/sqlite/durability.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tandem::sqlite {

// Owns a connection and one prepared statement, that of the last insert().
class Sqlite {
 public:
  // Opens or creates `path` and runs `schema` (CREATE … IF NOT EXISTS). Errors name the path.
  static Result<std::unique_ptr<Sqlite>> open(const std::string& path, const std::string& schema);
  // Opens an existing database for reading: nothing is written, and its directory may be read-only.
  static Result<std::unique_ptr<Sqlite>> open_to_read(const std::string& path);
  ~Sqlite();
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  struct Blob {
    std::string bytes;
    auto operator<=>(const Blob&) const = default;
  };
  // NULL, INTEGER, TEXT, BLOB; other types of SQLite are read as TEXT.
  using Value = std::variant<std::monostate, std::int64_t, std::string, Blob>;
  using Row = std::vector<Value>;

  // Runs `sql` once per row, with the row's values as parameters, in one transaction: all or
  // nothing.
  Result<void> insert(const std::string& sql, const std::vector<Row>& rows,
                      Durability durability = Durability::kKill);
  // Runs statements that give no rows, each with its values as parameters, in one transaction.
  struct Change {
    std::string sql;
    Row values;
  };
  Result<void> change(const std::vector<Change>& changes);
  // Runs statements that take no parameters and give no rows.
  Result<void> run_script(const std::string& sql);
  // Calls `on_row` for each row of the answer. `parameters` are the values for the `?` in `sql`.
  Result<void> query(const std::string& sql, const std::function<void(const Row&)>& on_row,
                     const Row& parameters = {});

 private:
  Sqlite(sqlite3* database, std::string path) : database_(database), path_(std::move(path)) {}
  Result<void> run(const char* sql);
  Result<void> run(const Change& change);
  Result<void> commit();
  // Runs prepared_ for each row between BEGIN and COMMIT, or ROLLBACK at the first failure.
  Result<void> transact(const std::vector<Row>& rows);
  // The newest error of SQLite, with the path: "cannot WHAT: …".
  Error error(std::string_view what) const;
  int os_error() const;

  sqlite3* const database_;
  const std::string path_;
  std::string prepared_sql_;
  sqlite3_stmt* prepared_ = nullptr;  // the statement of prepared_sql_
};

// The value, or `otherwise` where it is of another kind.
std::int64_t number_of(const Sqlite::Value& value, std::int64_t otherwise = 0);
std::string text_of(const Sqlite::Value& value, const std::string& otherwise = "");

}  // namespace tandem::sqlite
