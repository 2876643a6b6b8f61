// The curves that TensorBoard shows of a run, over several resumptions of it.
#include "actors/runs/tensorboard.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "actors/runs/run_files.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "tests/actors/runs/event_file_reader.h"
#include "tests/actors/runs/metrics_lines.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

class TensorboardTest : public testing::Test {
 protected:
  // One process of the run as the exchange leads it: a resumed one first drops the lines of later
  // steps.
  void life(std::int64_t first, std::int64_t last, int nth = 1, bool tensorboard = true) {
    auto files = RunFiles::open(run_.string(), {.tensorboard = tensorboard}, limits_);
    ASSERT_TRUE(files) << files.error().message;
    if (fs::file_size(metrics_) > 0) {
      ASSERT_TRUE((*files)->rewind_metrics(StepId{first - 1}));
    }
    for (std::int64_t step = first; step <= last; ++step)
      ASSERT_TRUE((*files)->metrics(line_of(step, nth)));
  }
  TensorboardWriter writer(std::int64_t seconds) const {
    return TensorboardWriter(run_, [seconds] { return seconds * 1000; });
  }
  void keep(const std::string& line) const { RunFolder::append(metrics_, line + "\n"); }
  void expect_all_is_shown(std::size_t steps) const {
    const ScalarsOfSteps held = scalars_in(metrics_);
    EXPECT_EQ(held.size(), steps);
    EXPECT_EQ(shown_of(events_), held);
  }

  const RunFolder folder_;
  const fs::path run_ = folder_.run("arith-1");
  const fs::path metrics_ = run_ / "metrics.jsonl";
  const fs::path events_ = run_ / "tensorboard";
  exchange::FileLimits limits_;
};

TEST_F(TensorboardTest, ShowsWhatTheMetricsHold) {
  life(1, 5);
  expect_all_is_shown(5);
  const auto files = event_files_in(events_);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(files[0].filename().string().starts_with("events.out.tfevents."));
  const auto events = read_event_file(files[0]);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[1].scalars, (Scalars{{"critic/rewards/mean", 0.1f},
                                        {"tandem/ledger/issued", 16.0f},
                                        {"tandem/wall_seconds", 1002.0f}}))
      << "the null is left out";
  for (const ReadEvent& event : events) {
    EXPECT_FALSE(event.is_start) << "there is nothing to forget";
    EXPECT_NEAR(event.wall_time, static_cast<double>(unix_ms()) / 1000, 3600);
  }
}

// An evaluation ends when later steps are written already, and one of them may be lost with the end
// of its file, or be the first that a resumed run adds.
TEST_F(TensorboardTest, TB1EvaluationsAreShownAtTheirVersions) {
  const auto evaluation = [](std::int64_t version) {
    return R"({"eval":"periodic","step":)" + std::to_string(version) + R"(,"val/reward/mean":0.5})";
  };
  {
    TensorboardWriter events = writer(kNow);
    const std::string lines[] = {evaluation(-1), evaluation(0), line_of(1),    line_of(2),
                                 line_of(3),     line_of(4),    evaluation(2), line_of(5)};
    for (const std::string& line : lines) {
      keep(line);
      ASSERT_TRUE(events.add(line));
    }
  }
  EXPECT_EQ(shown_of(events_), scalars_in(run_ / "metrics.jsonl"));
  keep(evaluation(4));  // its event was lost with the process
  TensorboardWriter events = writer(kNow);
  keep(evaluation(5));
  ASSERT_TRUE(events.add(evaluation(5)));
  keep(line_of(6));
  ASSERT_TRUE(events.add(line_of(6)));
  EXPECT_EQ(shown_of(events_), scalars_in(run_ / "metrics.jsonl"));
}

TEST_F(TensorboardTest, ALineIsShownOnceItIsWritten) {
  TensorboardWriter events = writer(kNow);
  EXPECT_FALSE(fs::exists(events_));
  for (std::int64_t step = 1; step <= 3; ++step) {
    keep(line_of(step));
    ASSERT_TRUE(events.add(line_of(step)));
    expect_all_is_shown(static_cast<std::size_t>(step));
  }
}

TEST_F(TensorboardTest, NumbersThatAreNoFloatsAreLeftOut) {
  TensorboardWriter events = writer(kNow);
  ASSERT_TRUE(events.add(R"({"step":1,"a":1e300,"b":-1e300,"c":3.4e38,"d":null,"e":"text"})"));
  ASSERT_TRUE(events.add(R"({"step":2,"a":null})"));
  EXPECT_EQ(shown_of(events_), (ScalarsOfSteps{{1, {{"c", 3.4e38f}}}, {2, {}}}));
}

TEST_F(TensorboardTest, TB1StepsThatAreTrainedAnewReplaceTheFormer) {
  life(1, 7);
  life(5, 6, 2);
  life(5, 9, 3);
  expect_all_is_shown(9);
  const auto files = event_files_in(events_);
  ASSERT_EQ(files.size(), 3u);
  const auto second = read_event_file(files[1]);
  ASSERT_EQ(second.size(), 4u);
  EXPECT_EQ(second[0].file_version, "brain.Event:2");
  EXPECT_TRUE(second[1].is_start);
  EXPECT_EQ(second[1].step, 5) << "the first that is written anew";
}

TEST_F(TensorboardTest, TB1ARunWithoutEventFilesGetsItsHistory) {
  life(1, 3000, 1, /*tensorboard=*/false);
  EXPECT_FALSE(fs::exists(events_)) << "it was told to write none";
  life(2990, 2991, 2);
  expect_all_is_shown(2991);
  const auto events = read_event_file(event_files_in(events_).at(0));
  ASSERT_EQ(events.size(), 2992u);
  EXPECT_FALSE(events[1].is_start);
  // On the run's clock line 1 is at 1002 s and line 2989 at 6978 s.
  EXPECT_NEAR(events[2989].wall_time - events[1].wall_time, 5976, 0.001);
}

TEST_F(TensorboardTest, TB1LinesThatHaveGoneFromTheMetricsAreStillShown) {
  limits_.metrics_bytes = 4000;  // some thirty lines
  life(1, 100);
  ASSERT_LT(scalars_in(metrics_).size(), 40u);
  ScalarsOfSteps expected = shown_of(events_);
  ASSERT_EQ(expected.size(), 100u);
  // From checkpoints among the steps of which half have gone.
  for (const std::int64_t checkpoint : {50, 45, 44}) {
    SCOPED_TRACE(checkpoint);
    expected.erase(expected.upper_bound(checkpoint), expected.end());
    life(checkpoint + 1, checkpoint + 5, 2);
    ScalarsOfSteps shown = shown_of(events_);
    EXPECT_EQ(shown.size(), static_cast<std::size_t>(checkpoint) + 5);
    shown.erase(shown.upper_bound(checkpoint), shown.end());
    EXPECT_EQ(shown, expected);
  }
}

// The steps 3 and 4 stay when the first line of a resumed run is an evaluation of version 2.
TEST_F(TensorboardTest, TB1ALateEvaluationForgetsNoStep) {
  life(1, 4);
  const std::string late = R"({"eval":"periodic","step":2,"val/reward/mean":0.5})";
  keep(late);
  TensorboardWriter events = writer(kNow);
  ASSERT_TRUE(events.add(late));
  EXPECT_EQ(shown_of(events_), scalars_in(metrics_));
}

// The second process trains steps of the first one anew and writes no event files.
TEST_F(TensorboardTest, TB1ALifeWithoutEventFilesIsMadeUpForByTheNext) {
  life(1, 5);
  life(4, 8, 2, /*tensorboard=*/false);
  EXPECT_EQ(event_files_in(events_).size(), 1u);
  life(9, 10, 3);
  expect_all_is_shown(10);
}

TEST_F(TensorboardTest, TB1ATornEndIsSkippedAndMadeUpFor) {
  life(1, 5);
  const fs::path first = event_files_in(events_).at(0);
  fs::resize_file(first, fs::file_size(first) - 3);  // killed here
  EXPECT_EQ(shown_of(events_).size(), 4u);
  life(6, 7, 2);
  expect_all_is_shown(7);
  const auto second = read_event_file(event_files_in(events_).at(1));
  ASSERT_EQ(second.size(), 5u);
  EXPECT_EQ(second[1].step, 5) << "START";
  EXPECT_EQ(second[2].step, 5) << "the line that was torn";
}

// The run goes on behind them, so they are of its history.
TEST_F(TensorboardTest, TB1LinesThatAPowerCutTookAreStillShown) {
  life(1, 5);
  const ScalarsOfSteps before = shown_of(events_);
  RunFolder::replace(metrics_, line_of(1) + "\n" + line_of(2) + "\n");
  life(6, 6, 2);
  ScalarsOfSteps shown = shown_of(events_);
  EXPECT_EQ(shown.size(), 6u);
  shown.erase(6);
  EXPECT_EQ(shown, before);
  life(3, 4, 3);  // from an older checkpoint
  expect_all_is_shown(4);
}

TEST_F(TensorboardTest, TB1AFullDiskEndsTheFilesOfOneLifeAlone) {
  for (std::int64_t step = 1; step <= 200; ++step) keep(line_of(step));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit narrow = before;
  narrow.rlim_cur = 5000;  // bytes of a file: within the history
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &narrow), 0);
  const auto failed = writer(kNow).add(line_of(201));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().where.starts_with(events_.string())) << failed.error().where;
  EXPECT_FALSE(failed.error().help.empty());
  const std::size_t shown = shown_of(events_).size();
  EXPECT_GT(shown, 0u);
  EXPECT_LT(shown, 200u);
  keep(line_of(201));
  keep(line_of(202));
  ASSERT_TRUE(writer(kNow + 1).add(line_of(202)));
  expect_all_is_shown(202);
}

TEST_F(TensorboardTest, TB2ANewNameSortsAfterAllThatAreThere) {
  std::vector<std::string> contents;
  const std::vector<std::int64_t> clocks = {kNow, kNow, kNow - 5000, 5, kNow + 9};
  for (std::size_t life = 0; life < clocks.size(); ++life) {
    const auto step = static_cast<std::int64_t>(life) + 1;
    keep(line_of(step));
    ASSERT_TRUE(writer(clocks[life]).add(line_of(step)));
    const auto files = event_files_in(events_);
    ASSERT_EQ(files.size(), life + 1);
    for (std::size_t i = 0; i < life; ++i) EXPECT_EQ(*read_file(files[i]), contents[i]);
    contents.push_back(*read_file(files.back()));
    expect_all_is_shown(life + 1);
  }
  RunFolder::replace(events_ / "events.out.tfevents.9999999999.host.1.0", "");
  const auto none = writer(kNow).add(line_of(9));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().where.find("9999999999"), std::string::npos) << none.error().where;
}

TEST_F(TensorboardTest, WhatOthersWroteIsNotMistakenForOurs) {
  fs::create_directories(events_);
  RunFolder::replace(events_ / "events.out.tfevents.0000000001.host.1.0", std::string(999, '\t'));
  RunFolder::replace(events_ / "notes.txt", "mine");
  for (std::int64_t step = 1; step <= 3; ++step) keep(line_of(step));
  ASSERT_TRUE(writer(kNow).add(line_of(3)));
  expect_all_is_shown(3);
}

TEST_F(TensorboardTest, AFolderThatCannotBeWrittenIsSaidOnceAndTheMetricsGoOn) {
  const ScopedLogging logging("test", LogLevel::kWarnings);
  RunFolder::replace(events_, "a file where the folder would be");
  testing::internal::CaptureStderr();
  life(1, 4);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(scalars_in(metrics_).size(), 4u);
  const std::size_t first = said.find("event=tensorboard_stopped");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_NE(said.find(events_.string(), first), std::string::npos) << said;
  EXPECT_EQ(said.find("event=tensorboard_stopped", first + 1), std::string::npos) << said;
}

}  // namespace
}  // namespace tandem::runs
