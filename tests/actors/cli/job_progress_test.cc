#include "actors/cli/job_progress.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"
#include "tests/actors/cli/api_objects.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

TEST(Progress, TheBarSaysWhatMattersAndFits) {
  json job = a_job();
  job["eval"] = 0.79;
  job["eta_seconds"] = 80;
  job["why"] = json::array({a_wait()});
  const std::string bar = live_bar(job, 200);
  for (const char* part :
       {"arith-1", "Running", "step 420/1500", "28%", "eta 1m20s", "reward 0.812", "eval 0.790",
        "staleness 2 of 2", "queue 132", "120k generated", "60.1k trained", "trainer idle 12%",
        "rollout 1/2", "arith-1/learner/0 waits for 64 scored groups (3s)"})
    EXPECT_NE(bar.find(part), std::string::npos) << part << "\n" << bar;
  for (const int width : {1, 40, 80}) expect_fits(live_bar(job, width), width);
  EXPECT_EQ(bar.find("failed"), std::string::npos) << bar;
  job["eval_scored"] = 97;
  job["eval_failed"] = 3;  // beside a mean stands the number of completions without a score
  EXPECT_NE(live_bar(job, 200).find("eval 0.790 over 97 of 100, 3 failed  staleness"),
            std::string::npos)
      << live_bar(job, 200);
  EXPECT_NE(live_line(job).find(" eval=0.790 eval_scored=97 eval_failed=3 "), std::string::npos)
      << live_line(job);
  job["eval_figures"] = {{"pass@1", 0.5}, {"pass@16", 0.875}, {"pass@2", 0.6}, {"greedy", 0.75}};
  EXPECT_NE(live_bar(job, 200).find("3 failed  pass@16 0.875  greedy 0.750  staleness"),
            std::string::npos)
      << live_bar(job, 200);
  EXPECT_NE(live_line(job).find(" eval_failed=3 eval_pass@16=0.875 eval_greedy=0.750 "),
            std::string::npos)
      << live_line(job);
  expect_fits(live_bar(json::object(), 80), 80);
}

// The bar gives way first: people look for the time at which a run will be done.
TEST(Progress, TheBarKeepsItsEtaAtEveryWidth) {
  json job = a_job();
  job["id"] = "arithmetic-grpo-12";
  job["reason"] = "WaitingForActors";
  job["eta_seconds"] = 3700;
  for (const int width : {36, 40, 60, 72, 80, 100}) {
    const std::string text = live_bar(job, width);
    for (const char* part : {"arithmetic-grpo-12", "eta 1h01m", "step 420/1500", "28%"})
      EXPECT_NE(text.find(part), std::string::npos) << width << ": " << text;
    expect_fits(text, width);
  }
  EXPECT_NE(live_bar(job, 80).find("[###"), std::string::npos);
  job.erase("eta_seconds");  // before the first step of a run, or of one that is resumed
  EXPECT_NE(live_bar(job, 80).find("eta -"), std::string::npos) << live_bar(job, 80);
}

TEST(Progress, TheWarmStartHasABarOfItsOwn) {
  json job = a_job();
  job["state"] = "WarmStart";
  job["warm_start"] = {{"step", 100}, {"max_steps", 400}, {"metric", 0.2}};
  EXPECT_NE(live_bar(job, 200).find("warm start 100/400  [######------------------]  25%"),
            std::string::npos)
      << live_bar(job, 200);
  EXPECT_NE(live_line(job).find("warm_start_step=100 metric=0.200"), std::string::npos);
  EXPECT_EQ(live_bar(job, 200).find("eta"), std::string::npos) << "no rate is known yet";
  job["warm_start"]["steps_per_second"] = 12.5;
  job["warm_start"]["eta_seconds"] = 24;
  EXPECT_NE(live_bar(job, 200).find("25%  metric 0.200  eta 24s (12.5 steps/s)"), std::string::npos)
      << live_bar(job, 200);
  EXPECT_NE(live_line(job).find("metric=0.200 steps_per_s=12.500 eta_s=24.000"), std::string::npos)
      << live_line(job);
}

TEST(Progress, ThePlainLineIsOneLineOfPairs) {
  const std::string line = live_line(a_job());
  EXPECT_EQ(line,
            "job=arith-1 state=Running step=420/1500 reward=0.812 generated_per_s=120345 "
            "trained_per_s=60100 staleness=2/2 queue=132");
}

TEST(Progress, ALoopOfDeathsIsToldInPlaceOfAWait) {  // CL-1
  json job = a_job();
  const std::string told =
      "restarted 3 times in 40 s (killed for want of memory at 21.3 GiB); next try in 8 s";
  job["why"] = json::array({{{"who", "arith-1/learner/0"},
                             {"waits_for", "CrashLoop"},
                             {"since_s", 40.0},
                             {"deadline_s", 8.0},
                             {"detail", told}}});
  EXPECT_NE(live_line(job).find("waits=\"arith-1/learner/0 " + told + "\""), std::string::npos)
      << live_line(job);
  EXPECT_NE(live_bar(job, 300).find("arith-1/learner/0 " + told), std::string::npos);
}

TEST(Progress, ARewardThatFailsIsToldInPlaceOfTraining) {
  json job = a_job();
  job["reason"] = "RewardFails";
  job["message"] = "no completion is scored, the last 16 failed in a row";
  const std::string bar = live_bar(job, 100), line = live_line(job);
  EXPECT_NE(bar.find("\n  no completion is scored, the last 16 failed in a row\n"),
            std::string::npos)
      << bar;
  EXPECT_NE(line.find(" reason=RewardFails message=\"no completion is scored, the last 16 failed"),
            std::string::npos)
      << line;
}

TEST(Progress, TheSummaryEndsWithTheNextSteps) {
  const json result{
      {"state", "Succeeded"},
      {"steps", 1500},
      {"policy_version", 1500},
      {"eval",
       {{"before", 0.0},
        {"after_warm_start", 0.4},
        {"final", 0.97},
        {"counts",
         {{"before", {{"scored", 100}, {"failed", 0}}},
          {"final", {{"scored", 97}, {"failed", 3}}}}}}},
      {"staleness", {{"bound", 2}, {"max", 2}, {"mean", 1.5}}},
      {"ledger", {{"issued", 100}, {"trained", 96}, {"discarded", {{"job_finished", 4}}}}},
      {"tokens", {{"generated", 2e6}, {"trained", 1.5e6}}},
      {"logprob_diff", {{"max_at_staleness_0", 0.0}, {"tokens_at_staleness_0", 512}}},
      {"trainer_idle_fraction", 0.1},
      {"rollout_idle_fraction", 0.2},
      {"wall_seconds", 92.0},
      {"weights_sha256", "abc"}};
  const std::string text = final_summary(a_job(), result);
  for (const char* part :
       {"arith-1 Succeeded in 1m32s",
        "before 0.000, after warm start 0.400, final 0.970 over 97 of 100, 3 failed",
        "100 issued, 96 trained, discarded: job_finished 4", "0 at staleness 0 over 512 tokens",
        "tandem generate /home/u/.tandem/runs/arith-1/checkpoints/step-1500 'PROMPT'",
        "tandem samples /home/u/.tandem/runs/arith-1"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  json sampled = result;
  sampled["eval"]["figures"]["final"] = {
      {"mean", 0.97},
      {"pass@8", 1.0},
      {"sources",
       {{"code", {{"mean", nullptr}, {"scored", 0}, {"failed", 3}}},
        {"math", {{"mean", 0.97}, {"scored", 97}, {"failed", 0}}}}}};
  const std::string with_sources = final_summary(a_job(), sampled);
  for (const char* part : {"3 failed (pass@8 1.000)", "by source", "code -, 3 failed, math 0.970"})
    EXPECT_NE(with_sources.find(part), std::string::npos) << part << "\n" << with_sources;
  EXPECT_EQ(text.find("cost"), text.npos) << "the run had no prices";
  json priced = result;
  priced["cost"] = {{"currency", "EUR"},
                    {"total", 12.5},
                    {"per_step", 0.0008321},
                    {"goodput_tokens_per_device_second", 1204.6}};
  EXPECT_NE(final_summary(a_job(), priced)
                .find("12.5 EUR, 0.0008321 for each of the newest steps, 1205 tokens trained per "
                      "device second"),
            text.npos)
      << final_summary(a_job(), priced);
  EXPECT_EQ(text.find("record"), text.npos);
  json recorded = result;
  recorded["recorded_bytes"] = 3072000;
  EXPECT_NE(final_summary(a_job(), recorded).find("2.9 MiB in replay/"), text.npos);
  EXPECT_EQ(text.find("warnings"), text.npos);
  json warned = result;
  warned["groups_kept_by_filter"] = 12;
  warned["warnings"] = {"w1", "w2\x1b[2J", "w3", "w4", "w5", "w6"};
  warned["warnings_left_out"] = 3;
  const std::string warnings = final_summary(a_job(), warned);
  for (const char* part :
       {"  kept           12 trained groups that algorithm.filter_groups is for",
        "  warnings       w1\n", "w2\\u001b[2J\n", "w5\n", "and 4 more: result.json"})
    EXPECT_NE(warnings.find(part), std::string::npos) << part << "\n" << warnings;
  EXPECT_EQ(warnings.find("w6"), std::string::npos);
  json failed = result;
  failed["state"] = "Failed";
  failed["eval"] = nullptr;
  EXPECT_EQ(final_summary(a_job(), failed).find("tandem generate"), text.npos);
}

TEST(JobProgress, AJobOfActorsAloneHasNoFiguresOfTraining) {
  const json job{{"id", "demo-1"},
                 {"state", "Running"},
                 {"reason", "Working"},
                 {"trains", false},
                 {"actors", {{"counter", {{"ready", 1}, {"desired", 2}}}}},
                 {"run_dir", "/runs/demo-1"},
                 {"why", json::array()}};
  EXPECT_EQ(live_bar(job, 200), "demo-1  Running  counter 1/2\n");
  EXPECT_EQ(live_line(job), "job=demo-1 state=Running counter=1/2");
  const json result{{"state", "Succeeded"},
                    {"wall_seconds", 3},
                    {"actors", {{"counter", {{"actors", 2}, {"finished", 2}, {"restarts", 1}}}}}};
  const std::string summary = final_summary(job, result);
  EXPECT_TRUE(summary.starts_with("demo-1 Succeeded in 3s\n")) << summary;
  EXPECT_NE(summary.find("2 actors, 2 finished, 1 restarts"), std::string::npos) << summary;
  EXPECT_EQ(summary.find("tokens"), std::string::npos) << summary;
}

TEST(JobProgress, TheSummaryHasDigestsAndPathsWhole) {
  const std::string digest(64, 'd'), dir = "/home/somebody/" + std::string(90, 'p');
  const json job{{"id", "a-1"}, {"run_dir", dir}};
  const json result{{"state", "Succeeded"}, {"weights_sha256", digest}, {"steps", 3}};
  const std::string summary = final_summary(job, result);
  EXPECT_NE(summary.find(digest + "\n"), std::string::npos) << summary;
  EXPECT_NE(summary.find(dir + "\n"), std::string::npos) << summary;
}

}  // namespace
}  // namespace tandem::cli
