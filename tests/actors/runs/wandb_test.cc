// A run as Weights & Biases reads it, over several resumptions of it.
//
// Tests actors/runs/wandb.h, actors/runs/wandb_log.h, actors/runs/wandb_records.h,
// actors/runs/wandb_kept.h, actors/runs/wandb_rows.h, actors/runs/wandb_samples.h.
#include "actors/runs/wandb.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "actors/runs/run_files.h"
#include "actors/runs/wandb_log.h"
#include "runtime/base/digest.h"
#include "runtime/base/log.h"
#include "runtime/base/rng.h"
#include "tests/actors/runs/metrics_lines.h"
#include "tests/actors/runs/run_folder.h"
#include "tests/actors/runs/wandb_file_reader.h"
#include "tests/seeds.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string evaluation_of(std::int64_t version) {
  return R"({"eval":"periodic","step":)" + std::to_string(version) + R"(,"val/reward/mean":0.5})";
}

class WandbTest : public testing::Test {
 protected:
  WandbTest() {
    job_.name = "arith-1";
    job_.project = "sums";
    job_.group = "seeds";
    job_.notes = "a \"note\"";
    job_.tags = {"small", "cpu"};
    job_.config = R"({"learner":{"optimizer":{"lr":0.001}},"seed":3})";
  }
  // One incarnation of the run as the exchange leads it: a resumed one first drops the lines of
  // later steps.
  void incarnation(std::int64_t first, std::int64_t last, int nth = 1,
                   const char* state = nullptr) {
    auto files = RunFiles::open(run_.string(), {.wandb = job_}, limits_);
    ASSERT_TRUE(files) << files.error().message;
    if (fs::file_size(metrics_) > 0) {
      ASSERT_TRUE((*files)->rewind_metrics(StepId{first - 1}));
    }
    for (std::int64_t step = first; step <= last; ++step)
      ASSERT_TRUE((*files)->metrics(line_of(step, nth)));
    if (state) {
      ASSERT_TRUE((*files)->result(dump_json({{"state", state}})));
    }
  }
  WandbWriter writer(std::int64_t seconds = kNow) const {
    return WandbWriter(run_, job_, [seconds] { return seconds * 1000; });
  }
  // A line goes into metrics.jsonl first.
  void add(WandbWriter& to, const std::string& line) const {
    RunFolder::append(metrics_, line + "\n");
    const auto added = to.add(line);
    ASSERT_TRUE(added) << render(added.error());
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& folder : fs::directory_iterator(run_ / "wandb"))
      for (const auto& entry : fs::directory_iterator(folder.path()))
        if (entry.path().extension() == ".wandb") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  // WN-1: the rows of all files, without their times and tables, are the lines; of a run that has
  // not ended, without the row that waits for the next step.
  void expect_rows_are_lines(bool ended = false) const {
    std::vector<json> rows, lines;
    for (const fs::path& file : files())
      for (json row : wandb_content(file).rows) {
        for (const char* key : {"_runtime", "_timestamp", "val/samples", "train/samples"})
          row.erase(key);
        rows.push_back(std::move(row));
      }
    std::vector<json> evaluations;  // that wait for a row
    std::ifstream text(metrics_);
    for (std::string each; std::getline(text, each);) {
      json line = parse_json(each);
      const json step = line["step"];
      const bool evaluation = line.contains("eval");
      for (auto it = line.begin(); it != line.end();)
        it = !it->is_number() || it.key() == "step" ? line.erase(it) : std::next(it);
      line[evaluation ? "val/step" : "_step"] = step;
      if (!evaluation) lines.push_back(line);
      if (evaluation) evaluations.push_back(line);
      if (evaluation && lines.empty()) lines.push_back({{"_step", 0}});
      if (evaluations.empty() || lines.back().contains("val/step")) continue;
      lines.back().update(evaluations.front());
      evaluations.erase(evaluations.begin());
    }
    if (!ended && !lines.empty()) lines.pop_back();
    EXPECT_EQ(rows, lines);
  }

  const RunFolder folder_;
  const fs::path run_ = folder_.run("arith-1");
  const fs::path metrics_ = run_ / "metrics.jsonl";
  WandbRun job_;
  exchange::FileLimits limits_;
};

TEST_F(WandbTest, AFileHasTheRunItsConfigurationAndARowPerLine) {
  incarnation(1, 5, 1, "Succeeded");
  expect_rows_are_lines(/*ended=*/true);
  ASSERT_EQ(files().size(), 1U);
  const fs::path file = files()[0];
  const WandbContent content = wandb_content(file);
  const std::string id = content.run.bytes.at(1);
  EXPECT_EQ(id.size(), 8U);
  EXPECT_EQ(file.filename(), "run-" + id + ".wandb");
  const std::string folder = file.parent_path().filename();
  EXPECT_TRUE(folder.starts_with("offline-run-20") && folder.ends_with("-" + id)) << folder;
  EXPECT_EQ(folder.size(), 12 + 15 + 1 + id.size());
  EXPECT_EQ(content.run.bytes.at(3), "sums");
  EXPECT_FALSE(content.run.bytes.contains(2)) << "no entity: the user's own";
  EXPECT_EQ(content.run.bytes.at(6), "seeds");
  EXPECT_EQ(content.run.bytes.at(8), "arith-1");
  EXPECT_EQ(content.run.bytes.at(9), "a \"note\"");
  EXPECT_EQ(content.tags, (std::vector<std::string>{"small", "cpu"}));
  EXPECT_FALSE(content.run.numbers.contains(24)) << "nothing is resumed";
  EXPECT_EQ(content.config, parse_json(job_.config));
  EXPECT_EQ(content.summary["critic/rewards/mean"], 0.5);
  EXPECT_EQ(content.summary["_step"], 5);
  EXPECT_EQ(content.rows[2]["_runtime"], 1006.0);
  EXPECT_EQ(content.exits, 1);
  EXPECT_EQ(content.exit_code, 0);
  EXPECT_EQ(parse_json(*read_file(file.parent_path() / "files/wandb-summary.json")),
            content.summary);
}

// wandb counts a step on that comes twice, and all steps behind it with it.
TEST_F(WandbTest, EvaluationsAreDrawnOverTheirVersions) {
  WandbWriter to = writer();
  for (const std::string& line :
       {evaluation_of(-1), evaluation_of(0), line_of(1), line_of(2), line_of(3), evaluation_of(2),
        evaluation_of(3), line_of(4), line_of(5), evaluation_of(5)})
    add(to, line);
  expect_rows_are_lines();
  ASSERT_TRUE(to.end(R"({"state":"Succeeded"})"));
  expect_rows_are_lines(/*ended=*/true);
  const WandbContent content = wandb_content(files().at(0));
  std::vector<json> steps, versions;
  for (const json& row : content.rows) {
    steps.push_back(row["_step"]);
    versions.push_back(row.value("val/step", json()));
  }
  EXPECT_EQ(json(steps), json({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(json(versions), json({-1, 0, nullptr, 2, 3, 5}));
  EXPECT_EQ(content.globs, (std::vector<std::string>{"", "val/*"}));
}

TEST_F(WandbTest, EvaluationsThatFindNoRowComeAtTheEnd) {
  WandbWriter to = writer();
  for (const std::string& line : {line_of(1), evaluation_of(0), evaluation_of(1)}) add(to, line);
  ASSERT_TRUE(to.end(R"({"state":"Succeeded"})"));
  const auto rows = wandb_content(files().at(0)).rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1]["_step"], 2);
  EXPECT_EQ(rows[1]["val/step"], 1);
}

TEST_F(WandbTest, SamplesAreTablesBesideTheirEvaluation) {
  WandbWriter to = writer();
  const auto sample = [](std::int64_t step, const char* kind, const std::string& prompt) {
    json line = {{"step", step}, {"prompt", prompt}, {"reward", 1}, {"answer", {1, 2}}};
    if (kind) line["eval"] = kind;
    return dump_json(line);
  };
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(to.sample(sample(1, nullptr, "p" + std::to_string(i))));
  ASSERT_TRUE(to.sample(sample(1, "periodic", std::string(10'000, 'x'))));
  ASSERT_TRUE(to.sample(sample(2, "periodic", "of the next")));
  ASSERT_TRUE(to.sample("no json"));
  for (const std::string& line : {line_of(1), evaluation_of(1), line_of(2)}) add(to, line);
  const WandbContent content = wandb_content(files().at(0));
  expect_rows_are_lines();
  ASSERT_EQ(content.rows.size(), 1U);
  ASSERT_EQ(content.files.size(), 2U);
  const json value = content.rows[0].at("val/samples");
  EXPECT_EQ(value["_type"], "table-file");
  EXPECT_EQ(value["path"], content.files[1]);
  const std::string text =
      *read_file(files()[0].parent_path() / "files" / value["path"].get<std::string>());
  EXPECT_EQ(value["size"], text.size());
  EXPECT_EQ(value["sha256"], sha256_hex(std::as_bytes(std::span(text))));
  const json table = parse_json(text);
  EXPECT_EQ(table["columns"].size(), value["ncols"]);
  ASSERT_EQ(table["data"].size(), 1U);
  EXPECT_LT(table["data"][0][1].get<std::string>().size(), 9000U);
  EXPECT_EQ(table["data"][0][3], "[1,2]");
  EXPECT_EQ(content.rows[0].at("train/samples")["nrows"], kTrainingRowsMax);
  EXPECT_EQ(content.summary["val/samples"], value);
}

TEST_F(WandbTest, TablesOfTheLastRowSurviveAResume) {
  WandbWriter to = writer();
  add(to, line_of(1));
  ASSERT_TRUE(to.sample(R"({"step":1,"eval":"final","prompt":"p","reward":1})"));
  add(to, evaluation_of(1));
  ASSERT_TRUE(to.end(R"({"state":"Succeeded"})"));
  WandbWriter resumed = writer(kNow + 60);
  add(resumed, line_of(2));
  add(resumed, line_of(3));
  expect_rows_are_lines();
  const WandbContent content = wandb_content(files().at(0));
  EXPECT_TRUE(content.rows.at(0).contains("val/samples"));
  EXPECT_TRUE(content.summary.contains("val/samples"));
  EXPECT_EQ(content.rows.at(0)["_timestamp"], static_cast<double>(kNow)) << "it was not rewritten";
}

TEST_F(WandbTest, WN1AResumedRunGoesOnInItsFile) {
  incarnation(1, 7);  // killed
  incarnation(5, 6, 2, "Cancelled");
  expect_rows_are_lines(/*ended=*/true);
  EXPECT_EQ(wandb_content(files().at(0)).exit_code, 255);
  job_.config = R"({"seed":4})";
  incarnation(7, 9, 3, "Failed");
  expect_rows_are_lines(/*ended=*/true);
  ASSERT_EQ(files().size(), 1U);
  const WandbContent content = wandb_content(files()[0]);
  EXPECT_EQ(content.exits, 1) << "that of the run's end";
  EXPECT_EQ(content.exit_code, 1);
  EXPECT_EQ(content.config["seed"], 4);
  EXPECT_EQ(content.summary["_step"], 9);
}

TEST_F(WandbTest, WN1ATornEndAndLinesThatAPowerCutTookAreMadeUpFor) {
  incarnation(1, 5);
  const fs::path file = files().at(0);
  const std::uint64_t bytes = fs::file_size(file);
  for (std::uint64_t lost = 1; lost < 300; lost += 17) {
    fs::resize_file(file, bytes - lost);
    incarnation(6, 6, static_cast<int>(lost));
    expect_rows_are_lines();
    RunFolder::replace(metrics_, line_of(1) + "\n" + line_of(2) + "\n");
    incarnation(3, 5);
    expect_rows_are_lines();
  }
  ASSERT_EQ(files().size(), 1U);
}

TEST_F(WandbTest, WN1ARunWithoutATrackerGetsItsHistory) {
  for (std::int64_t step = 1; step <= 3000; ++step)
    RunFolder::append(metrics_, line_of(step) + "\n");
  WandbWriter to = writer();
  add(to, line_of(3001));
  expect_rows_are_lines();
  const WandbContent content = wandb_content(files().at(0));
  // On the run's clock line 1 is at 1002 s and line 3001 at 7002 s.
  EXPECT_EQ(content.rows.front()["_timestamp"], kNow - 6000.0);
  EXPECT_EQ(content.rows.back()["_timestamp"], kNow - 2.0) << "3000; 3001 waits";
}

TEST_F(WandbTest, WN1StepsThatHaveGoneFromTheMetricsStayInTheFile) {
  limits_.metrics_bytes = 4000;  // some thirty lines
  incarnation(1, 100);           // killed
  ASSERT_LT(scalars_in(metrics_).size(), 40U);
  incarnation(98, 100, 2);
  incarnation(31, 60, 3);  // from a checkpoint among the steps of which half have gone
  incarnation(61, 61, 4, "Succeeded");
  ASSERT_EQ(files().size(), 1U);
  const auto rows = wandb_content(files()[0]).rows;
  ASSERT_EQ(rows.size(), 61U);
  for (std::int64_t step = 1; step <= 61; ++step) {
    const json& row = rows[static_cast<std::size_t>(step - 1)];
    EXPECT_EQ(row["_step"], step);
    const int nth = step <= 30 ? 1 : step <= 60 ? 3 : 4;
    EXPECT_EQ(row["tandem/wall_seconds"], static_cast<double>(step) * 2 + nth * 1000.0) << step;
  }
}

// Random incarnations, of which some are killed and some were sent, with evaluations that end late,
// and metrics that are thinned again and again: the files have each step once, as it was trained
// last unless it was sent before, and no evaluation twice.
TEST_F(WandbTest, WN1HistoriesOfAThinnedRunAreWhole) {
  for_seeds(8, [this](std::uint64_t seed) {
    Rng rng(seed);
    fs::remove_all(run_ / "wandb");
    RunFolder::replace(metrics_, "");
    std::map<std::int64_t, json> trained;  // the clock of each step, of its newest training
    std::int64_t last = 0, sent = 0;
    for (int nth = 1; nth <= 6; ++nth) {
      const exchange::FileLimits limits{.metrics_bytes = 2000 + rng.below(8000)};
      auto run = RunFiles::open(run_.string(), {.wandb = job_}, limits);
      ASSERT_TRUE(run);
      const auto from = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(last) + 1));
      ASSERT_TRUE((*run)->rewind_metrics(StepId{from}));
      last = from + 1 + static_cast<std::int64_t>(rng.below(80));
      for (std::int64_t step = from + 1; step <= last; ++step) {
        const std::string line = line_of(step, nth);
        if (step > sent) trained[step] = parse_json(line)["tandem/wall_seconds"];
        ASSERT_TRUE((*run)->metrics(line));
        if (rng.below(5) == 0 && step > from + 4) {
          const auto lag = static_cast<std::int64_t>(rng.below(4));
          ASSERT_TRUE((*run)->metrics(evaluation_of(step - lag)));
        }
      }
      trained.erase(trained.upper_bound(std::max(last, sent)), trained.end());
      const bool ended = rng.below(2) == 0;
      if (ended) {
        ASSERT_TRUE((*run)->result(R"({"state":"Cancelled"})"));
      }
      std::vector<json> rows;
      for (const fs::path& file : files())
        for (json& row : wandb_content(file).rows) rows.push_back(std::move(row));
      // The row that waits for the next step is not there; without steps, evaluations have rows.
      std::map<std::int64_t, json> shown;
      std::int64_t before = -1;
      for (const json& row : rows) {
        ASSERT_GT(row["_step"], before) << row;
        before = row["_step"];
        if (row.contains("tandem/wall_seconds")) shown[before] = row["tandem/wall_seconds"];
      }
      auto expected = trained;
      if (!ended && !expected.empty() && last > sent) expected.erase(std::prev(expected.end()));
      ASSERT_EQ(json(shown), json(expected)) << "incarnation " << nth;
      if (ended && rng.below(3) == 0) {
        RunFolder::append(files().back().string() + ".synced", "");
        sent = std::max(sent, before);
      }
    }
  });
}

TEST_F(WandbTest, WN2AFileThatWasSentIsNotChanged) {
  incarnation(1, 7, 1, "Cancelled");
  const fs::path sent = files().at(0);
  RunFolder::append(sent.string() + ".synced", "");
  const std::string bytes = *read_file(sent);
  incarnation(5, 9, 2);  // 5 to 7 were sent, and are trained anew
  incarnation(9, 11, 3, "Succeeded");
  ASSERT_EQ(files().size(), 2U) << "the second one was not sent, and goes on";
  EXPECT_EQ(*read_file(sent), bytes);
  const WandbContent first = wandb_content(sent), second = wandb_content(files()[1]);
  EXPECT_LT(sent.parent_path(), files()[1].parent_path());
  EXPECT_EQ(second.run.bytes.at(1), first.run.bytes.at(1)) << "the id";
  EXPECT_EQ(second.run.numbers.at(24), 1U) << "resume";
  ASSERT_EQ(first.rows.size(), 7U);
  ASSERT_EQ(second.rows.size(), 4U) << "8 to 11: no step is sent twice";
  EXPECT_EQ(second.rows[0]["_step"], 8);
  EXPECT_EQ(second.rows[0]["tandem/wall_seconds"], 2016.0);
  EXPECT_EQ(second.rows[1]["tandem/wall_seconds"], 3018.0);
  EXPECT_EQ(second.exits, 1);
}

TEST_F(WandbTest, WN2AnEvaluationThatWasNotSentIsSentLater) {
  WandbWriter to = writer();
  for (const std::string& line :
       {line_of(1), evaluation_of(0), line_of(2), evaluation_of(1), line_of(3)})
    add(to, line);
  RunFolder::append(files().at(0).string() + ".synced", "");  // with the rows 1 and 2
  WandbWriter further = writer(kNow + 1);
  for (const std::string& line : {evaluation_of(2), line_of(4)}) add(further, line);
  const auto rows = wandb_content(files().at(1)).rows;
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["_step"], 3);
  EXPECT_EQ(rows[0]["val/step"], 2);
}

TEST_F(WandbTest, WhatOthersPutThereIsLeftAlone) {
  const fs::path wandb = run_ / "wandb";
  for (const char* name : {"offline-run-20990101_000000-ABC", "run-20260101_000000-abc", "logs"})
    fs::create_directories(wandb / name);
  const fs::path damaged = wandb / "offline-run-20200101_000000-abcd";
  fs::create_directories(damaged);
  RunFolder::replace(damaged / "run-abcd.wandb", "not ours");
  WandbWriter to = writer();
  add(to, line_of(1));
  add(to, line_of(2));
  EXPECT_EQ(*read_file(damaged / "run-abcd.wandb"), "not ours");
  ASSERT_EQ(files().size(), 2U);
  EXPECT_EQ(wandb_content(files()[1]).rows.size(), 1U);
}

TEST_F(WandbTest, AFullDiskEndsTheFilesOfOneIncarnationAlone) {
  for (std::int64_t step = 1; step <= 200; ++step)
    RunFolder::append(metrics_, line_of(step) + "\n");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit narrow = before;
  narrow.rlim_cur = 20'000;  // bytes of a file: within the history
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &narrow), 0);
  const auto failed = writer().add(line_of(200));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().where.find("/wandb/offline-run-"), std::string::npos);
  EXPECT_FALSE(failed.error().help.empty());
  WandbWriter to = writer(kNow + 1);
  add(to, line_of(201));
  expect_rows_are_lines();
}

TEST_F(WandbTest, AFolderThatCannotBeWrittenIsSaidOnceAndTheMetricsGoOn) {
  const ScopedLogging logging("test", LogLevel::kWarnings);
  RunFolder::replace(run_ / "wandb", "a file where the folder would be");
  testing::internal::CaptureStderr();
  incarnation(1, 4, 1, "Succeeded");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(scalars_in(metrics_).size(), 4u);
  const std::size_t first = said.find("event=wandb_stopped");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_NE(said.find((run_ / "wandb").string(), first), std::string::npos) << said;
  EXPECT_EQ(said.find("event=wandb_stopped", first + 1), std::string::npos) << said;
  EXPECT_EQ(said.find("help=\";"), std::string::npos) << said;
}

TEST_F(WandbTest, AFolderThatCannotBeWrittenIsToldToTheRun) {
  RunFolder::replace(run_ / "wandb", "a file where the folder would be");
  auto files = RunFiles::open(run_.string(), {.wandb = job_});
  for (int step = 1; step <= 3; ++step) ASSERT_TRUE((*files)->metrics(line_of(step)));
  const auto warnings = (*files)->take_warnings();
  ASSERT_EQ(warnings.size(), 1U) << "once";
  for (const std::string& part :
       {std::string("the tracker wandb"), (run_ / "wandb").string(), std::string("goes on")})
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
  EXPECT_EQ(warnings[0].find("; ;"), std::string::npos) << warnings[0];
  EXPECT_TRUE((*files)->take_warnings().empty());
}

// Records of all lengths about the ends of blocks.
TEST(WandbLog, RecordsSurviveTheirFragments) {
  EXPECT_EQ(crc32_of("123456789"), 0xCBF43926u);
  const RunFolder folder;
  const fs::path path = folder.home / "run.wandb";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    std::string file(kWandbHeader);
    std::vector<std::string> records;
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t room = 32768 - file.size() % 32768;
      const std::uint64_t lengths[] = {0, rng.below(200), rng.below(100'000),
                                       room >= 12 ? room - rng.below(12) : room,
                                       room + rng.below(16)};
      records.emplace_back(lengths[rng.below(5)], static_cast<char>('a' + i));
      append_framed(file, 0, records.back());
    }
    RunFolder::replace(path, file);
    EXPECT_EQ(wandb_records(path), records);
    auto reader = WandbLogReader::open(path);
    ASSERT_TRUE(reader);
    for (const std::string& record : records) EXPECT_EQ(reader->next(), record);
    EXPECT_EQ(reader->end(), file.size());
    EXPECT_EQ(reader->next(), std::nullopt);
    // A byte that is wrong ends the reading there.
    file[rng.below(file.size() - 7) + 7] ^= 0x10;
    RunFolder::replace(path, file);
    auto damaged = WandbLogReader::open(path);
    std::size_t whole = 0;
    for (auto record = damaged->next(); record; record = damaged->next())
      EXPECT_EQ(*record, records.at(whole++));
    EXPECT_LE(damaged->end(), file.size());
  }
}

}  // namespace
}  // namespace tandem::runs
