// The files of a run directory, as several processes of one run write them.
#include "actors/runs/run_files.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "runtime/base/file.h"
#include "tests/actors/runs/run_folder.h"

namespace {

std::atomic<int> disk_waits = 0;

}  // namespace

// Replace the C library's functions, which SQLite calls to have something on the disk, and count
// the calls.
extern "C" int fsync(int fd) {
  ++disk_waits;
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  ++disk_waits;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() { fs::create_directories(folder_); }
  ~RunFilesTest() override { fs::remove_all(folder_); }
  std::unique_ptr<RunFiles> open() {
    auto files = RunFiles::open(folder_.string());
    EXPECT_TRUE(files.has_value()) << files.error().message;
    return std::move(*files);
  }
  std::string content(const char* name) const { return read_file(folder_ / name).value(); }

  const fs::path folder_ =
      fs::temp_directory_path() / ("tandem_run_files_" + std::to_string(getpid()));
};

// A later process that is killed must not be taken for the result of the one before it.
TEST_F(RunFilesTest, AnEarlierResultIsKeptAsideOnceTheRunIsTakenUp) {
  for (const char* const result : {"first", "second"}) {
    const auto files = open();
    ASSERT_TRUE(files->take_up("name: x\n"));
    EXPECT_FALSE(fs::exists(folder_ / "result.json"));
    ASSERT_TRUE(files->result(result));
  }
  EXPECT_EQ(content("result.json.1"), "first\n");
  RunFolder::append(folder_ / "resume.json", "{}");
  open();  // and what would take it up is refused
  EXPECT_EQ(content("result.json"), "second\n");
  EXPECT_TRUE(fs::exists(folder_ / "resume.json"));
  ASSERT_TRUE(open()->take_up("name: x\n"));
  EXPECT_FALSE(fs::exists(folder_ / "resume.json")) << "the run goes on";
}

TEST_F(RunFilesTest, JournalWaitsForTheDiskOnlyWhereItIsAskedTo) {
  const auto files = open();
  const std::vector<exchange::JournalEvent> events = {exchange::LeaseExpired{GroupId{1}}};
  disk_waits = 0;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(files->journal(events, sqlite::Durability::kKill));
  EXPECT_EQ(disk_waits, 0);
  ASSERT_TRUE(files->journal(events, sqlite::Durability::kPowerCut));
  EXPECT_GT(disk_waits, 0);
  disk_waits = 0;
  ASSERT_TRUE(files->journal(events, sqlite::Durability::kKill));
  EXPECT_EQ(disk_waits, 0);
}

TEST_F(RunFilesTest, MetricsOfStepsThatAreTrainedAnewGo) {
  open()->rewind_metrics(StepId{0}).value();
  {
    const auto files = open();
    for (int step = 1; step <= 4; ++step)
      ASSERT_TRUE(files->metrics("{\"step\": " + std::to_string(step) + "}"));
  }
  std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"step\": 5, \"lo";  // killed here
  const auto files = open();
  ASSERT_TRUE(files->rewind_metrics(StepId{2}));
  ASSERT_TRUE(files->metrics("{\"step\": 3}"));
  EXPECT_EQ(content("metrics.jsonl"), "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n");
}

TEST_F(RunFilesTest, AFormerJobFileStaysUnderItsNumber) {
  const auto files = open();
  ASSERT_TRUE(files->take_up("a: 1\n"));
  ASSERT_TRUE(files->take_up("a: 1\n"));
  EXPECT_FALSE(fs::exists(folder_ / "job.yaml.1")) << "it is the same";
  for (const char* yaml : {"a: 2\n", "a: 3\n"}) ASSERT_TRUE(files->take_up(yaml));
  EXPECT_EQ(content("job.yaml"), "a: 3\n");
  EXPECT_EQ(content("job.yaml.1"), "a: 1\n");
  EXPECT_EQ(content("job.yaml.2"), "a: 2\n");
}

TEST_F(RunFilesTest, SamplesOfAllLivesTogetherAreBounded) {
  ASSERT_TRUE(open()->sample("{}"));
  fs::resize_file(folder_ / "samples.jsonl", exchange::kSamplesBytesMax - 4);
  for (int incarnation = 0; incarnation < 3; ++incarnation) {
    const auto files = open();
    EXPECT_EQ(files->sample("{}").value(), incarnation > 0) << "the first one finds room";
    EXPECT_EQ(files->sample("{}").value(), incarnation == 0) << "it is said once";
  }
  EXPECT_EQ(fs::file_size(folder_ / "samples.jsonl"), exchange::kSamplesBytesMax - 1);
}

TEST_F(RunFilesTest, TheBestCheckpointHasALink) {
  const auto files = open();
  const fs::path checkpoints = folder_ / "checkpoints";
  fs::create_directories(checkpoints / "step-4");
  fs::create_directories(checkpoints / "step-8");
  for (const std::int64_t step : {4, 8}) {
    ASSERT_TRUE(files->name_best(StepId{step}));
    EXPECT_EQ(fs::read_symlink(checkpoints / "best"), "step-" + std::to_string(step));
  }
  ASSERT_TRUE(files->name_best(StepId{6}));
  EXPECT_FALSE(fs::is_symlink(checkpoints / "best")) << "one that is gone is not linked to";
}

}  // namespace
}  // namespace tandem::runs
