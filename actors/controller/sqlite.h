// A SQLite database as the journals use it: WAL, synchronous=NORMAL (safe against kill; a power cut
// loses at most the tail behind the last transaction that asked for more), statements prepared
// once, one transaction per batch. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/exchange/run_record.h"
#include "runtime/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tandem::actors {

class Sqlite {
 public:
  // Opens or creates `path` and runs `schema` (CREATE … IF NOT EXISTS). Errors name the path.
  static Result<std::unique_ptr<Sqlite>> open(const std::string& path, const std::string& schema);
  // An existing database, to be read: nothing is written, its directory may be read-only.
  static Result<std::unique_ptr<Sqlite>> open_to_read(const std::string& path);
  ~Sqlite();
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  using Value = std::variant<std::monostate, std::int64_t, std::string>;  // NULL, INTEGER, TEXT
  using Row = std::vector<Value>;

  // Runs `sql` once per row in one transaction, all or nothing; its parameters are the row's
  // values.
  Result<void> insert(const std::string& sql, const std::vector<Row>& rows,
                      Durability durability = Durability::kKill);
  // Calls `on_row` for each row of the answer; `parameters` are those of `sql`.
  Result<void> query(const std::string& sql, const std::function<void(const Row&)>& on_row,
                     const Row& parameters = {});

 private:
  Sqlite(sqlite3* database, std::string path) : database_(database), path_(std::move(path)) {}
  Result<void> run(const char* sql);
  Result<void> transact(const std::vector<Row>& rows);
  Error error(std::string_view what) const;

  sqlite3* const database_;
  const std::string path_;
  std::string prepared_sql_;
  sqlite3_stmt* prepared_ = nullptr;  // of prepared_sql_
};

// The value, or `otherwise` where it is of another kind.
std::int64_t number_of(const Sqlite::Value& value, std::int64_t otherwise = 0);
std::string text_of(const Sqlite::Value& value, const std::string& otherwise = "");

}  // namespace tandem::actors
