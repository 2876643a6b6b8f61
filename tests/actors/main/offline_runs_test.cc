// The command line where no controller runs: the files of this TANDEM_HOME answer.
#include "actors/main/offline_runs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "actors/runs/kept_events.h"
#include "actors/runs/run_files.h"
#include "runtime/base/json.h"
#include "tests/actors/cli/command_outcome.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using cli::Outcome;
using nlohmann::json;

class OfflineRuns : public testing::Test {
 protected:
  OfflineRuns() {
    std::string pattern = testing::TempDir() + "offline_runs.XXXXXX";
    home_ = ::mkdtemp(pattern.data());
    ::setenv("TANDEM_HOME", home_.c_str(), 1);
    ::unsetenv("TANDEM_ADDRESS");
    for (const auto& [id, reward] : {std::pair("sums-1", 0.25), std::pair("words-1", 0.5)}) {
      fs::create_directories(home_ / "runs" / id / "logs");
      std::ofstream(home_ / "runs" / id / "result.json")
          << json{{"state", "Failed"},
                  {"steps", 5},
                  {"reward_mean", reward},
                  {"reason", "JobFailed"},
                  {"message", "the reward has no answer"}};
    }
    const fs::path run = home_ / "runs/sums-1";
    std::ofstream(run / "logs/learner.0.2.log") << "one\ntwo\n";
    std::ofstream samples(run / "samples.jsonl");
    for (int step = 1; step <= 100; ++step)
      samples << json{{"step", step}, {"prompt", "p"}, {"completion", "c"}, {"reward", 1}} << "\n";
    samples << json{{"step", 2}, {"prompt", "q"}, {"error", "timed out"}} << "\n"
            << json{{"step", 7}, {"prompt", "e"}, {"eval", "final"}} << "\n"
            << R"({"step": 3, "prom)";
    const auto files = runs::RunFiles::open(run.string());
    EXPECT_TRUE((*files)->journal(
        std::vector<exchange::JournalEvent>{exchange::RunEnded{"the reward has no answer"}},
        sqlite::Durability::kKill));
  }
  ~OfflineRuns() override {
    ::unsetenv("TANDEM_HOME");
    fs::remove_all(home_);
  }
  static Outcome run(const std::vector<const char*>& words) {
    return cli::run(words, {.offline = offline_answers});
  }
  static json read(std::vector<const char*> words) {
    words.insert(words.end(), {"-o", "json"});
    const Outcome outcome = run(words);
    EXPECT_TRUE(outcome.ok) << outcome.shown;
    return parse_json(outcome.out);
  }
  fs::path home_;
};

TEST_F(OfflineRuns, AreListedFromTheirFiles) {
  const json all = read({"get", "runs", "--sort-by", "-reward_mean"});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["id"], "words-1");
  EXPECT_EQ(all[0]["state"], "Failed");
  EXPECT_EQ(all[0]["step"], 5);
  EXPECT_EQ(all[0]["reason"], "JobFailed");
  EXPECT_EQ(read({"get", "runs", "sums-1"})["id"], "sums-1");
  EXPECT_EQ(read({"get", "runs", "-j", "sums"}).size(), 1U);
  EXPECT_EQ(run({"get", "runs", "other"}).code, ErrorCode::kNotFound);
  EXPECT_EQ(run({"get", "runs", "--sort-by", "height"}).code, ErrorCode::kInvalid);
}

TEST_F(OfflineRuns, AreDescribedWithTheirReasonAndEvents) {
  for (const char* object : {"run/sums-1", "job/sums-1", "run/sums"}) {
    const Outcome described = run({"describe", object});
    ASSERT_TRUE(described.ok) << described.shown;
    for (const char* part : {"runs/sums-1", "reason: JobFailed", "the reward has no answer",
                             "ended the reward has no answer", "name: learner/0"})
      EXPECT_NE(described.out.find(part), std::string::npos) << part << "\n" << described.out;
    EXPECT_NE(described.err.find("no controller runs"), std::string::npos);
  }
  EXPECT_EQ(run({"describe", "run/smus-1"}).help, "did you mean `sums-1`?");
}

TEST_F(OfflineRuns, NameKeysNearOneThatNoFigureMatches) {
  std::ofstream(home_ / "runs/sums-1/metrics.jsonl")
      << json{{"step", 1}, {"actor/entropy", 0.5}, {"actor/loss", 2}} << "\n";
  EXPECT_EQ(run({"metrics", "sums-1", "--keys", "*entropy"}).out, "step,actor/entropy\n1,0.5\n");
  for (const char* asked : {"actor/entropi", "entropy", "entrop*"}) {
    const Outcome none = run({"metrics", "sums-1", "--keys", asked});
    EXPECT_EQ(none.code, ErrorCode::kNotFound) << none.out;
    EXPECT_EQ(none.help, "did you mean `actor/entropy`?") << asked;
  }
}

TEST_F(OfflineRuns, HaveLogsAndEvents) {
  EXPECT_EQ(run({"logs", "sums-1/learner/0"}).out, "one\ntwo\n");
  EXPECT_EQ(run({"logs", "sums", "--tail", "1"}).out, "learner/0 | two\n");
  EXPECT_EQ(run({"logs", "sums-1/rollout/0"}).code, ErrorCode::kNotFound);
  EXPECT_EQ(read({"events", "-j", "sums"}).size(), 1U);
  EXPECT_EQ(run({"events", "-j", "sums", "-f"}).code, ErrorCode::kUnreachable);
  runs::KeptEvents announced;  // as the controller of a `tandem run` leaves them
  announced.keep_in("sums-1", home_ / "runs/sums-1");
  announced.append({.seq = 1,
                    .time_ms = 1,
                    .kind = "actor",
                    .subject = "sums-1/rollout/0",
                    .message = "restart 1 of 5",
                    .level = messages::EventLevel::kWarning});
  const json events = read({"events", "-j", "sums"});
  ASSERT_EQ(events.size(), 1U) << events;
  EXPECT_EQ(events[0]["message"], "restart 1 of 5");
}

TEST_F(OfflineRuns, HaveTheSamplesThatAControllerShows) {
  EXPECT_EQ(read({"samples", "sums-1"}).size(), 64U) << "as over HTTP";
  EXPECT_EQ(read({"samples", "sums-1"}).front()["step"], 38) << "the newest, oldest first";
  EXPECT_EQ(read({"samples", "sums", "--limit", "1000"}).size(), 101U);
  EXPECT_EQ(read({"samples", "sums-1", "--step", "2"})[1]["prompt"], "q");
  EXPECT_EQ(read({"samples", "sums-1", "--eval"})[0]["prompt"], "e");
  EXPECT_EQ(read({"samples", (home_ / "runs/sums-1").c_str(), "--failed"}).size(), 1U);
  EXPECT_EQ(run({"samples", "other-1"}).code, ErrorCode::kNotFound);
  const Outcome none = run({"samples", "sums-1", "--step", "200"});
  ASSERT_FALSE(none.ok);
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_EQ(none.help, "kept are samples of 100 steps from 1 to 100; the nearest is --step 100");
  EXPECT_EQ(run({"samples", "sums-1", "--limit", "0"}).code, ErrorCode::kInvalid);
}

TEST_F(OfflineRuns, AnswerOnlyForThisHome) {
  const Outcome elsewhere = run({"get", "runs", "--address", "127.0.0.1:1"});
  EXPECT_EQ(elsewhere.code, ErrorCode::kUnreachable) << "another machine's were asked for";
  EXPECT_EQ(run({"get", "jobs"}).code, ErrorCode::kUnreachable);
  ::setenv("TANDEM_ADDRESS", "127.0.0.1:1", 1);
  EXPECT_EQ(run({"get", "runs"}).code, ErrorCode::kUnreachable);
  ::unsetenv("TANDEM_ADDRESS");
}

}  // namespace
}  // namespace tandem::app
