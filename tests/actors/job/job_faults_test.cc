// Several faults of one job: each is told once, at its own place and in the order of the text, and
// none follows from another one.
#include "actors/job/job_faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/rng.h"
#include "tests/actors/job/job_folder.h"
#include "tests/seeds.h"

namespace tandem::job {
namespace {

using Lines = std::vector<std::string>;

// "PLACE MESSAGE" of each error that is told.
Lines told(const Result<LoadedJob>& job) {
  if (job) return {"accepted"};
  const Error& error = job.error();
  Lines lines{error.where + " " + error.message};
  for (const FurtherError& further : error.further)
    lines.push_back(further.where + " " + further.message);
  return lines;
}

TEST(JobFaults, EveryFaultOfReadingIsToldAtItsPlace) {
  const JobFolder folder;
  const auto job = folder.parse(
      "name: 17\n"
      "modle: { path: models/tiny }\n"
      "rollout:\n"
      "  n: many\n"
      "  temperatur: 1.0\n"
      "  top_p: 1.5\n"
      "  n: 8\n"
      "learner: 5\n"
      "data: { shuffle: 3, [a]: 4 }\n",
      {"rollout.top_k=x", "rollout.n", "eval={n: 0, m: 1}", "rollout.n=[1"});
  EXPECT_EQ(told(job),
            (Lines{"job.yaml:1:7 `name` expects a string, found the number 17",
                   "job.yaml:2:1 unknown key `modle`",
                   "job.yaml:4:6 `rollout.n` expects an integer, found the string `many`",
                   "job.yaml:5:3 unknown key `rollout.temperatur`",
                   "job.yaml:6:10 `rollout.top_p` is out of range: 1.5",
                   "job.yaml:7:3 `rollout.n` is given twice",
                   "job.yaml:8:10 `learner` is a section, found the number 5",
                   "job.yaml:9:18 `data.shuffle` expects true or false, found the number 3",
                   "job.yaml:9:21 a key must be a name, found a list",
                   "--set rollout.top_k=x `rollout.top_k` expects an integer, found the string `x`",
                   "--set rollout.n `rollout.n` is not KEY=VALUE",
                   "--set eval={n: 0, m: 1} `eval.n` is out of range: 0",
                   "--set eval={n: 0, m: 1} unknown key `eval.m`",
                   "--set rollout.n=[1 not valid YAML: end of sequence flow not found"}));
  EXPECT_EQ(job.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(job.error().further_left_out, 0u);
  EXPECT_EQ(job.error().further[2].help, "did you mean `rollout.temperature`?");
}

// One command line makes a run per value, and the error says which.
TEST(JobFaults, SeveralValuesOfAKeyThatHasOneLeadToASweep) {
  const JobFolder folder;
  for (const char* set : {"seed=1,2,3", "learner.optimizer.lr=1e-3,3e-3", "data.shuffle=true,false",
                          "async.schedule=fixed_lag,x"}) {
    const auto job = folder.parse(folder.minimal(), {set});
    ASSERT_FALSE(job) << set;
    EXPECT_EQ(job.error().help, "`tandem submit JOB.yaml --sweep " + std::string(set) +
                                    "` makes a run for each of these values");
  }
  EXPECT_EQ(folder.parse(folder.minimal(), {"seed='1,2'"}).error().help, "write it without quotes");
}

TEST(JobFaults, AllMissingKeysAreTold) {
  const JobFolder folder;
  EXPECT_EQ(told(folder.parse("seed: 3\nmodel: { init: random }\nwarm_start:\n  until: {}\n")),
            (Lines{"job.yaml `name` is missing", "job.yaml `data.train_files` is missing",
                   "job.yaml:2:8 `model.path` is missing",
                   "job.yaml:4:3 `warm_start.train_files` is missing",
                   "job.yaml:4:10 `warm_start.until.value` is missing"}));
  EXPECT_EQ(told(folder.parse("name: a\nactors:\n  a: { replicas: 1 }\n  b: {}\n")),
            (Lines{"job.yaml:3:6 `actors.a.command` is missing",
                   "job.yaml:4:6 `actors.b.command` is missing"}));
}

TEST(JobFaults, AllBrokenRulesAreToldInTheOrderOfTheText) {
  const JobFolder folder;
  EXPECT_EQ(
      told(folder.parse("async: { lookahead: 4 }\n" + folder.minimal() +
                            "reward: { pattern: a }\n"
                            "rollout: { block_size: 24, min_tokens: 70, stop: [\"\"] }\n",
                        {"name=\"a b\""})),
      (Lines{"job.yaml:1:10 `async.lookahead` is 4, more than `async.max_staleness`, 2",
             "job.yaml:5:11 `reward.type: exact` does not use `reward.pattern`",
             "job.yaml:6:12 `rollout.block_size` is 24, not a multiple of 16",
             "job.yaml:6:28 `rollout.min_tokens` is 70, more than `data.max_response_length`, 64",
             "job.yaml:6:44 `rollout.stop` holds an empty string",
             "--set name=\"a b\" `a b` cannot name a job"}));
}

TEST(JobFaults, AllMissingFilesAreTold) {
  const JobFolder folder;
  const auto job = folder.parse(
      "name: tiny\n"
      "model: { path: models/none }\n"
      "data: { train_files: [data/train.jsonl, a.jsonl, b.jsonl], val_files: [c.jsonl] }\n"
      "reward: { type: command, command: [./none.py] }\n"
      "actors: { counter: { command: [no-such-program] } }\n");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kFailed);
  const std::string root = folder.root();
  const auto cannot = [&](const std::string& file, const std::string& key) {
    return "cannot read " + root + "/" + file + ", named by `" + key +
           "`: No such file or directory";
  };
  const std::string by_actor = "named by `actors.counter.command`";
  EXPECT_EQ(told(job),
            (Lines{"job.yaml:2:10 " + cannot("models/none/config.json", "model.path"),
                   "job.yaml:3:9 " + cannot("a.jsonl", "data.train_files"),
                   "job.yaml:3:9 " + cannot("b.jsonl", "data.train_files"),
                   "job.yaml:3:60 " + cannot("c.jsonl", "data.val_files"),
                   "job.yaml:4:26 cannot run `" + root + "/none.py`, named by `reward.command`",
                   "job.yaml:5:22 cannot run `no-such-program`, " + by_actor}));
}

TEST(JobFaults, NothingIsToldTwice) {
  const JobFolder folder;
  const auto expect_one = [&](const std::string& yaml, const std::string& line,
                              std::vector<std::string> sets = {}) {
    EXPECT_EQ(told(folder.parse(yaml, std::move(sets))), Lines{line});
  };
  expect_one("name: tiny\nmodel: { path: 3 }\ndata: { train_files: [data/train.jsonl] }\n",
             "job.yaml:2:16 `model.path` expects a string, found the number 3");
  expect_one("name: tiny\nmodel: 3\ndata: { train_files: [data/train.jsonl] }\n",
             "job.yaml:2:8 `model` is a section, found the number 3");
  expect_one("name: tiny\nmodel: { <<: 3 }\ndata: { train_files: [data/train.jsonl] }\n",
             "job.yaml:2:14 `<<` merges a map or a list of maps, found the number 3");
  expect_one(folder.minimal() + "eval: { n: 0, greedy: true }\n",
             "job.yaml:4:12 `eval.n` is out of range: 0");
  expect_one(folder.minimal() + "actors: { Big: { command: 3, replicas: x } }\n",
             "job.yaml:4:11 `actors`: `Big` cannot name a role");
  // Rules about one value, of which mending the first may mend the others.
  expect_one(
      folder.minimal() + "rollout: { n: 1 }\nalgorithm: { filter_groups: { enable: true } }\n",
      "job.yaml:4:12 `algorithm.adv_estimator: grpo` compares the completions of a group, "
      "and `rollout.n` is 1");
  expect_one(folder.minimal() + "eval: { n: 8, greedy: true }\n",
             "job.yaml:4:9 `eval.n` is 8, and with `eval.temperature: 0` all completions of a "
             "prompt are the same");
  expect_one(folder.minimal(),
             "--set reward.command=[cat] `reward.type: exact` does not use `reward.command`",
             {"reward.command=[cat]", "reward.env={ A: b }"});
  expect_one(
      "name: tiny\nmodel: { path: Qwen/Qwen3-0.6B }\ndata: { train_files: [data/train.jsonl] }\n",
      "job.yaml:2:10 there is no folder " + (folder.root() / "Qwen/Qwen3-0.6B").string() +
          ": `Qwen/Qwen3-0.6B` looks like a model's id on the Hugging Face Hub, and "
          "`model.path` is a directory; Tandem downloads nothing");
}

TEST(JobFaults, OneFaultIsShownAsOneError) {
  const JobFolder folder;
  const auto job = folder.parse(folder.minimal() + "rollout:\n  m: 8\n");
  ASSERT_FALSE(job);
  EXPECT_EQ(render(job.error()),
            "error[invalid]: unknown key `rollout.m`\n  --> job.yaml:5:3\n"
            "  help: did you mean `rollout.n`?");
}

TEST(JobFaults, MoreThanTheBoundAreCounted) {
  const JobFolder folder;
  std::string yaml = folder.minimal() + "rollout:\n";
  for (int i = 0; i < 27; ++i) yaml += "  wrong" + std::to_string(i) + ": 1\n";
  const auto job = folder.parse(yaml);
  const Lines lines = told(job);
  ASSERT_EQ(lines.size(), kErrorsToldMax);
  EXPECT_EQ(lines.front(), "job.yaml:5:3 unknown key `rollout.wrong0`");
  EXPECT_EQ(lines.back(), "job.yaml:24:3 unknown key `rollout.wrong19`");
  EXPECT_TRUE(render(job.error()).ends_with("\nand 7 more errors")) << render(job.error());
}

TEST(JobFaults, TheFirstInTheOrderOfTheTextAreKept) {
  for_seeds(20, [](std::uint64_t seed) {
    Rng rng(seed);
    std::vector<SourcePosition> positions;
    for (std::uint64_t i = rng.below(60) + 1; i > 0; --i)
      positions.push_back({.source = rng.below(3),
                           .line = static_cast<int>(rng.below(9)) - 1,
                           .column = static_cast<int>(rng.below(9)),
                           .text = std::to_string(i)});
    JobFaults faults;
    for (const SourcePosition& at : positions) faults.add(at, "m", "h");
    std::ranges::stable_sort(positions, [](const SourcePosition& a, const SourcePosition& b) {
      return std::tie(a.source, a.line, a.column) < std::tie(b.source, b.line, b.column);
    });
    const Error error = faults.error(ErrorCode::kInvalid);
    ASSERT_EQ(error.further.size() + 1, std::min(positions.size(), kErrorsToldMax));
    EXPECT_EQ(error.further.size() + 1 + error.further_left_out, positions.size());
    EXPECT_EQ(error.where, positions[0].text);
    for (std::size_t i = 0; i < error.further.size(); ++i)
      EXPECT_EQ(error.further[i].where, positions[i + 1].text);
  });
}

}  // namespace
}  // namespace tandem::job
