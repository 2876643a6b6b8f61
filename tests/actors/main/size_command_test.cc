// Tests size_command.h, size_report.h, run_rates.h, measured_run.h, rollout_room.h: `tandem size`
// by given rates and by the files of a run.
#include "actors/main/size_command.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>

#include "actors/exchange/fleet_json.h"
#include "actors/main/local_run.h"
#include "actors/main/measured_run.h"
#include "actors/main/offline_runs.h"
#include "actors/main/rollout_room.h"
#include "actors/main/size_numbers.h"
#include "actors/main/verbs.h"
#include "runtime/base/json.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/cli/parsing.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

const Words kRunbook{"size",   "--rollout-tokens-per-s", "4000", "--batch-tokens",
                     "786432", "--step-seconds",         "20"};

cli::Outcome outcome(Words words, const Words& more = {}) {
  words.insert(words.end(), more.begin(), more.end());
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return cli::run(arguments, {.offline = offline_answers, .verbs = all_verbs});
}

std::string printed_by(const Words& words, const Words& more = {}) {
  const cli::Outcome done = outcome(words, more);
  EXPECT_TRUE(done.ok) << done.shown;
  return done.out;
}

json answer(const Words& words, Words more = {}) {
  more.insert(more.end(), {"-o", "json"});
  return parse_json(printed_by(words, more));
}

void expect_parts(const std::string& text, const Words& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

json fleet_of(const json& sizes, std::int64_t rollouts) {
  for (const json& fleet : sizes["fleets"])
    if (fleet["rollouts"] == rollouts) return fleet;
  ADD_FAILURE() << "no fleet of " << rollouts;
  return {};
}

// The worked example of the runbook: 13 rollouts match, 8 leave the trainer idle 18.6 % of every
// cycle, and 15 grow a queue by 20,678.4 tok/s, 12.4M tokens after 10 min.
TEST(SizeCommand, PrintsTheRunbooksFigures) {
  expect_parts(printed_by(kRunbook, {"--replicas", "8"}),
               {"39,321.6 tok/s", "13 rollouts (headroom 0.8)", "18.6%", "+20,678.4", "12.4M",
                "undersized: 8 rollouts, 13 would match: trainer idle 18.6% of every cycle",
                "rollout.replicas: 13"});
  const json sizes = answer(kRunbook, {"--replicas", "8"});
  EXPECT_EQ(sizes["matched"], 13);
  EXPECT_EQ(sizes["present"], 8);
  EXPECT_EQ(sizes["verdict"], "undersized");
  EXPECT_EQ(sizes["idle_side"], "trainer");
  EXPECT_NEAR(sizes["consumed_per_s"].get<double>(), 39321.6, 1e-9);
  EXPECT_NEAR(fleet_of(sizes, 8)["trainer_idle_fraction"].get<double>(), 1 - 20 / 24.576, 1e-12);
  EXPECT_EQ(fleet_of(sizes, 8)["present"], true);
  EXPECT_EQ(fleet_of(sizes, 13)["trainer_idle_fraction"], 0.0);
  EXPECT_EQ(fleet_of(sizes, 13)["matched"], true);
  EXPECT_NEAR(fleet_of(sizes, 15)["backlog_per_s"].get<double>(), 20678.4, 1e-6);
  EXPECT_NEAR(fleet_of(sizes, 15)["backlog_tokens_in_10_min"].get<double>(), 12407040, 1e-3);
}

TEST(SizeCommand, AnOversizedAndAMatchedFleet) {
  expect_parts(printed_by(kRunbook, {"--replicas", "15"}),
               {"oversized: 15 rollouts, 13 would match",
                "20,678.4 tok/s, 12.4M tokens after 10 min", "larger data.train_batch_size"});
  expect_parts(printed_by(kRunbook, {"--replicas", "13"}),
               {"matched: 13 rollouts: trainer idle 0.0%"});
  EXPECT_EQ(answer(kRunbook, {"--replicas", "13"})["mend"], "");
  EXPECT_EQ(answer(kRunbook, {"--headroom", "1"})["matched"], 10);
  EXPECT_EQ(answer(kRunbook)["verdict"], json()) << "the present fleet is not known";
}

// 8 replicas of 8 completions in 3 s generate 21 a second: 256 take 12 s, and with 5 s of training
// an iteration takes 17 s, about 5,000 a day.
TEST(SizeCommand, TheFirstLessonsIterations) {
  const Words lesson{"size",
                     "--rollout-tokens-per-s",
                     "266.6666666666667",
                     "--batch-tokens",
                     "25600",
                     "--completions",
                     "256",
                     "--step-seconds",
                     "5",
                     "--replicas",
                     "8",
                     "--max-staleness",
                     "0"};
  const json eight = fleet_of(answer(lesson), 8);
  EXPECT_NEAR(eight["cycle_seconds"].get<double>(), 17, 1e-6);
  EXPECT_NEAR(eight["steps_per_day"].get<double>(), 5082, 1);
  EXPECT_NEAR(eight["completions_per_s"].get<double>(), 256 / 17.0, 1e-6);
  const std::string text = printed_by(lesson);
  expect_parts(text, {" 17 ", "5,082"});
}

TEST(SizeCommand, DividesDevicesAndCountsCosts) {
  const Words more{"--completions", "512", "--replicas", "8",
                   "--devices",     "16",  "--price",    "rollout=2.10,learner=4.00,currency=EUR"};
  const json sizes = answer(kRunbook, more);
  EXPECT_EQ(sizes["currency"], "EUR");
  EXPECT_NEAR(fleet_of(sizes, 13)["cost"]["per_step"].get<double>(), 31.30 / 180, 1e-9);
  const json& split = sizes["split"];
  ASSERT_EQ(split["splits"].size(), 15u);
  EXPECT_EQ(std::ranges::count_if(split["splits"], [](const json& s) { return s["best"] == true; }),
            1);
  EXPECT_EQ(split["learner_efficiency_given"], false);
  const std::string text = printed_by(kRunbook, more);
  expect_parts(text, {"best", "EUR/STEP", "EUR/DAY", "EUR/1000 COMPLETIONS", "STEPS/HOUR",
                      "taken as linear in its ranks, which nothing has measured"});
  EXPECT_EQ(printed_by(kRunbook, {"--devices", "16", "--learner-efficiency", "0.9"})
                .find("which nothing has measured"),
            std::string::npos);
}

TEST(SizeCommand, RefusesNumbersThatAreNone) {
  const auto refused = [](Words words, const std::string& message, const std::string& help) {
    cli::expect_refused(words, all_verbs, message, help);
  };
  for (const char* const option : {"--rollout-tokens-per-s", "--batch-tokens", "--step-seconds",
                                   "--install-seconds", "--completions"})
    for (const char* const bad : {"0", "-1", "nan", "inf", "-inf"}) {
      const Error error =
          cli::refused({"size", "--from", "a", std::string(option) + "=" + bad}, all_verbs);
      EXPECT_EQ(exit_code(error.code), 64);
      EXPECT_NE(error.message.find(option), std::string::npos) << error.message;
      EXPECT_NE(error.message.find("no positive number"), std::string::npos) << error.message;
    }
  for (const char* const bad : {"0", "-0.5", "1.1", "nan", "inf"})
    refused({"size", "--from", "a", std::string("--headroom=") + bad}, "--headroom", "--help");
  for (const char* const bad : {"-0.1", "1", "nan"})
    refused({"size", "--from", "a", std::string("--target-trainer-idle=") + bad},
            "--target-trainer-idle", "--help");
  for (const char* const bad : {"0.4", "1.5", "nan"})
    refused({"size", "--from", "a", std::string("--learner-efficiency=") + bad},
            "--learner-efficiency", "--help");
  refused({"size", "--from", "a", "--replicas", "0"}, "--replicas", "--help");
  refused({"size", "--from", "a", "--devices", "1"}, "--devices", "--help");
  refused({"size", "--from", "a", "--ranks", "-1"}, "--ranks", "--help");
  refused({"size", "--measure", "job.yaml", "--measure-seconds", "0"}, "--measure-seconds",
          "--help");
  refused({"size", "--from", "a", "--price", "rollout=1"}, "no price of learner", "learner=4.00");
}

TEST(SizeCommand, RefusesALineWithoutRates) {
  cli::expect_refused({"size"}, all_verbs, "no rates to size by", "--from RUN, --measure");
  // The fault of the file comes before what is missing beside it.
  const cli::Outcome missing = outcome({"size", "/nofile.yaml"});
  EXPECT_FALSE(missing.ok);
  EXPECT_NE(missing.shown.find("/nofile.yaml"), std::string::npos) << missing.message;
  EXPECT_EQ(missing.message.find("no rates"), std::string::npos) << missing.message;
  cli::expect_refused({"size", "--step-seconds", "3"}, all_verbs,
                      "`--rollout-tokens-per-s` is missing", "--batch-tokens");
  cli::expect_refused({"size", "--rollout-tokens-per-s", "3", "--batch-tokens", "4"}, all_verbs,
                      "`--step-seconds` is missing", "--from RUN");
  cli::expect_refused({"size", "--measure"}, all_verbs, "--measure needs JOB.yaml", "measured");
  cli::expect_refused({"size", "job.yaml", "--measure", "--from", "a"}, all_verbs,
                      "--measure excludes --from", "one of both");
  cli::expect_refused({"size", "--from", "a", "--set", "rollout.n=4"}, all_verbs,
                      "--set needs JOB.yaml", "the job whose keys");
}

TEST(SizeCommand, RefusesAFleetBeyondAllBounds) {
  const cli::Outcome refused = outcome({"size", "--rollout-tokens-per-s", "1e-9", "--batch-tokens",
                                        "786432", "--step-seconds", "20"});
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(refused.code, ErrorCode::kInvalid);
  EXPECT_NE(refused.message.find("more than 1048576 rollouts"), std::string::npos);
  EXPECT_EQ(outcome(kRunbook, {"--install-seconds", "20"}).code, ErrorCode::kInvalid)
      << "the pause is as long as the step";
}

// Runs in files: this TANDEM_HOME has no controller.
class SizeOfRun : public testing::Test {
 protected:
  SizeOfRun() {
    ::setenv("TANDEM_HOME", home_.c_str(), 1);
    ::unsetenv("TANDEM_ADDRESS");
  }
  ~SizeOfRun() override { ::unsetenv("TANDEM_HOME"); }

  fs::path make(const std::string& id, const std::string& yaml) const {
    const fs::path run = home_ / "runs" / id;
    fs::create_directories(run / "logs");
    model::testing::write_text(run / "job.yaml", yaml);
    return run;
  }
  fs::path training(const std::string& id, const std::string& rollouts = "replicas: 2",
                    const std::string& more = "") const {
    return make(id,
                "name: sums\nmodel: {path: /none}\n"
                "data: {train_files: [/none.jsonl], train_batch_size: 64}\n"
                "rollout: {n: 8, " +
                    rollouts + "}\nreward: {type: exact}\n" + more);
  }
  // One rollout, which decodes the completions of one prompt at a time.
  fs::path narrow(const std::string& id) const {
    return training(id, "replicas: 1, max_num_seqs: 8", "async: {max_staleness: 2}\n");
  }
  static void lines(const fs::path& run, int steps) {
    std::ofstream file(run / "metrics.jsonl");
    for (int step = 1; step <= steps; ++step)
      file << json{{"step", step},
                   {"timing_s/step", 1.0},
                   {"response_length/mean", 10.0},
                   {"tandem/wall_seconds", 2.0 * step},
                   {"tandem/rollout_idle_fraction", 0.0},
                   {"tandem/trainer_idle_fraction", 0.5},
                   {"tandem/tokens_generated_per_trained", 1.0}}
           << "\n";
  }
  static scheduler::FleetRates rates() {
    return {.steps = 50,
            .seconds = 100,
            .rollouts = {{.actor = "sums-1/rollout/0",
                          .tokens_per_s = 1000,
                          .busy_fraction = 1,
                          .install_fraction = 0.2},
                         {.actor = "sums-1/rollout/1",
                          .tokens_per_s = 400,
                          .busy_fraction = 1,
                          .install_fraction = 0.2}},
            .step_seconds = 1,
            .step_tokens = 5120,
            .completions_per_step = 512,
            .generated_per_trained = 1.5,
            .install_seconds = 0.4,
            .prefix_hit_ratio = 0.1,
            .trainer_idle_fraction = 0.8,
            .rollout_idle_fraction = 0,
            .rollout_deaths = 2};
  }
  static void result(const fs::path& run, const json& more) {
    json object{{"state", "Succeeded"}, {"steps", 50}};
    object.update(more);
    std::ofstream(run / "result.json") << object;
  }
  const fs::path home_ = model::testing::scratch_folder("size_command");
};

TEST_F(SizeOfRun, ItsOwnRatesGiveAdviceInOrder) {
  const fs::path run = training("sums-1");
  result(run, {{"rates", exchange::rates_json(rates())}, {"staleness", {{"mean", 0.2}}}});
  const json sizes = answer({"size", "--from", "sums-1"});
  EXPECT_EQ(sizes["source"]["of"], "rates");
  EXPECT_EQ(sizes["source"]["as_it_ran"], true);
  EXPECT_EQ(sizes["present"], 2);
  std::vector<std::string> kinds;
  for (const json& advice : sizes["advice"]) {
    kinds.push_back(advice["kind"]);
    EXPECT_FALSE(advice["message"].get<std::string>().empty());
    EXPECT_FALSE(advice["mend"].get<std::string>().empty());
  }
  EXPECT_EQ(kinds, (Words{"deaths", "spread", "install_pause", "staleness_slack", "waste"}));
  expect_parts(printed_by({"size", "--from", "sums-1"}),
               {"recover before adding rollouts:", "1. 2 deaths of rollouts in 50 steps",
                "tandem describe actor/sums-1/rollout/1", "installs of weights take 20.0%",
                "1.5 tokens are generated per token trained", "prefix hits 10.0%",
                "trainer idle 80.0% (predicted"});
}

TEST_F(SizeOfRun, LinesOfMetricsServeARunWithoutRates) {
  const fs::path run = training("sums-2");
  lines(run, 40);
  const json sizes = answer({"size", "--from", "sums-2"});
  EXPECT_EQ(sizes["source"]["of"], "metrics.jsonl");
  EXPECT_EQ(sizes["rates"]["steps"], 20);
  // 5,120 tokens in 2 s by two rollouts, and a trainer that takes them in 1 s.
  EXPECT_NEAR(sizes["rollout_per_s"].get<double>(), 1280, 1e-6);
  EXPECT_EQ(sizes["matched"], 5);
  EXPECT_EQ(sizes["verdict"], "undersized");
  EXPECT_NEAR(fleet_of(sizes, 2)["trainer_idle_fraction"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(answer({"size", "--from", run.string()})["matched"], 5) << "by its directory";
  expect_parts(printed_by({"size", "--from", "sums-2"}),
               {"sums-2 (metrics.jsonl), the newest 20 steps", "measured  trainer idle 50.0%",
                "(predicted 50.0%)\n"});
}

TEST_F(SizeOfRun, AJobFilePlansAnotherFleet) {
  const fs::path run = training("sums-3");
  lines(run, 40);
  model::testing::write_text(home_ / "job.yaml",
                             "name: sums\nmodel: {path: /none}\n"
                             "data: {train_files: [/none.jsonl], train_batch_size: 128}\n"
                             "rollout: {n: 8, replicas: 5}\nreward: {type: exact}\n"
                             "pricing: {rollout: 1, learner: 2, currency: EUR}\n");
  const json sizes = answer({"size", (home_ / "job.yaml").string(), "--from", "sums-3"});
  EXPECT_EQ(sizes["present"], 5);
  EXPECT_EQ(sizes["verdict"], "matched");
  EXPECT_EQ(sizes["source"]["as_it_ran"], false);
  EXPECT_EQ(sizes["source"]["notes"].size(), 1u) << "the batch is another one";
  EXPECT_EQ(sizes["currency"], "EUR");
  EXPECT_EQ(sizes["rates"]["step_tokens"], 10240.0);
}

// The same command verifies: the fleet matches, and the trainer waits less than the target.
TEST_F(SizeOfRun, VerifiesAMatchedFleet) {
  const fs::path run = training("sums-4");
  scheduler::FleetRates sound = rates();
  sound.rollouts = {{.actor = "sums-4/rollout/0", .tokens_per_s = 5000, .busy_fraction = 1},
                    {.actor = "sums-4/rollout/1", .tokens_per_s = 5000, .busy_fraction = 1}};
  sound.generated_per_trained = 1;
  sound.rollout_deaths = 0;
  sound.trainer_idle_fraction = 0.012;
  result(run, {{"rates", exchange::rates_json(sound)}});
  const json sizes = answer({"size", "--from", "sums-4"});
  EXPECT_EQ(sizes["verdict"], "matched");
  EXPECT_TRUE(sizes["advice"].empty());
  expect_parts(printed_by({"size", "--from", "sums-4"}),
               {"matched: 2 rollouts: trainer idle 1.2% (predicted 0.0%); the target is 5.0%"});

  sound.trainer_idle_fraction = 0.3;
  result(run, {{"rates", exchange::rates_json(sound)}});
  expect_parts(printed_by({"size", "--from", "sums-4"}),
               {"unexplained: trainer idle 30.0% (predicted 0.0%), and not for want of rollouts "
                "(2 rollouts): the rollouts' engines are idle for",
                "tandem timeline sums-4 -o trace.json shows"});

  // 2 x 2200 tok/s leave the trainer idle for 14 %; more rollouts are no remedy for the rest.
  for (scheduler::RolloutRate& rollout : sound.rollouts) rollout.tokens_per_s = 2200;
  result(run, {{"rates", exchange::rates_json(sound)}});
  expect_parts(printed_by({"size", "--from", "sums-4"}),
               {"undersized: 2 rollouts, 3 would match: trainer idle 30.0% (predicted 14.1%); "
                "beside that, the rollouts' engines are idle for",
                "rollout.replicas: 3"});
}

// A rollout that is full but starved is no spare capacity.
TEST_F(SizeOfRun, NamesTheKeyThatKeepsARolloutFullAndStarved) {
  const fs::path run = narrow("starved-1");
  scheduler::FleetRates starved = rates();
  starved.rollouts = {{.actor = "starved-1/rollout/0",
                       .tokens_per_s = 140000,
                       .busy_fraction = 0.09,
                       .sequences = 8}};
  starved.generated_per_trained = 1;
  starved.rollout_deaths = 0;
  starved.step_seconds = 0.58;  // of a cycle of 2 s
  starved.trainer_idle_fraction = 0.71;
  starved.rollout_idle_fraction = 0.91;
  starved.waits[static_cast<std::size_t>(scheduler::TrainerWait::kSamples)] = 1.42;
  result(run, {{"rates", exchange::rates_json(starved)}, {"staleness", {{"mean", 0.2}}}});
  const json sizes = answer({"size", "--from", "starved-1"});
  EXPECT_EQ(sizes["verdict"], "unexplained");
  EXPECT_EQ(sizes["cause"]["wait"], "samples");
  EXPECT_EQ(sizes["cause"]["raise"]["key"], "rollout.max_num_seqs");
  EXPECT_EQ(sizes["cause"]["raise"]["now"], 8);
  EXPECT_EQ(sizes["cause"]["raise"]["raised"], 40);
  ASSERT_EQ(sizes["advice"].size(), 1u) << sizes["advice"];
  EXPECT_EQ(sizes["advice"][0]["kind"], "work_limit");
  const std::string text = printed_by({"size", "--from", "starved-1"});
  expect_parts(
      text, {"1. the rollouts' engines are idle for 91 % of their time while groups wait",
             "each has all that rollout.max_num_seqs: 8 lets it have",
             "about rollout.max_num_seqs: 40", "unexplained: trainer idle 71.0% (predicted 0.0%)"});
  EXPECT_EQ(text.find("enough"), std::string::npos) << text;
}

// An engine whose batch is full may be cheaper to enlarge than a second one is.
TEST_F(SizeOfRun, SaysWhatALargerBatchWouldGive) {
  const fs::path run = narrow("full-1");
  scheduler::FleetRates full = rates();
  full.rollouts = {
      {.actor = "full-1/rollout/0", .tokens_per_s = 1000, .busy_fraction = 1, .sequences = 7.9}};
  full.engine = {.step_s = 0.0064, .sequence_s = 0.0002};
  full.generated_per_trained = 1;
  full.rollout_deaths = 0;
  full.step_tokens = 2000;
  full.trainer_idle_fraction = 0.5;
  result(run, {{"rates", exchange::rates_json(full)}, {"staleness", {{"mean", 1.9}}}});
  const json sizes = answer({"size", "--from", "full-1"});
  EXPECT_EQ(sizes["verdict"], "undersized");
  ASSERT_EQ(sizes["advice"].size(), 1u) << sizes["advice"];
  EXPECT_EQ(sizes["advice"][0]["kind"], "full_batch");
  EXPECT_EQ(sizes["advice"][0]["raise"]["key"], "rollout.max_num_seqs");
  EXPECT_EQ(sizes["advice"][0]["matched_after"], 1);
  expect_parts(printed_by({"size", "--from", "full-1"}),
               {"engines decode 7.9 sequences at once, of 8 that rollout.max_num_seqs allows"});
}

// A killed run has no result: the fleet is the one that was up last, and so are the steps.
TEST_F(SizeOfRun, AKilledRunIsSizedByTheFleetThatWasUpLast) {
  const fs::path run = training("killed-1");
  std::ofstream file(run / "metrics.jsonl");
  for (int step = 1; step <= 40; ++step)
    file << json{{"step", step},
                 {"timing_s/step", 1.0},
                 {"response_length/mean", 10.0},
                 {"tandem/wall_seconds", step <= 30 ? 4.0 * step : 120 + 2.0 * (step - 30)},
                 {"tandem/rollouts", step <= 30 ? 2 : 4},
                 {"tandem/rollout_idle_fraction", 0.0},
                 {"tandem/tokens_generated_per_trained", 1.0}}
         << "\n";
  file.close();
  const json sizes = answer({"size", "--from", "killed-1"});
  EXPECT_EQ(sizes["present"], 4) << "the job file has 2";
  EXPECT_EQ(sizes["rates"]["steps"], 10);
  EXPECT_EQ(sizes["rates"]["since_resize"], true);
  EXPECT_NEAR(sizes["rates"]["seconds"].get<double>(), 20, 1e-9);
  expect_parts(printed_by({"size", "--from", "killed-1"}),
               {"the newest 10 steps in 20 s, since its rollouts last changed in number"});

  const fs::path former = training("killed-2");
  lines(former, 40);
  expect_parts(printed_by({"size", "--from", "killed-2"}),
               {"how many rollouts were up last is not on record: the number is the job file's"});
}

TEST_F(SizeOfRun, FewStepsAreNoGroundForAVerdict) {
  const fs::path run = training("few-1");
  lines(run, 2);
  const json sizes = answer({"size", "--from", "few-1"});
  EXPECT_EQ(sizes["verdict"], "uncertain");
  EXPECT_EQ(sizes["rates"]["steps"], 1);
  expect_parts(printed_by({"size", "--from", "few-1"}),
               {"the newest 1 step in", "uncertain: 1 step measured, and a verdict takes 8",
                "5 rollouts would match"});
  lines(run, 9);
  EXPECT_EQ(answer({"size", "--from", "few-1"})["rates"]["steps"], 8) << "of the later ones";
  EXPECT_EQ(answer({"size", "--from", "few-1"})["verdict"], "undersized");
}

TEST_F(SizeOfRun, SaysHowManyThereIsRoomFor) {
  const fs::path run = training("room-1");
  lines(run, 40);
  model::testing::write_text(home_ / "large.yaml",
                             "name: sums\nmodel: {path: /none}\n"
                             "data: {train_files: [/none.jsonl], train_batch_size: 64}\n"
                             "rollout: {n: 8, replicas: 1}\nreward: {type: exact}\n"
                             "pools: {rollout: {cpus_per_actor: 1024}}\n");
  const json sizes = answer({"size", (home_ / "large.yaml").string(), "--from", "room-1"});
  EXPECT_EQ(sizes["room"]["rollouts"], 0);
  EXPECT_EQ(sizes["room"]["where"], "this machine");
  expect_parts(printed_by({"size", (home_ / "large.yaml").string(), "--from", "room-1"}),
               {"room      for 0 rollouts in all on this machine",
                "this machine has room for 0 rollouts in all"});
}

// The pages of a rollout are settled by the machine's memory: without that nothing would fit.
TEST(RolloutRoom, OfThisMachineCountsCpusAndMemory) {
  job::JobSpec job;
  job.model.path = model::testing::scratch_folder("rollout_room");
  model::testing::write_model_folder(job.model.path, model::testing::tiny_config());
  job.rollout.gpu_memory_utilization = 0.01;
  job.pools.rollout.cpus_per_actor = 0;
  job.pools.learner.cpus_per_actor = 0;
  job.pools.reward.cpus_per_actor = 0;
  const auto many = room_here(job);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->where, "this machine");
  EXPECT_GE(many->rollouts, 1);
  job.pools.rollout.cpus_per_actor = 1024;
  EXPECT_EQ(room_here(job)->rollouts, 0);
}

TEST(RolloutRoom, IsThatOfOpenNodesBesideWhatRuns) {
  const json job{{"actors", {{"rollout", {{"desired", 2}}}}},
                 {"memory", {{"rollout", {{"reserved_bytes", 100}}}}}};
  const auto node = [](double cpus, double leased, const json& cordoned) {
    return json{{"name", "a" + std::to_string(cpus)},
                {"state", "Ready"},
                {"cordoned", cordoned},
                {"cpus", cpus},
                {"memory_bytes", 1000},
                {"gpus", json::array()},
                {"leased", {{"cpus", leased}, {"memory_bytes", 0}}}};
  };
  const runs::JobKeys keys{{"pools.rollout.cpus_per_actor", "0.5"}};
  const auto room = [&](const json& nodes) { return room_on_nodes(nodes, job, keys); };
  EXPECT_FALSE(room(json::array()));
  EXPECT_EQ(room(json::array({node(2, 1, nullptr)}))->rollouts, 2 + 2);
  EXPECT_EQ(room(json::array({node(2, 1, nullptr), node(8, 0, "a user")}))->rollouts, 2 + 2);
  EXPECT_EQ(room(json::array({node(64, 0, nullptr)}))->rollouts, 2 + 10) << "memory";
  json waits = job;
  waits["actors"]["rollout"]["ready"] = 1;
  EXPECT_EQ(room_on_nodes(json::array({node(2, 1, nullptr)}), waits, keys)->rollouts, 1 + 2)
      << "the other one waits for one of these places";
  json gpus = node(64, 0, nullptr);
  gpus["gpus"] = {{{"leased", 0.5}, {"gone", false}, {"cordoned", nullptr}},
                  {{"leased", 0.0}, {"gone", false}, {"cordoned", "broken"}}};
  const runs::JobKeys quarter{{"pools.rollout.gpus_per_actor", "0.25"}};
  EXPECT_EQ(room_on_nodes(json::array({gpus}), job, quarter)->rollouts, 2 + 2);
}

TEST(MeasuredRun, SaysWhatCtrlCDoes) {
  const std::string said = cancel_notice({{"trains", true}}, true);
  EXPECT_NE(said.find("stopping the measurement"), std::string::npos) << said;
  EXPECT_EQ(said.find("checkpoint"), std::string::npos) << said;
  EXPECT_NE(std::string(cancel_notice({{"trains", true}}, false)).find("checkpoint is saved"),
            std::string::npos);
}

TEST_F(SizeOfRun, RefusesRunsWithoutRates) {
  training("empty-1");
  const cli::Outcome empty = outcome({"size", "--from", "empty-1"});
  EXPECT_EQ(empty.code, ErrorCode::kInvalid);
  EXPECT_NE(empty.message.find("committed no step"), std::string::npos) << empty.message;
  EXPECT_NE(empty.help.find("wait for its first steps"), std::string::npos);

  make("counter-1", "name: counter\nactors: {counter: {command: [/bin/true]}}\n");
  const cli::Outcome actors = outcome({"size", "--from", "counter-1"});
  EXPECT_EQ(actors.code, ErrorCode::kInvalid);
  EXPECT_NE(actors.message.find("actors alone"), std::string::npos) << actors.message;

  EXPECT_EQ(outcome({"size", "--from", "nobody-1"}).code, ErrorCode::kNotFound);
}

TEST(MeasuredRun, LeavesOutWhatIsNoPartOfTheRates) {
  job::JobSpec job;
  const Words sets = sets_to_measure(job, {"rollout.n=4"});
  EXPECT_EQ(sets.front(), "rollout.n=4");
  for (const char* const set : {"data.val_files=[]", "learner.save_freq=0", "save_on_cancel=false",
                                "trackers=[]", "record=none"})
    EXPECT_EQ(std::ranges::count(sets, set), 1) << set;
  const auto of_warm_start = [](const std::string& set) { return set.starts_with("warm_start"); };
  EXPECT_TRUE(std::ranges::none_of(sets, of_warm_start)) << "it would make the section present";
  job.warm_start.emplace();
  job.warm_start->max_steps = 1000;
  EXPECT_EQ(sets_to_measure(job, {}).back(), "warm_start.max_steps=50");
  job.warm_start->max_steps = 7;
  EXPECT_EQ(sets_to_measure(job, {}).back(), "warm_start.max_steps=7");
}

TEST(SizeNumbers, AreGroupedByThousands) {
  EXPECT_EQ(grouped(39321.6), "39,321.6");
  EXPECT_EQ(grouped(786432), "786,432");
  EXPECT_EQ(grouped(999.96), "1,000");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-1234.5), "-1,234.5");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(1e6, 0), "1,000,000");
  EXPECT_EQ(percent(0.1862), "18.6%");
  EXPECT_EQ(short_seconds(24.576), "24.576");
  EXPECT_EQ(short_seconds(0.010324), "0.0103");
}

}  // namespace
}  // namespace tandem::app
