// Runs that are cut at a random moment, by the death of everything at once, and taken up again by a
// new cluster from what is durable: the journal and the trainer's checkpoints.
//
// Tests actors/exchange/exchange.h, actors/exchange/state/durable_state.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

const bool kQuiet = (log::mute(), true);

// Runs the job until `events` of it are journalled, and lets everything die a little later. The run
// is null where the job ended before.
std::shared_ptr<SimulatedRun> cut_run(const SimulatedJob& job, std::uint64_t seed,
                                      std::size_t events) {
  auto cluster = cluster_of(seed, random_conditions(seed));
  const Kills kills(*cluster, seed, {.later = 2});
  const auto id = cluster->submit(job);
  const auto run = cluster->run_of(*id);
  cluster->run_until([&] { return run->record.events.size() >= events || cluster->final(*id); },
                     kVirtualLimit);
  Rng rng(seed);
  cluster->run_for(Duration(rng.below(30'000'000)));
  return run;
}

// Leaves of the journal what was on the disk, and some of the rest.
void cut_power(SimulatedRun& run, std::uint64_t seed) {
  Rng rng(derive_seed(seed, "power"));
  const std::size_t all = run.record.entries.size();
  run.record.cut(all - rng.below(all - run.record.entries_on_disk + 1));
}

std::string resume_to_end(SimulatedCluster& cluster, const std::shared_ptr<SimulatedRun>& run) {
  run->record.result_json.reset();
  run->weights = {};
  const auto id = cluster.resume(run);
  EXPECT_TRUE(id.has_value()) << (id ? "" : id.error().message);
  return id ? run_to_end(cluster, *id) : "";
}

void expect_both_lives_balance(SimulatedCluster& cluster, const std::string& id) {
  auto& events = cluster.run_of(id)->record.events;
  const auto ended = std::count_if(events.begin(), events.end(), [](const JournalledRow& event) {
    return event.kind == "ended";
  });
  if (ended > 1)  // the run had ended before the cut as well
    events.erase(std::find_if(events.begin(), events.end(),
                              [](const JournalledRow& event) { return event.kind == "ended"; }));
  expect_success(cluster, id);
}

TEST(Resume, CutRunsEndWithABalancedLedger) {
  int resumed_later = 0;
  for_seeds(400, [&](std::uint64_t seed) {
    Rng rng(derive_seed(seed, "cut"));
    const SimulatedJob job = random_job(seed);
    const auto run = cut_run(job, seed, 1 + rng.below(900));
    const bool ended = run->record.result_json.has_value();
    if (seed % 3 == 0) cut_power(*run, seed);
    auto cluster = cluster_of(seed + 1000, random_conditions(seed + 1000));
    const Kills kills(*cluster, seed, {.later = 2});
    const std::string id = resume_to_end(*cluster, run);
    resumed_later += !run->checkpoints->checkpoints.empty() && !ended;
    expect_both_lives_balance(*cluster, id);
  });
  EXPECT_GT(resumed_later, static_cast<int>(seeds_of(400)) / 2);
}

// Until the learner has restored a checkpoint, the journal of the new attempt says that no step is
// trained. The lines of the earlier attempt's steps must stay all the same.
TEST(Resume, ControllersThatDieInTheStartOfAResumedRunLoseNoneOfItsLines) {
  int resumed = 0;
  for_seeds(60, [&](std::uint64_t seed) {
    SimulatedJob job = fixed_lag_job(seed, 1);
    job.exchange.save.steps = 2;
    job.load_max = 2s;
    const std::string weights = undisturbed_weights(seed, job);
    Rng rng(derive_seed(seed, "start"));
    const auto run = cut_run(job, seed, 200 + rng.below(200));
    if (run->record.result_json || run->checkpoints->checkpoints.empty()) return;
    ++resumed;
    auto cluster = cluster_of(seed + 1000);
    run->weights = {};
    const auto id = cluster->resume(run);
    ASSERT_TRUE(id.has_value());
    const auto starts = [&] {
      return run->record.replayed.facts().stage == exchange::RunStage::kStarting;
    };
    cluster->run_until([&] { return starts(); }, kVirtualLimit);
    for (int i = 0; i < 4 && starts(); ++i) {
      cluster->restart_controller(Duration(rng.below(300'000'000)));
      cluster->run_for(Duration(rng.below(500'000'000)));
    }
    run_to_end(*cluster, *id);
    expect_both_lives_balance(*cluster, *id);
    EXPECT_EQ(weights_of(*cluster, *id), weights);
    std::set<std::int64_t> steps;
    for (const std::string& line : run->record.metrics_lines)
      steps.insert(parse_json(line)["step"].get<std::int64_t>());
    for (std::int64_t step = 1; step <= job.exchange.budget.steps_total; ++step)
      EXPECT_TRUE(steps.contains(step)) << "the line of step " << step << " is lost";
  });
  EXPECT_GT(resumed, static_cast<int>(seeds_of(60)) / 2);
}

TEST(Resume, RunCutTwiceEndsWithABalancedLedger) {
  for_seeds(100, [](std::uint64_t seed) {
    Rng rng(derive_seed(seed, "cuts"));
    SimulatedJob job = random_job(seed);
    job.exchange.save.steps = 3;
    const auto run = cut_run(job, seed, 1 + rng.below(500));
    {
      auto cluster = cluster_of(seed + 1000);
      run->weights = {};
      const auto id = cluster->resume(run);
      const std::size_t more = run->record.events.size() + rng.below(500);
      cluster->run_until([&] { return run->record.events.size() >= more || cluster->final(*id); },
                         kVirtualLimit);
    }
    if (run->record.result_json) return;
    auto cluster = cluster_of(seed + 2000);
    expect_both_lives_balance(*cluster, resume_to_end(*cluster, run));
  });
}

// Two jobs, of which the second may wait for the first, and a controller that dies with everything
// else at some moment. The next one knows what it must from the events alone that were journalled.
TEST(Resume, TheNextControllerTakesUpWhatTheOneBeforeLeft) {
  int begun = 0, waited = 0, scaled = 0;
  for_seeds(100, [&](std::uint64_t seed) {
    Rng rng(derive_seed(seed, "controller"));
    SimulatedJob first = random_job(seed), second = random_job(seed + 1);
    first.name = "first";
    second.name = "second";
    std::map<std::string, std::shared_ptr<SimulatedRun>> runs;
    DurableState remembered;
    std::int32_t wanted = 0;
    std::uint64_t newest = 0;
    {
      auto cluster = cluster_of(seed, random_conditions(seed));
      const Kills kills(*cluster, seed, {.later = 2});
      const auto id = cluster->submit(first);
      ASSERT_TRUE(cluster->submit(second).has_value());
      const auto run = cluster->run_of(*id);
      const std::size_t events = rng.below(900);
      cluster->run_until([&] { return run->record.events.size() >= events || cluster->final(*id); },
                         kVirtualLimit);
      wanted = 1 + static_cast<std::int32_t>(rng.below(4));
      if (cluster->scale(*id, messages::Role::kRollout, wanted))
        ++scaled;
      else
        wanted = 0;
      cluster->run_for(Duration(rng.below(30'000'000)));
      for (const node::RankId& rank : cluster->ranks_running())
        newest = std::max(newest, rank.incarnation.value);
      if (cluster->final(*id)) wanted = 0;
      runs = cluster->runs();
      remembered = cluster->remembered();
      EXPECT_EQ(remembered.job(*id) == nullptr, cluster->final(*id));
    }
    for (const auto& [id, run] : runs) run->weights = {};
    auto cluster =
        std::make_unique<SimulatedCluster>(seed + 1000, random_conditions(seed + 1000), remembered);
    ASSERT_TRUE(cluster->take_up(runs).has_value());
    cluster->add_node("a", 12);
    if (rng.below(4) > 0) cluster->add_node("b", 12);  // else it does not come back
    for (const JobTaken& job : remembered.jobs()) {
      SimulatedRun& run = *runs.at(job.job);
      ++(run.record.entries.empty() ? waited : begun);
      if (std::ranges::count(run.record.events, "ended", &JournalledRow::kind) == 0)
        run.record.result_json.reset();
    }
    cluster->run_until([&] { return !cluster->ranks_running().empty(); }, kVirtualLimit);
    for (const node::RankId& rank : cluster->ranks_running())
      EXPECT_GT(rank.incarnation.value, newest) << rank.actor;
    if (wanted > 0) {
      const ClusterView view = cluster->view();
      EXPECT_EQ(view.jobs.front().desired.at(messages::Role::kRollout), wanted);
    }
    for (const JobTaken& job : remembered.jobs())
      expect_both_lives_balance(*cluster, run_to_end(*cluster, job.job));
    EXPECT_TRUE(cluster->remembered().jobs().empty());
  });
  EXPECT_GT(begun, static_cast<int>(seeds_of(100)) / 4);
  EXPECT_GT(waited, 0);
  EXPECT_GT(scaled, 0);
}

// The simulated reward says its score in `extra` too, so that both have one mean, whichever process
// made the evaluation and whatever of it was lost.
TEST(Resume, EvaluationsOfACutRunHaveTheMeansOfTheirNumbers) {
  std::size_t records = 0;
  for_seeds(60, [&](std::uint64_t seed) {
    Rng rng(derive_seed(seed, "numbers"));
    SimulatedJob job = plain_job(seed);
    job.validation_prompts = 12;
    job.exchange.test_freq = 2;
    job.exchange.evaluation.sampling = {.n = 2, .temperature = 1};
    job.scorer = {.fails = 0.1, .says_more = true};
    const auto run = cut_run(job, seed, 1 + rng.below(500));
    auto cluster = cluster_of(seed + 1000, random_conditions(seed + 1000));
    resume_to_end(*cluster, run);
    ASSERT_TRUE(run->record.result_json);
    const auto result = parse_json(*run->record.result_json);
    for (const auto& record : result["eval"]["records"]) {
      ++records;
      EXPECT_EQ(record["extra"]["part"], record["mean"]) << record;
    }
    for (const std::string& text : run->record.metrics_lines)
      if (const auto line = parse_json(text); line.contains("eval")) {
        EXPECT_EQ(line["val/reward/extra/part/mean"], line["val/reward/mean"]) << text;
      }
  });
  EXPECT_GT(records, seeds_of(60) * 5);
}

TEST(Resume, FilesAtTheirLimitsAreOneEventOfTheRunEach) {
  const SimulatedJob job = plain_job(7);
  const auto told = [](const SimulatedRun& run) {
    const auto of = [&](const char* kind) {
      return std::ranges::count(run.record.events, kind, &JournalledRow::kind);
    };
    return of("samples_full") + of("metrics_thinned");
  };
  auto first = cluster_of(7);
  const auto id = first->submit(job);
  const auto run = first->run_of(*id);
  run->record.samples_max = run->record.metrics_max = 3;
  first->run_until([&] { return told(*run) == 2; }, kVirtualLimit);
  first->run_for(200ms);
  EXPECT_EQ(told(*run), 2) << "the record says it at each sample";
  EXPECT_EQ(run->record.sample_lines.size(), 3u);
  const auto is_told = [&](const std::string& line) {
    return line.find(" job " + *id + ": samples.jsonl has reached 67108864 bytes") !=
               std::string::npos ||
           line.find(" job " + *id + ": metrics.jsonl has reached 268435456 bytes") !=
               std::string::npos;
  };
  EXPECT_EQ(std::ranges::count_if(first->trace(), is_told), 2);
  first.reset();
  auto second = cluster_of(8);
  resume_to_end(*second, run);
  EXPECT_EQ(told(*run), 2);
}

TEST(Resume, CancelledRunGoesOn) {
  auto first = cluster_of(7);
  const auto id = first->submit(plain_job(7));
  first->run_for(1200ms);
  ASSERT_TRUE(first->cancel(*id).has_value());
  run_to_end(*first, *id);
  expect_clean_end(*first, *id, "Cancelled");
  const auto run = first->run_of(*id);
  EXPECT_LT(count_groups(run->record.events).trained, 80);
  first.reset();
  auto second = cluster_of(8);
  expect_both_lives_balance(*second, resume_to_end(*second, run));
}

TEST(Resume, TheCostIsThatOfAllIncarnations) {
  SimulatedJob job = plain_job(7);
  job.exchange.pricing = scheduler::Pricing{.rollout = 2.1, .learner = 4};
  job.exchange.budget.steps_total = 80;  // rollouts report once a second
  auto first = cluster_of(7);
  const auto id = first->submit(job);
  first->run_for(1200ms);
  ASSERT_TRUE(first->cancel(*id).has_value());
  run_to_end(*first, *id);
  const auto run = first->run_of(*id);
  const nlohmann::json cut = parse_json(*run->record.result_json)["cost"];
  const std::size_t lines = run->record.metrics_lines.size();
  EXPECT_GT(cut["total"], 0);
  first.reset();
  auto second = cluster_of(8);
  resume_to_end(*second, run);
  const nlohmann::json whole = parse_json(*run->record.result_json)["cost"];
  EXPECT_EQ(whole["currency"], "USD");
  double cost = 0;
  for (const auto& [pool, price] : {std::pair("rollout", 2.1), std::pair("learner", 4.0)}) {
    EXPECT_GT(whole["device_seconds"][pool], cut["device_seconds"][pool]) << pool;
    cost += whole["device_seconds"][pool].get<double>() / 3600 * price;
  }
  EXPECT_NEAR(whole["total"].get<double>() / cost, 1, 1e-9);
  ASSERT_GT(run->record.metrics_lines.size(), lines);
  double before = 0;
  for (const std::string& text : run->record.metrics_lines) {
    const nlohmann::json line = parse_json(text);
    if (!line.contains("tandem/cost/total")) continue;  // an evaluation's
    EXPECT_GE(line["tandem/cost/total"], before);
    EXPECT_GT(line["tandem/cost/step"], 0);
    before = line["tandem/cost/total"];
  }
  EXPECT_GE(whole["total"], before);
}

TEST(Resume, FinishedRunIsLeftAsItIs) {
  auto first = cluster_of(7);
  SimulatedJob job = plain_job(7);
  job.validation_prompts = 10;
  job.exchange.evaluation.sampling = {.n = 3, .temperature = 1, .greedy = true};
  job.data_sources = {"math", "a=b c"};
  job.scorer.values = 2;
  const std::string id = run_job(*first, job);
  const auto run = first->run_of(id);
  const std::string weights = weights_of(*first, id);
  const nlohmann::json result = parse_json(*run->record.result_json);
  EXPECT_GT(result["reward_mean"], 0);
  first.reset();
  auto second = cluster_of(8);
  resume_to_end(*second, run);
  expect_both_lives_balance(*second, id);
  EXPECT_EQ(weights_of(*second, id), weights);
  for (const char* figure : {"eval", "reward_mean", "steps", "tokens", "staleness"})
    EXPECT_EQ(parse_json(*run->record.result_json)[figure].dump(), result[figure].dump()) << figure;
  EXPECT_EQ(count_groups(run->record.events).issued, 80);
}

TEST(Resume, ACancelledRunGoesOnFromTheStepThatItHadReached) {
  auto first = cluster_of(7);
  SimulatedJob job = plain_job(7);
  job.exchange.save.steps = 0;
  job.exchange.save_on_cancel = 2min;
  const auto id = first->submit(job);
  first->run_for(1200ms);
  ASSERT_TRUE(first->cancel(*id).has_value());
  run_to_end(*first, *id);
  expect_clean_end(*first, *id, "Cancelled");
  const auto run = first->run_of(*id);
  const auto steps = count_groups(run->record.events).trained / 4;
  EXPECT_GT(steps, 0);
  ASSERT_FALSE(run->checkpoints->checkpoints.empty());
  EXPECT_EQ(run->checkpoints->checkpoints.rbegin()->first, StepId{steps});
  first.reset();
  auto second = cluster_of(8);
  const std::string again = resume_to_end(*second, run);
  EXPECT_EQ(parse_json(*run->record.result_json)["ledger"]["retrained"], 0) << "nothing was lost";
  expect_both_lives_balance(*second, again);
}

// The run as another job takes it up.
std::shared_ptr<SimulatedRun> as_job(const SimulatedJob& job, const SimulatedRun& run) {
  auto copy = std::make_shared<SimulatedRun>(job);
  copy->record.entries = run.record.entries;
  copy->record.events = run.record.events;
  copy->record.metrics_lines = run.record.metrics_lines;
  copy->record.result_json = run.record.result_json;
  *copy->checkpoints = *run.checkpoints;
  return copy;
}

std::shared_ptr<SimulatedRun> as_job_of(std::int64_t steps, const SimulatedRun& run) {
  SimulatedJob job = run.job;
  job.exchange.budget.steps_total = steps;
  return as_job(job, run);
}

TEST(Resume, ARunThatEndedForWantOfFiniteGradientsGoesOnOnceTheyAre) {
  auto first = cluster_of(9);
  SimulatedJob job = plain_job(9);
  for (const std::int64_t step : {2, 6, 7, 8}) job.trainer.nonfinite.insert(StepId{step});
  job.trainer.nonfinite_steps_max = 2;
  const std::string id = run_job(*first, job);
  const auto run = first->run_of(id);
  EXPECT_EQ(first->final_state(id), "Failed");
  EXPECT_EQ(count_groups(run->record.events).trained, 8 * 4) << "skipped steps are trained";
  first.reset();
  job.trainer.nonfinite = {StepId{2}};
  const auto mended = as_job(job, *run);
  auto second = cluster_of(10);
  const std::string again = resume_to_end(*second, mended);
  expect_both_lives_balance(*second, again);
  EXPECT_EQ(parse_json(*mended->record.result_json)["steps_skipped"], 1);
}

TEST(Resume, AFinishedRunThatIsExtendedIsEvaluatedAtItsNewEnd) {
  auto first = cluster_of(7);
  SimulatedJob job = plain_job(7);
  job.validation_prompts = 10;
  const std::string id = run_job(*first, job);
  const auto longer = as_job_of(30, *first->run_of(id));
  first.reset();
  auto second = cluster_of(8);
  resume_to_end(*second, longer);
  expect_both_lives_balance(*second, id);
  std::vector<std::int64_t> final_versions;
  for (const JournalledRow& event : longer->record.events)
    if (event.kind == "evaluated" && event.detail.starts_with("final="))
      final_versions.push_back(event.version);
  EXPECT_EQ(final_versions, (std::vector<std::int64_t>{20, 30}));
}

TEST(Resume, ACheckpointBeyondTheJobsEndIsRefusedAndTheRunStays) {
  auto first = cluster_of(7);
  const std::string id = run_job(*first, plain_job(7));
  const auto shorter = as_job_of(10, *first->run_of(id));
  const auto result = shorter->record.result_json;
  first.reset();
  auto second = cluster_of(8);
  const auto resumed = second->resume(shorter);
  ASSERT_TRUE(resumed.has_value());
  run_to_end(*second, *resumed);
  EXPECT_EQ(second->final_state(*resumed), "Failed");
  EXPECT_EQ(shorter->record.result_json, result);
}

// The part of a result that depends only on the trained groups.
nlohmann::json fixed_figures(SimulatedCluster& cluster, const std::string& job) {
  const auto result = parse_json(*cluster.run_of(job)->record.result_json);
  return {{"weights", result["weights_sha256"]},
          {"trained", result["tokens"]["trained"]},
          {"staleness", result["staleness"]},
          {"logprob_diff", result["logprob_diff"]}};
}

// Everything dies, shared memory and all, at a random moment, and again after the resume; versions
// from before the checkpoint that later slots need come from the checkpoint itself.
TEST(Resume, FixedLagRepeatsTheUninterruptedRun) {
  int resumed_later = 0;
  for_seeds(40, [&](std::uint64_t seed) {
    SimulatedJob job = fixed_lag_job(seed, static_cast<std::int64_t>(seed % 5));
    job.exchange.save.steps = seed % 8 == 0 ? 0 : 1 + static_cast<std::int64_t>(seed % 4);
    job.exchange.filter_groups.enable = seed % 3 == 0;
    job.scorer.values = 2;
    auto whole = cluster_of(seed);
    const auto uninterrupted = fixed_figures(*whole, run_job(*whole, job));
    Rng rng(derive_seed(seed, "cut"));
    const auto run = cut_run(job, seed, 50 + rng.below(400));
    if (seed % 3 == 0) cut_power(*run, seed);
    const auto& checkpoints = run->checkpoints->checkpoints;
    resumed_later += !checkpoints.empty() && checkpoints.rbegin()->first > StepId{0};
    for (std::int32_t rollouts = 1; rollouts <= 3; ++rollouts) {
      SimulatedJob sized = job;
      sized.replicas[messages::Role::kRollout] = rollouts;
      auto copy = std::make_shared<SimulatedRun>(sized);
      copy->record.entries = run->record.entries;
      copy->record.events = run->record.events;
      copy->record.metrics_lines = run->record.metrics_lines;
      *copy->checkpoints = *run->checkpoints;
      auto cluster = cluster_of(seed + 1000);
      const Kills kills(*cluster, seed, {.later = rollouts});
      const std::string id = resume_to_end(*cluster, copy);
      expect_both_lives_balance(*cluster, id);
      EXPECT_EQ(fixed_figures(*cluster, id), uninterrupted) << rollouts << " rollouts";
    }
  });
  EXPECT_GT(resumed_later, static_cast<int>(seeds_of(40)) / 2);
}

}  // namespace
}  // namespace tandem::controller
