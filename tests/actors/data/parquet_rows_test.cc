// Parquet files of pyarrow (scripts/make_parquet_goldens.py) become the lines beside them. Where
// the machine has DuckDB or pyarrow, these read them; everywhere scripts of sh play a program that
// does, and one that fails in each way.
// Tests actors/data/parquet_rows.h, actors/data/parquet_footer.h, actors/data/parquet_program.h,
// actors/data/row_cache.h.
#include "actors/data/parquet_rows.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <sstream>
#include <thread>

#include "actors/data/open_records.h"
#include "actors/data/row_cache.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "tests/actors/data/data_folder.h"
#include "tests/seeds.h"

namespace tandem::data {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = TANDEM_SOURCE_DIR "/tests/golden/parquet";
constexpr std::size_t kRowBytes = 1 << 16;

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::istringstream text(content_of(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

class ParquetRowsTest : public testing::Test {
 protected:
  Given read(const fs::path& path) const {
    auto file = open_regular(path);
    return all_of(parquet_rows(std::move(file.value()), path, kRowBytes, reading_));
  }

  // A script in the place of DuckDB.
  void program(const std::string& script) {
    const fs::path path = folder_.write("bin/duckdb", "#!/bin/sh\n" + script + "\n");
    fs::permissions(path, fs::perms::owner_all);
    reading_.programs = {.duckdb = path, .python = {}};
  }
  // One that has the lines of `name`.
  void knows(const std::string& name) { program("cat " + (kGoldens / (name + ".jsonl")).string()); }

  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    if (fs::exists(reading_.cache.folder))
      for (const auto& entry : fs::directory_iterator(reading_.cache.folder))
        files.push_back(entry.path());
    return files;
  }

  const DataFolder folder_;
  ParquetReading reading_{.programs = {},
                          .cache = {.folder = folder_.root() / "state/cache", .bytes_max = 1 << 20},
                          .silence_max = std::chrono::seconds(60)};
};

// PR-1
TEST_F(ParquetRowsTest, RowsComeFromAProgramOnceAndThenFromTheCachePR1) {
  knows("many_groups");
  const fs::path file = kGoldens / "many_groups.parquet";
  const std::vector<std::string> expected = lines_of(kGoldens / "many_groups.jsonl");
  const Given first = read(file);
  ASSERT_FALSE(first.error) << render(*first.error);
  EXPECT_EQ(first.rows, expected);
  EXPECT_EQ(first.places.front(), file.string() + ":1");
  EXPECT_EQ(first.places.back(), file.string() + ":1000");
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(fs::status(kept()[0]).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(reading_.cache.folder).permissions(), fs::perms::owner_all);
  program("exit 1");
  EXPECT_EQ(read(file).rows, expected) << "no program is asked for the same content";
  const fs::path copy = folder_.root() / "copy.parquet";
  fs::copy(file, copy);
  EXPECT_EQ(read(copy).rows, expected) << "nor under another name";
}

TEST_F(ParquetRowsTest, ReadingTellsHowFarItIs) {
  knows("many_groups");
  const fs::path path = kGoldens / "many_groups.parquet";
  for (int pass = 0; pass < 2; ++pass) {  // from the program, then from the cache
    auto source = parquet_rows(std::move(open_regular(path).value()), path, kRowBytes, reading_);
    for (int i = 0; i < 500; ++i) ASSERT_TRUE((*source)->next());
    EXPECT_EQ((*source)->bytes_read(), fs::file_size(path) / 2);
    while (const auto more = *(*source)->next()) {
    }
  }
}

TEST_F(ParquetRowsTest, NaNAndInfinitiesAreNull) {
  // Without a line feed at the end, as DuckDB may write.
  const fs::path rows = folder_.write(
      "rows", R"({"i64":1,"f64":NaN,"text":"NaN \" Infinity\\","list":[-Infinity,Infinity]})"
              "\n{\"f64\":-1e30}\n{\"f64\":NaN}");
  program("cat " + rows.string());
  EXPECT_EQ(read(kGoldens / "types.parquet").rows,
            (std::vector<std::string>{
                R"({"i64":1,"f64":null,"text":"NaN \" Infinity\\","list":[null,null]})",
                R"({"f64":-1e30})", R"({"f64":null})"}));
}

// PR-1, KE-1
TEST_F(ParquetRowsTest, AProgramThatFailsIsNamedAndNothingIsKeptPR1KE1) {
  const fs::path file = kGoldens / "verl.parquet";
  const std::string rows = "cat " + (kGoldens / "verl.jsonl").string();
  const auto check = [&](const std::string& script, const std::string& message) {
    program(script);
    const Given given = read(file);
    ASSERT_TRUE(given.error) << script;
    EXPECT_NE(given.error->message.find(message), std::string::npos) << given.error->message;
    EXPECT_TRUE(given.error->where.starts_with(file.string())) << given.error->where;
    EXPECT_TRUE(kept().empty()) << script;
  };
  check("head -c 9 /dev/zero >&2; exit 3", "duckdb ended with code 3");
  check(rows + "; echo 'Out of memory' >&2; exit 1", "Out of memory");
  check(rows + " | head -5; kill -9 $$", "killed by signal 9");
  check(rows + " | head -5", "has 20 rows, and duckdb wrote 5 rows");
  check(rows + "; " + rows, "wrote more than that");
  check("echo 'Usage: duckdb'", "wrote as row 1: Usage: duckdb");
  check("head -c 100000 /dev/zero | tr '\\0' x", "more than 65536 bytes");
  reading_.silence_max = std::chrono::milliseconds(50);
  check(rows + "; sleep 1000", "wrote nothing for");
}

TEST_F(ParquetRowsTest, AReaderThatStopsLeavesNothingBehind) {
  knows("many_groups");
  const fs::path path = kGoldens / "many_groups.parquet";
  auto source = parquet_rows(std::move(open_regular(path).value()), path, kRowBytes, reading_);
  ASSERT_TRUE((*source)->next());
  EXPECT_EQ(kept().size(), 2u) << "unfinished, and its lock";
  source->reset();
  EXPECT_TRUE(kept().empty());
}

// A full disk, which a limit on the size of files stands for.
TEST_F(ParquetRowsTest, AFullDiskIsNamed) {
  knows("many_groups");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, small{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Given given = read(kGoldens / "many_groups.parquet");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  ASSERT_TRUE(given.error);
  EXPECT_NE(given.error->message.find("cannot write file: File too large"), std::string::npos)
      << given.error->message;
  EXPECT_NE(given.error->help.find("TANDEM_HOME"), std::string::npos);
  EXPECT_TRUE(kept().empty());
  folder_.write("no_folder", "");
  reading_.cache.folder = folder_.root() / "no_folder/cache";
  const Given nowhere = read(kGoldens / "many_groups.parquet");
  ASSERT_TRUE(nowhere.error);
  EXPECT_NE(nowhere.error->message.find("cannot make folder"), std::string::npos);
}

// Two that want the rows of one file at the same time. The program of the first one has begun, and
// waits until it may go on.
class TwoReadersTest : public ParquetRowsTest {
 protected:
  TwoReadersTest() {
    for (const fs::path& pipe : {started_, go_}) CHECK(::mkfifo(pipe.c_str(), 0600) == 0);
    program("echo 1 >> " + calls_.string() + "; cat " + (kGoldens / "many_groups.jsonl").string());
  }

  // The first one, whose program ends as `script` does.
  ParquetReading first(const std::string& script) const {
    const fs::path path = folder_.write(
        "first/duckdb", "#!/bin/sh\necho 1 >> " + calls_.string() + "; echo > " +
                            started_.string() + "; cat " + go_.string() + "; " + script + "\n");
    fs::permissions(path, fs::perms::owner_all);
    ParquetReading reading = reading_;
    reading.programs = {.duckdb = path, .python = {}};
    return reading;
  }
  static Given read_by(const ParquetReading& reading, const TellWait& tell = {}) {
    return all_of(
        parquet_rows(std::move(open_regular(kFile).value()), kFile, kRowBytes, reading, tell));
  }
  void wait_for_first() const { content_of(started_); }
  void let_go() const { std::ofstream(go_).flush(); }
  // The second one, which does `then` as soon as it waits.
  Given second(const std::function<void()>& then) {
    return read_by(reading_, [&, said = false](const std::string& what) mutable {
      told_.push_back(what);
      if (!std::exchange(said, true)) then();
    });
  }
  std::size_t conversions() const { return lines_of(calls_).size(); }

  static inline const fs::path kFile = kGoldens / "many_groups.parquet";
  const std::vector<std::string> expected_ = lines_of(kGoldens / "many_groups.jsonl");
  const fs::path started_ = folder_.root() / "started", go_ = folder_.root() / "go",
                 calls_ = folder_.root() / "calls";
  std::vector<std::string> told_;
};

// KE-3
TEST_F(TwoReadersTest, TheSecondWaitsForTheRowsOfTheFirstKE3) {
  const ParquetReading slow = first("cat " + (kGoldens / "many_groups.jsonl").string());
  Given one;
  std::jthread other([&] { one = read_by(slow); });
  wait_for_first();
  const Given two = second([&] { let_go(); });
  other.join();
  ASSERT_FALSE(two.error) << render(*two.error);
  EXPECT_EQ(two.rows, expected_);
  EXPECT_EQ(one.rows, expected_);
  EXPECT_EQ(conversions(), 1u);
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_[0], "waits for another process (" + std::to_string(::getpid()) +
                          ") that converts many_groups.parquet");
  EXPECT_EQ(kept().size(), 1u) << "no lock is left";
}

// KE-3
TEST_F(TwoReadersTest, TheSecondGoesOnAloneWhereTheFirstFailsKE3) {
  const ParquetReading failing = first("exit 3");
  Given one;
  std::jthread other([&] { one = read_by(failing); });
  wait_for_first();
  const Given two = second([&] { let_go(); });
  other.join();
  ASSERT_TRUE(one.error);
  ASSERT_FALSE(two.error) << render(*two.error);
  EXPECT_EQ(two.rows, expected_);
  EXPECT_EQ(conversions(), 2u);
  EXPECT_EQ(kept().size(), 1u);
}

// KE-3, by the lock of a process that is killed.
TEST_F(TwoReadersTest, TheSecondGoesOnAloneWhereTheFirstIsKilledKE3) {
  const ParquetReading slow = first("exit 0");
  const pid_t child = ::fork();
  if (child == 0) {
    read_by(slow);
    ::_exit(0);
  }
  wait_for_first();
  const Given two = second([&] {
    EXPECT_NE(told_[0].find("(" + std::to_string(child) + ")"), std::string::npos) << told_[0];
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    let_go();
  });
  ASSERT_FALSE(two.error) << render(*two.error);
  EXPECT_EQ(two.rows, expected_);
  EXPECT_EQ(conversions(), 2u);
  const auto left = [&] {
    return std::ranges::count_if(kept(), [](const fs::path& path) {
      return path.filename().string().starts_with("unfinished-");
    });
  };
  EXPECT_EQ(left(), 1) << "of the process that was killed, for an hour";
}

// KE-3
TEST_F(TwoReadersTest, TheSecondWaitsForAWhileOnlyKE3) {
  const ParquetReading slow = first("cat " + (kGoldens / "many_groups.jsonl").string());
  reading_.cache.wait_max = std::chrono::milliseconds(100);
  Given one;
  std::jthread other([&] { one = read_by(slow); });
  wait_for_first();
  const Given two = second([] {});
  EXPECT_EQ(two.rows, expected_) << "while the first one still waits";
  EXPECT_FALSE(told_.empty());
  let_go();
  other.join();
  EXPECT_EQ(one.rows, expected_);
  EXPECT_EQ(kept().size(), 1u);
}

// KE-3
TEST_F(TwoReadersTest, AFullDiskIsNamedByBothKE3) {
  const ParquetReading slow = first("cat " + (kGoldens / "many_groups.jsonl").string());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, small{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Given one;
  std::jthread other([&] { one = read_by(slow); });
  wait_for_first();
  const Given two = second([&] { let_go(); });
  other.join();
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  for (const auto& given : {one, two}) {
    ASSERT_TRUE(given.error);
    EXPECT_NE(given.error->message.find("File too large"), std::string::npos)
        << given.error->message;
  }
  EXPECT_TRUE(kept().empty());
}

// Root may write everywhere, so the test goes on as another user.
TEST_F(ParquetRowsTest, ACacheThatCannotBeWrittenIsStillRead) {
  knows("verl");
  const auto read_as_nobody = [this] {
    if (::getuid() == 0) {
      int failed = ::chown(folder_.root().c_str(), 65534, 65534);
      for (const auto& entry : fs::recursive_directory_iterator(folder_.root()))
        failed |= ::chown(entry.path().c_str(), 65534, 65534);
      if (failed != 0 || ::setuid(65534) != 0) ::_exit(2);
    }
    if (read(kGoldens / "verl.parquet").error) ::_exit(3);
    fs::permissions(reading_.cache.folder, fs::perms::owner_read | fs::perms::owner_exec);
    const Given again = read(kGoldens / "verl.parquet");
    const Given other = read(kGoldens / "types.parquet");
    fs::permissions(reading_.cache.folder, fs::perms::owner_all);
    if (again.error || again.rows != lines_of(kGoldens / "verl.jsonl")) ::_exit(4);
    const bool named = other.error && other.error->message.starts_with("cannot create file") &&
                       other.error->help.find("TANDEM_HOME") != std::string::npos;
    ::_exit(named ? 0 : 5);
  };
  EXPECT_EXIT(read_as_nobody(), testing::ExitedWithCode(0), "");
}

TEST_F(ParquetRowsTest, DamagedRowsOfTheCacheAreMadeAnew) {
  knows("verl");
  const fs::path file = kGoldens / "verl.parquet";
  ASSERT_FALSE(read(file).error);
  const fs::path entry = kept()[0];
  for (const std::string& content :
       {content_of(entry).substr(0, 300), std::string("not zstd"), std::string()}) {
    std::ofstream(entry, std::ios::binary) << content;
    const Given damaged = read(file);
    ASSERT_TRUE(damaged.error);
    EXPECT_EQ(damaged.error->where, entry);
    const Given again = read(file);
    EXPECT_FALSE(again.error);
    EXPECT_EQ(again.rows, lines_of(kGoldens / "verl.jsonl"));
  }
}

// KE-2
TEST_F(ParquetRowsTest, TheCacheIsBoundedAndForgetsTheOldestKE2) {
  knows("verl");
  ASSERT_FALSE(read(kGoldens / "verl.parquet").error);
  const fs::path verl = kept()[0];
  const auto hours_ago = [](int hours) {
    return fs::file_time_type::clock::now() - std::chrono::hours(hours);
  };
  const fs::path old = reading_.cache.folder / "old.jsonl.zst";
  const fs::path unfinished = reading_.cache.folder / "unfinished-1";
  const fs::path lock = reading_.cache.folder / "old.lock";
  for (const fs::path& path : {old, unfinished, lock})
    std::ofstream(path) << std::string(5000, 'x');
  fs::last_write_time(verl, hours_ago(3));
  fs::last_write_time(old, hours_ago(2));
  fs::last_write_time(unfinished, hours_ago(2));
  fs::last_write_time(lock, hours_ago(2));
  ASSERT_FALSE(read(kGoldens / "verl.parquet").error) << "this use makes it the younger one";
  reading_.cache.bytes_max = fs::file_size(verl) + 4999;
  knows("types");
  ASSERT_FALSE(read(kGoldens / "types.parquet").error);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_FALSE(fs::exists(unfinished));
  EXPECT_FALSE(fs::exists(lock));
  EXPECT_TRUE(fs::exists(verl));
  EXPECT_EQ(kept().size(), 2u);
  reading_.cache.bytes_max = 1;
  knows("twins");
  reading_.programs = {.duckdb = {}, .python = reading_.programs.duckdb};
  ASSERT_FALSE(read(kGoldens / "twins.parquet").error);
  EXPECT_EQ(kept().size(), 1u) << "the newest stays, however large";
}

TEST_F(ParquetRowsTest, AFileThatIsNotWholeIsNamed) {
  const std::string whole = content_of(kGoldens / "verl.parquet");
  knows("verl");
  for_seeds(50, [&](std::uint64_t seed) {
    Rng rng(seed);
    const fs::path cut = folder_.write("cut.parquet", whole.substr(0, rng.below(whole.size())));
    const Given given = read(cut);
    ASSERT_TRUE(given.error);
    EXPECT_EQ(given.error->code, ErrorCode::kInvalid);
    EXPECT_EQ(given.error->where, cut);
    // Any damage of the footer is an error or another footer, and never more than that.
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i)
      damaged[damaged.size() - 1 - rng.below(1200)] = static_cast<char>(rng.below(256));
    const fs::path path = folder_.write("damaged.parquet", damaged);
    auto file = open_regular(path);
    (void)read_parquet_footer(file->fd, file->bytes, path);
  });
  const fs::path secret =
      folder_.write("secret.parquet", whole.substr(0, whole.size() - 4) + "PARE");
  EXPECT_NE(read(secret).error->message.find("encrypted"), std::string::npos);
}

TEST_F(ParquetRowsTest, AColumnThatCannotBeReadIsNamed) {
  knows("verl");
  const auto images = read(kGoldens / "images.parquet");
  ASSERT_TRUE(images.error);
  EXPECT_NE(images.error->message.find("column `images` of the parquet file has bytes"),
            std::string::npos)
      << images.error->message;
  EXPECT_NE(images.error->help.find("drop(columns=['images'])"), std::string::npos);
  const auto decimals = read(kGoldens / "nested_decimals.parquet");
  ASSERT_TRUE(decimals.error);
  EXPECT_NE(decimals.error->message.find("decimals within"), std::string::npos);
}

TEST_F(ParquetRowsTest, WhatToInstallIsSaid) {
  const auto missing = read(kGoldens / "verl.parquet");
  ASSERT_TRUE(missing.error);
  EXPECT_EQ(missing.error->code, ErrorCode::kFailed);
  EXPECT_NE(missing.error->help.find("pip install pyarrow"), std::string::npos);
  program("exit 9");  // as Python ends without pyarrow
  reading_.programs = {.duckdb = {}, .python = reading_.programs.duckdb};
  const auto bare = read(kGoldens / "verl.parquet");
  ASSERT_TRUE(bare.error);
  EXPECT_EQ(bare.error->message, missing.error->message);
  // DuckDB would take the two columns for one.
  program("exit 9");
  EXPECT_NE(read(kGoldens / "twins.parquet").error->help.find("pyarrow"), std::string::npos);
}

// As in a container whose limit of processes is reached. Root has no such limit.
TEST_F(ParquetRowsTest, RowsArePackedWhereTheMachineGivesNoThread) {
  const fs::path folder = folder_.root();
  const auto pack_as_nobody = [&folder] {
    const rlimit none{1, 1};
    if (getuid() == 0 && (chown(folder.c_str(), 65534, 65534) != 0 || setuid(65534) != 0)) _exit(2);
    if (setrlimit(RLIMIT_NPROC, &none) != 0) _exit(3);
    const RowCache cache{.folder = folder / "cache", .bytes_max = 1 << 20};
    auto writer = RowCacheWriter::begin(cache, "rows", nullptr);
    if (!writer || !writer->add("{}") || !writer->commit()) _exit(4);
    std::array<char, 8> rows{};
    const auto read = open_entry(cache, "rows")->read(rows);
    _exit(read && std::string_view(rows.data(), *read) == "{}\n" ? 0 : 5);
  };
  EXPECT_EXIT(pack_as_nobody(), testing::ExitedWithCode(0), "");
}

TEST_F(ParquetRowsTest, RealProgramsAgreeWithTheGoldens) {
  const ParquetPrograms here = find_parquet_programs();
  int used = 0;
  for (const ParquetPrograms& one :
       {ParquetPrograms{here.duckdb, {}}, ParquetPrograms{{}, here.python}}) {
    reading_.programs = one;
    for (const char* name : {"verl", "types", "twins", "many_groups"}) {
      const std::string what = (one.duckdb ? "duckdb " : "python ") + std::string(name);
      fs::remove_all(reading_.cache.folder);
      const Given given = read(kGoldens / (std::string(name) + ".parquet"));
      if (given.error) {
        EXPECT_NE(given.error->help.find("pyarrow"), std::string::npos)
            << what << ": " << render(*given.error);
        break;
      }
      ++used;
      const auto expected = lines_of(kGoldens / (std::string(name) + ".jsonl"));
      ASSERT_EQ(given.rows.size(), expected.size()) << what;
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(parse_json(given.rows[i]), parse_json(expected[i])) << what << " row " << i + 1;
    }
  }
  if (used == 0) GTEST_SKIP() << "neither DuckDB nor pyarrow is here";
}

}  // namespace
}  // namespace tandem::data
