// The files of a run directory, as several processes of one run write them.
#include "actors/runs/run_files.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
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
  std::unique_ptr<RunFiles> open(const exchange::FileLimits& limits = {}) {
    auto files = RunFiles::open(folder_.string(), {}, limits);
    EXPECT_TRUE(files.has_value()) << files.error().message;
    return std::move(*files);
  }
  std::string content(const char* name) const { return read_file(folder_ / name).value(); }
  std::vector<std::int64_t> steps_in(const char* name) const {
    std::vector<std::int64_t> steps;
    std::ifstream lines(folder_ / name);
    for (std::string line; std::getline(lines, line);) steps.push_back(parse_json(line)["step"]);
    return steps;
  }

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

TEST_F(RunFilesTest, OfSamplesTheNewestStay) {  // BO-1, BO-2
  constexpr std::uint64_t kMax = 1000;
  int number = 0;
  std::int64_t said = 0;
  for (int incarnation = 0; incarnation < 3; ++incarnation) {
    const auto files = open({.samples_bytes = kMax});
    for (int i = 0; i < 100; ++i) {
      const auto at_limit = files->sample(R"({"step": )" + std::to_string(++number) + "}");
      ASSERT_TRUE(at_limit);
      said += *at_limit ? 1 : 0;
      ASSERT_LE(fs::file_size(folder_ / "samples.jsonl"), kMax);
    }
    EXPECT_EQ(said, incarnation + 1) << "each record says it once";
  }
  const std::vector<std::int64_t> steps = steps_in("samples.jsonl");
  ASSERT_GT(steps.size(), 25U);
  for (std::size_t i = 0; i < steps.size(); ++i)
    EXPECT_EQ(steps[i], 300 - std::ssize(steps) + 1 + static_cast<std::int64_t>(i));
  const Dropped gone = dropped_of(folder_, "samples.jsonl");
  EXPECT_EQ(gone.lines, 300 - std::ssize(steps));
  EXPECT_GT(gone.bytes, 10 * gone.lines);
  EXPECT_GT(gone.times, 3);
  EXPECT_EQ(dropped_of(folder_, "metrics.jsonl").lines, 0);
}

TEST_F(RunFilesTest, OfMetricsTheWholeRunIsLeftThinly) {  // BO-1, BO-2
  constexpr std::uint64_t kMax = 2000;
  constexpr int kSteps = 1000;
  bool said = false;
  {
    const auto files = open({.metrics_bytes = kMax});
    for (int step = 1; step <= kSteps; ++step) {
      ASSERT_TRUE(files->metrics(R"({"step":)" + std::to_string(step) + "}").has_value());
      if (step % 100 != 0) continue;
      const auto at_limit =
          files->metrics(R"({"step":)" + std::to_string(step) + R"(,"eval":"periodic"})");
      said = said || *at_limit;
      ASSERT_LE(fs::file_size(folder_ / "metrics.jsonl"), kMax);
    }
  }
  const std::vector<std::int64_t> steps = steps_in("metrics.jsonl");
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  EXPECT_LT(steps.front(), 300) << "the beginning of the run is still there";
  EXPECT_EQ(steps.back(), kSteps);
  const std::string text = content("metrics.jsonl");
  for (int step = 100; step <= kSteps; step += 100)  // evaluations stay
    EXPECT_NE(text.find(R"({"step":)" + std::to_string(step) + R"(,"eval")"), std::string::npos);
  EXPECT_EQ(dropped_of(folder_, "metrics.jsonl").lines, kSteps + 10 - std::ssize(steps));
  // A resume goes back as in a file that is whole.
  ASSERT_TRUE(open()->rewind_metrics(StepId{500}));
  EXPECT_LE(steps_in("metrics.jsonl").back(), 500);
  EXPECT_GE(steps_in("metrics.jsonl").back(), 400);
}

TEST_F(RunFilesTest, FewLongLinesAreDroppedWhereNoneCanBeThinned) {  // BO-1
  const auto files = open({.metrics_bytes = 2000});
  const std::string line = R"({"step":1,"text":")" + std::string(1100, 'x') + R"("})";
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(files->metrics(line));
    EXPECT_LE(fs::file_size(folder_ / "metrics.jsonl"), 2000U);
  }
  EXPECT_EQ(dropped_of(folder_, "metrics.jsonl").lines, 8);
}

TEST_F(RunFilesTest, EvaluationsAloneAreThinnedToo) {
  const auto files = open({.metrics_bytes = 2000});
  for (int version = 1; version <= 500; ++version)
    ASSERT_TRUE(files->metrics(R"({"step":)" + std::to_string(version) + R"(,"eval":"periodic"})"));
  EXPECT_LE(fs::file_size(folder_ / "metrics.jsonl"), 2000U);
}

TEST_F(RunFilesTest, WhereNoRoomCanBeMadeALineIsRefusedAndNothingIsLost) {  // BO-3
  const auto files = open({.samples_bytes = 1000});
  std::string kept;
  while (kept.size() < 980) {
    ASSERT_TRUE(files->sample("{\"step\": 10}"));
    kept += "{\"step\": 10}\n";
  }
  fs::create_directory(folder_ / "samples.jsonl.new");  // nothing can be written there
  EXPECT_FALSE(files->sample(std::string(50, ' ')));
  EXPECT_EQ(content("samples.jsonl"), kept);
  fs::remove(folder_ / "samples.jsonl.new");
  EXPECT_TRUE(files->sample(std::string(50, ' ')).value());
  EXPECT_TRUE(content("samples.jsonl").ends_with("10}\n" + std::string(50, ' ') + "\n"));
}

TEST_F(RunFilesTest, ATrackerThatHasAllItsBytesStopsAndTheRunGoesOn) {
  constexpr std::uint64_t kEndBytes = 3000;  // W&B's configuration and lists of files
  const auto tracked = [this](std::uint64_t bytes) {
    auto files =
        RunFiles::open(folder_.string(), {.tensorboard = true, .wandb = WandbRun{.config = "{}"}},
                       {.tracker_bytes = bytes});
    EXPECT_TRUE(files);
    return *std::move(files);
  };
  const auto size_of = [this](const char* tracker) {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / tracker))
      bytes += entry.is_regular_file() ? entry.file_size() : 0;
    return bytes;
  };
  ASSERT_TRUE(open()->take_up("name: x\n"));
  std::vector<std::string> warnings;
  {
    const auto files = tracked(20'000);
    for (int step = 1; step <= 1000; ++step) {
      ASSERT_TRUE(files->metrics(R"({"step":)" + std::to_string(step) + R"(,"loss":0.5})"));
      std::ranges::move(files->take_warnings(), std::back_inserter(warnings));
    }
  }
  ASSERT_EQ(warnings.size(), 2U) << "each tracker says it once";
  for (const std::string& warning : warnings)
    EXPECT_NE(warning.find("retention.tracker_bytes"), std::string::npos) << warning;
  EXPECT_EQ(steps_in("metrics.jsonl").back(), 1000);
  const auto expect_full = [&] {
    for (const char* tracker : {"tensorboard", "wandb"}) {
      EXPECT_GT(size_of(tracker), 15'000U) << tracker;
      EXPECT_LE(size_of(tracker), 20'000U + kEndBytes) << tracker;
    }
  };
  expect_full();
  {
    const auto files = tracked(20'000);
    ASSERT_TRUE(files->metrics(R"({"step":1001})"));
    EXPECT_EQ(files->take_warnings().size(), 2U) << "the same limit, and again no room";
    ASSERT_TRUE(files->result("{}"));
  }
  expect_full();
  const auto files = tracked(10'000'000);  // a larger one: the lines that are missing come
  ASSERT_TRUE(files->metrics(R"({"step":1002,"loss":0.5})"));
  EXPECT_TRUE(files->take_warnings().empty());
  for (const char* tracker : {"tensorboard", "wandb"}) EXPECT_GT(size_of(tracker), 40'000U);
}

// wandb needs to know how a run ended, and its last figures.
TEST_F(RunFilesTest, AFullTrackerIsToldTheEnd) {
  auto files = RunFiles::open(folder_.string(), {.wandb = WandbRun{.config = "{}"}},
                              {.tracker_bytes = 20'000});
  ASSERT_TRUE(files);
  for (int step = 1; step <= 400; ++step)
    ASSERT_TRUE((*files)->metrics(R"({"step":)" + std::to_string(step) + R"(,"loss":0.5})"));
  EXPECT_EQ((*files)->take_warnings().size(), 1U);
  const auto size = [this] {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "wandb"))
      if (entry.path().extension() == ".wandb") bytes += entry.file_size();
    return bytes;
  };
  const auto before = size();
  ASSERT_TRUE((*files)->result(R"({"state":"Succeeded"})"));
  EXPECT_GT(size(), before) << "the summary, and how it ended";
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
