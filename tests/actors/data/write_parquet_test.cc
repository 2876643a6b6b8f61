// Where the machine has DuckDB or pyarrow, what these write is read back; everywhere scripts of sh
// play a program that writes.
#include "actors/data/write_parquet.h"

#include <gtest/gtest.h>

#include <sstream>

#include "actors/data/parquet_rows.h"
#include "runtime/base/json.h"
#include "tests/actors/data/data_folder.h"

namespace tandem::data {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kColumns{"step", "a/b", "it's, \"so\""};
constexpr const char* kCsv =
    "step,a/b,\"it's, \"\"so\"\"\"\n1,0.5,\n2,,3e-300\n9007199254740993,-1,0\n";

class WriteParquet : public testing::Test {
 protected:
  ParquetPrograms program(const std::string& script) const {
    const fs::path path = folder_.write("bin/duckdb", "#!/bin/sh\n" + script + "\n");
    fs::permissions(path, fs::perms::owner_all);
    return {.duckdb = path, .python = {}};
  }
  const DataFolder folder_;
};

TEST_F(WriteParquet, TheProgramGetsTheTableAndItsOutputIsTheFile) {
  std::ostringstream out;
  const auto done = write_parquet(kCsv, kColumns, program(R"(echo "$6"; cat)"), out);
  ASSERT_TRUE(done) << render(done.error());
  const std::string said = out.str();
  EXPECT_NE(said.find(R"(CAST("step" AS BIGINT))"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with(kCsv)) << said;
}

TEST_F(WriteParquet, AProgramThatFailsOrIsMissingIsToldWithAWayOut) {
  std::ostringstream out;
  const auto failed = write_parquet(kCsv, kColumns, program("echo no room >&2; exit 3"), out);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("no room"), std::string::npos) << render(failed.error());
  EXPECT_NE(failed.error().help.find("-o csv"), std::string::npos);
  const auto missing = write_parquet(kCsv, kColumns, {}, out);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().help.find("pyarrow"), std::string::npos);
  std::ostringstream full;
  full.setstate(std::ios::badbit);
  const auto no_room = write_parquet(kCsv, kColumns, program("cat"), full);
  ASSERT_FALSE(no_room) << "a disk that is full";
  EXPECT_NE(no_room.error().message.find("could not be written"), std::string::npos);
  // DuckDB would take these columns for one.
  EXPECT_FALSE(write_parquet("step,a,A\n1,2,3\n", {"step", "a", "A"}, program("cat"), out));
}

TEST_F(WriteParquet, RealProgramsWriteWhatIsReadBack) {
  const ParquetPrograms here = find_parquet_programs();
  int used = 0;
  for (const ParquetPrograms& one :
       {ParquetPrograms{here.duckdb, {}}, ParquetPrograms{{}, here.python}}) {
    std::ostringstream out;
    const auto done = write_parquet(kCsv, kColumns, one, out);
    if (!done) {
      EXPECT_NE(done.error().help.find("pyarrow"), std::string::npos) << render(done.error());
      continue;
    }
    ++used;
    const fs::path path = folder_.write("metrics.parquet", out.str());
    auto file = open_regular(path);
    const Given given = all_of(parquet_rows(
        std::move(file.value()), path, 1 << 16,
        {.programs = one,
         .cache = {.folder = folder_.root() / (one.duckdb ? "d" : "p"), .bytes_max = 1 << 20},
         .silence_max = kParquetSilenceMax}));
    ASSERT_FALSE(given.error) << render(*given.error);
    ASSERT_EQ(given.rows.size(), 3u);
    EXPECT_EQ(parse_json(given.rows[0]),
              parse_json(R"({"step": 1, "a/b": 0.5, "it's, \"so\"": null})"));
    EXPECT_EQ(parse_json(given.rows[1]),
              parse_json(R"({"step": 2, "a/b": null, "it's, \"so\"": 3e-300})"));
    EXPECT_EQ(parse_json(given.rows[2]),
              parse_json(R"({"step": 9007199254740993, "a/b": -1.0, "it's, \"so\"": 0.0})"));
  }
  if (used == 0) GTEST_SKIP() << "neither DuckDB nor pyarrow is here";
}

// An argument of a program has at most 128 KiB.
TEST_F(WriteParquet, TakesThousandsOfColumns) {
  std::vector<std::string> columns{"step"};
  std::string header = "step", row = "1";
  for (int i = 0; i < 4000; ++i) {
    columns.push_back("a/" + std::string(60, 'x') + std::to_string(i));
    header += "," + columns.back();
    row += ",1";
  }
  std::ostringstream out;
  const auto done = write_parquet(header + "\n" + row + "\n", columns, program("cat"), out);
  ASSERT_TRUE(done) << render(done.error());
  EXPECT_GT(out.str().size(), 240'000u);
}

}  // namespace
}  // namespace tandem::data
