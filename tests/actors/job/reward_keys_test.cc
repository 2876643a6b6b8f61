// The section `reward` of a job file: programs, functions, and rewards of several parts.
//
// Tests actors/job/load_job.h, actors/job/reward_spec.h.
#include <gtest/gtest.h>

#include <algorithm>

#include "actors/job/load_job.h"
#include "actors/job/print_job.h"
#include "actors/job/reward_spec.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

TEST(LoadJob, ShowsTheListThatARewardCommandAsAStringWouldBe) {
  const JobFolder folder;
  const auto help = [&](const std::string& value) {
    const Refused r = refused(
        folder.parse(folder.minimal() + "reward: { type: command, command: " + value + " }\n"));
    EXPECT_HAS(r.message, "`reward.command` expects a list of strings");
    return r.help;
  };
  EXPECT_EQ(help("python3 reward.py"), "reward.command: [python3, reward.py]");
  EXPECT_EQ(help("\"sh -c 'a b'  x\""), "reward.command: [sh, \"-c\", \"a b\", x]");
}

TEST(LoadJob, TakesVariablesAndLimitsOfARewardProgram) {
  const JobFolder folder;
  const std::string command = folder.minimal() + "reward: { type: command, command: [cat], ";
  const auto job = folder.parse(command +
                                "env: { A: \"1\", B_2: x y }, limits: { open_files: null, "
                                "memory_megabytes: 64 } }\n");
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(job->spec.reward.env, (std::map<std::string, std::string>{{"A", "1"}, {"B_2", "x y"}}));
  EXPECT_EQ(job->spec.reward.limits.open_files, std::nullopt);
  EXPECT_EQ(job->spec.reward.limits.memory_megabytes, 64);
  const auto again = folder.parse(print_job(job->spec));
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(again->spec.reward.env, job->spec.reward.env) << "PJ-1";
  EXPECT_HAS(refused(folder.parse(command + "env: { 2A: x } }\n")).message, "cannot name");
  EXPECT_HAS(refused(folder.parse(command + "env: { A: 1 } }\n")).help, "quotes");
  EXPECT_HAS(refused(folder.parse(folder.minimal(), {"reward.env={A: x}"})).message,
             "does not use");
}

TEST(LoadJob, SandboxesWhatAModelWroteAndOtherProgramsWhereAsked) {
  const JobFolder folder;
  const auto sandbox = [&](const std::string& reward) {
    const auto job = folder.parse(folder.minimal() + "reward: { " + reward + " }\n");
    EXPECT_TRUE(job) << render(job.error());
    return sandbox_of(job->spec.reward);
  };
  EXPECT_EQ(sandbox("type: code"), SandboxMode::kAuto);
  EXPECT_EQ(sandbox("type: code, sandbox: off"), SandboxMode::kOff);
  EXPECT_EQ(sandbox("type: code, sandbox: strict"), SandboxMode::kStrict);
  EXPECT_EQ(sandbox("type: command, command: [cat]"), SandboxMode::kOff);
  EXPECT_EQ(sandbox("type: command, command: [cat], sandbox: auto"), SandboxMode::kAuto);
  const auto refusal = [&](const std::string& reward) {
    return refused(folder.parse(folder.minimal() + "reward: { " + reward + " }\n")).message;
  };
  EXPECT_HAS(refusal("type: math, sandbox: auto"), "does not use `reward.sandbox`");
  EXPECT_HAS(refusal("type: math, cases_max: 3"), "does not use `reward.cases_max`");
  EXPECT_HAS(refusal("type: code, timeout_s: 3"), "does not use `reward.timeout_s`");
  EXPECT_HAS(refusal("type: exact, timeout_s: 3"), "does not use `reward.timeout_s`");
  EXPECT_HAS(refusal("type: code, limits: { open_files: 99 }"),
             "does not use `reward.limits.open_files`");
  EXPECT_HAS(refusal("type: math, limits: { memory_megabytes: 64 }"),
             "does not use `reward.limits.memory_megabytes`");
  EXPECT_HAS(refusal("type: command, command: [cat], readable: [.]"),
             "`reward.readable` means nothing without a sandbox");
  EXPECT_HAS(refusal("type: code, language: ada"), "ada");
}

TEST(LoadJob, TakesTheKeysOfProgramsThatAModelWrote) {
  const JobFolder folder;
  const auto job = folder.parse(
      folder.minimal() +
      "reward: { type: code, language: cpp, score: fraction, case_timeout_s: 1.5, cases_max: 7, "
      "compile_timeout_s: 9, code_memory_megabytes: 512, readable: [words.txt] }\n");
  ASSERT_TRUE(job) << render(job.error());
  const RewardSpec& reward = job->spec.reward;
  EXPECT_EQ(reward.language, CodeLanguage::kCpp);
  EXPECT_EQ(reward.score, CodeScore::kFraction);
  EXPECT_EQ(reward.case_timeout_s, 1.5);
  EXPECT_EQ(reward.cases_max, 7);
  EXPECT_EQ(reward.compile_timeout_s, 9);
  EXPECT_EQ(reward.code_memory_megabytes, 512);
  EXPECT_EQ(reward.readable, std::vector<std::filesystem::path>{folder.root() / "words.txt"});
}

TEST(LoadJob, TakesHowAPercentageIsRead) {
  const JobFolder folder;
  const auto job = folder.parse(folder.minimal() + "reward: { type: math, percent: value }\n");
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(job->spec.reward.percent, PercentReading::kValue);
  const auto refusal = [&](const std::string& reward) {
    return refused(folder.parse(folder.minimal() + "reward: { " + reward + " }\n")).message;
  };
  EXPECT_HAS(refusal("type: exact, percent: value"), "does not use `reward.percent`");
  EXPECT_HAS(refusal("type: math, percent: half"), "half");
}

TEST(LoadJob, FindsTheFunctionOfARewardBesideTheJob) {
  const JobFolder folder;
  folder.write("mine.py", "");
  folder.write("pack/part.py", "");
  const auto function = [&](const std::string& text) {
    const auto job = folder.parse(
        folder.minimal() + "reward: { type: python, python: /bin/sh, function: '" + text + "' }\n");
    EXPECT_TRUE(job) << render(job.error());
    return job->spec.reward.function->text;
  };
  const std::string root = folder.root().string();
  EXPECT_EQ(function("mine.py:f"), root + "/mine.py:f");
  EXPECT_EQ(function("./mine.py:f.g"), root + "/mine.py:f.g");
  EXPECT_EQ(function("mine:f"), root + "/mine:f");
  EXPECT_EQ(function("pack.part:f"), root + "/pack.part:f");
  EXPECT_EQ(function("elsewhere.part:f"), "elsewhere.part:f");
  const auto error_of = [&](const std::string& reward) {
    return refused(folder.parse(folder.minimal() + "reward: { " + reward + " }\n"));
  };
  EXPECT_HAS(error_of("type: python, function: none.py:f").message, "cannot read");
  EXPECT_HAS(error_of("type: python, function: mine").message, "is not FILE.py:FUNCTION");
  EXPECT_HAS(error_of("type: python, function: 'mine.py:f', python: ./no").message, "cannot run");
  EXPECT_HAS(error_of("type: python").message, "needs `reward.function`");
  EXPECT_HAS(error_of("type: http, url: 'https://a/'").message, "https is not in this version");
  EXPECT_HAS(error_of("type: http, url: 'http://a/', header_env: { 'a b': X }").message,
             "no header and variable");
  EXPECT_HAS(error_of("type: math, batch_size: 3").message, "does not use `reward.batch_size`");
  EXPECT_HAS(error_of("type: math, clip: [1, 1]").message, "no room between its ends");
}

TEST(LoadJob, TakesAJudgeAndRefusesOneThatCannotWork) {
  const JobFolder folder;
  const std::string url = "type: judge, url: 'http://a:1', ";
  const auto job = folder.parse(folder.minimal() + R"(
reward:
  type: judge
  url: http://a:1/v1
  concurrency: 9
  judge: { model: m, prompt: "{{ completion }}?", range: [1, 5], extra_body: { top_k: 1 } }
)");
  ASSERT_TRUE(job) << render(job.error());
  const reward::JudgeReward judge = judge_of(job->spec.reward);
  EXPECT_EQ(judge.model, "m");
  EXPECT_EQ(judge.pattern, std::nullopt);
  EXPECT_EQ(judge.range, (std::array<double, 2>{1, 5}));
  EXPECT_EQ(parse_json(judge.extra_body), parse_json(R"({"top_k": 1})"));
  const auto again = folder.parse(print_job(job->spec));
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(print_job(again->spec), print_job(job->spec)) << "PJ-1";
  const auto error_of = [&](const std::string& reward) {
    return refused(folder.parse(folder.minimal() + "reward: { " + reward + " }\n"));
  };
  EXPECT_HAS(error_of("type: judge").message, "needs `reward.url`");
  EXPECT_HAS(error_of(url + "judge: { prompt: 'Good?' }").message, "never sees the completion");
  EXPECT_HAS(error_of(url + "judge: { pattern: 'x' }").message, "has no group");
  EXPECT_HAS(error_of(url + "judge: { range: [3, 3] }").message, "no room between its ends");
  EXPECT_HAS(error_of(url + "judge: { extra_body: { n: 2 } }").message, "`n` of its own");
  EXPECT_HAS(error_of("type: judge, url: 'https://a/'").message, "https is not in this version");
  EXPECT_HAS(error_of("type: math, judge: { model: m }").message, "does not use");
}

TEST(LoadJob, TakesSeveralRewardsAsAListOrAMap) {
  const JobFolder folder;
  const auto list = folder.parse(folder.minimal() + R"(
reward:
  - { name: right, type: math, weight: 2, sources: [gsm8k] }
  - type: regex
    pattern: '^a'
    clip: [0, 0.5]
    sources: [c]
)");
  ASSERT_TRUE(list) << render(list.error());
  const auto map = folder.parse(folder.minimal() + R"(
reward:
  replicas: 2
  scale: 3
  parts:
    right: { type: math, weight: 2, sources: [gsm8k] }
    regex: { type: regex, pattern: '^a', clip: [0, 0.5], sources: [c] }
)",
                                {"reward.scale=1", "reward.replicas=1"});
  ASSERT_TRUE(map) << render(map.error());
  EXPECT_EQ(print_job(list->spec), print_job(map->spec));
  const auto& parts = list->spec.reward.parts;
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts.at("right").weight, 2);
  EXPECT_EQ(parts.at("regex").clip, (std::array<double, 2>{0, 0.5}));
  const auto again = folder.parse(print_job(list->spec));
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(print_job(again->spec), print_job(list->spec)) << "PJ-1";
  // A list of --set is the whole reward, and a key of a part may be set alone.
  const auto set =
      folder.parse(folder.minimal() + "reward: { type: regex, pattern: a }\n",
                   {"reward=[{name: a}, {name: b, type: math}]", "reward.parts.b.weight=0.5"});
  ASSERT_TRUE(set) << render(set.error());
  EXPECT_EQ(set->spec.reward.parts.at("b").weight, 0.5);
}

TEST(LoadJob, RefusesPartsOfARewardByName) {
  const JobFolder folder;
  const auto error_of = [&](const std::string& reward) {
    return refused(folder.parse(folder.minimal() + "reward: " + reward + "\n"));
  };
  EXPECT_HAS(error_of("[]").message, "`reward` is an empty list");
  EXPECT_HAS(error_of("[3]").message, "found the number 3");
  EXPECT_HAS(error_of("[{ weight: 2 }]").message, "has no `name`");
  EXPECT_HAS(error_of("[{ type: math }, { type: math }]").message,
             "`reward.parts.math` is given twice");
  for (const char* name : {"pred", "a.b", "'a b'", "''"})
    EXPECT_HAS(error_of("[{ name: " + std::string(name) + " }]").message,
               "cannot name a part of `reward`");
  const Refused unknown = error_of("[{ name: a, replicas: 2 }]");
  EXPECT_HAS(unknown.message, "unknown key `reward.parts.a.replicas`");
  EXPECT_HAS(unknown.where, "job.yaml:");
  EXPECT_HAS(error_of("[{ name: a, typ: math }]").message, "unknown key `reward.parts.a.typ`");
  EXPECT_HAS(error_of("[{ name: a, weight: x }]").message,
             "`reward.parts.a.weight` expects a number");
  EXPECT_HAS(error_of("[{ name: a, type: regex }]").message,
             "`reward.parts.a.type: regex` needs `reward.parts.a.pattern`");
  EXPECT_HAS(error_of("{ type: math, parts: [{ name: a }] }").message,
             "`reward.type` means nothing beside `reward.parts`");
}

TEST(LoadJob, MakesTheFilesOfARewardCommandAbsolute) {
  const JobFolder folder;
  folder.write("score.py", "");
  const auto job =
      folder.parse(folder.minimal() + "reward: { type: command, command: [sh, score.py, x.py] }\n");
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_EQ(*job->spec.reward.command,
            (std::vector<std::string>{"sh", (folder.root() / "score.py").string(), "x.py"}));
}

}  // namespace
}  // namespace tandem::job
