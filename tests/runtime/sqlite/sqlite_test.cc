#include "runtime/sqlite/sqlite.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/base/file.h"

namespace tandem::sqlite {
namespace {

namespace fs = std::filesystem;

// SQLite calls a database read-only for several reasons, and only one of them is the disk's.
TEST(Sqlite, AJournalThatWasMovedAwayIsNoReadOnlyDisk) {
  const fs::path folder = testing::TempDir() + "sqlite_test_" + std::to_string(getpid());
  fs::create_directories(folder);
  const fs::path path = folder / "journal.sqlite";
  {
    const auto journal = Sqlite::open(path.string(), "CREATE TABLE IF NOT EXISTS t(x)");
    ASSERT_TRUE(journal.has_value());
    // A database with a write-ahead log does not look whether it was moved.
    ASSERT_TRUE((*journal)->run_script("PRAGMA journal_mode=DELETE").has_value());
    ASSERT_TRUE(
        (*journal)->insert("INSERT INTO t VALUES(?)", {Sqlite::Row{std::int64_t{1}}}).has_value());
    fs::rename(path, folder / "moved.sqlite");
    const auto written =
        (*journal)->insert("INSERT INTO t VALUES(?)", {Sqlite::Row{std::int64_t{2}}});
    ASSERT_FALSE(written.has_value());
    EXPECT_NE(written.error().message.find("readonly"), std::string::npos);
    EXPECT_EQ(written.error().os_error, 0);
    EXPECT_FALSE(waits_for_disk(written.error()));
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tandem::sqlite
