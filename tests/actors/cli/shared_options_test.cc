// The options that verbs share, in a verb of this test; the points of a sweep.
//
// Tests actors/cli/shared_options.h, actors/cli/sweep.h.
#include "actors/cli/shared_options.h"

#include <gtest/gtest.h>

#include "actors/cli/sweep.h"
#include "tests/actors/cli/parsing.h"

namespace tandem::cli {
namespace {

using Words = std::vector<std::string>;

struct Show {
  static VerbHelp help() {
    return {.name = "show",
            .group = VerbGroup::kLook,
            .description = "Shows",
            .examples = {"tandem show jobs"}};
  }
  void options(Options& options) {
    const auto take = [this](ObjectName given) -> Result<void> {
      object = std::move(given);
      return {};
    };
    add_object(options, "KIND", take, "What to show");
    add_output(options, output, {OutputForm::kTable, OutputForm::kJson});
    add_job(options, job);
    add_time(options, "--timeout", timeout_s, "Gives up after it");
  }
  Result<int> run(const VerbContext&) { return 0; }

  std::optional<ObjectName> object;
  OutputForm output = OutputForm::kTable;
  std::optional<std::string> job;
  std::optional<double> timeout_s;
};

struct Work {
  static VerbHelp help() {
    return {.name = "work",
            .group = VerbGroup::kRun,
            .description = "Works",
            .examples = {"tandem work job.yaml"}};
  }
  void options(Options& options) {
    add_job_file(options, job, resume, sets);
    add_listen_options(options, listen);
    add_memory(options, memory_bytes);
  }
  Result<int> run(const VerbContext&) { return 0; }

  std::optional<std::filesystem::path> job, resume;
  Words sets;
  ListenOptions listen;
  std::optional<std::int64_t> memory_bytes;
};

std::vector<Verb> both_verbs() { return {make_verb<Show>(), make_verb<Work>()}; }

TEST(SharedOptions, ObjectsAreTakenInBothForms) {
  for (const auto& words : {Words{"show", "actors", "a-1/rollout/0"},
                            {"show", "actors/a-1/rollout/0"},
                            {"show", "actor/a-1/rollout/0"}}) {
    const auto show = parsed<Show>(words);
    ASSERT_TRUE(show.object);
    EXPECT_EQ(show.object->kind, Kind::kActors);
    EXPECT_EQ(show.object->name, "a-1/rollout/0");
  }
  const auto show = parsed<Show>({"show", "jobs", "-o", "json", "-j", "x", "--timeout", "2m"});
  EXPECT_EQ(show.object->kind, Kind::kJobs);
  EXPECT_FALSE(show.object->name);
  EXPECT_EQ(show.output, OutputForm::kJson);
  EXPECT_EQ(show.job, "x");
  EXPECT_EQ(show.timeout_s, 120);
  EXPECT_EQ(parsed<Show>({"show", "actor"}).object->kind, Kind::kActors);
  EXPECT_EQ(parsed<Show>({"show", "nodes/vm"}).object->name, "vm");
  EXPECT_FALSE(parsed<Show>({"show", "jobs"}).timeout_s);
}

TEST(SharedOptions, MistakesAreUsageErrors) {
  expect_refused({"show", "actos"}, both_verbs, "unknown kind `actos`", "`actors`");
  expect_refused({"show", "jobs/a", "b"}, both_verbs, "two names: `a` and `b`", "jobs/NAME");
  expect_refused({"show", "jobs", "--timeout", "soon"}, both_verbs,
                 "`--timeout soon` is not a time", "90s");
  expect_refused({"show", "jobs", "-o", "yaml"}, both_verbs, "yaml not in {table,json}", "--help");
  expect_refused({"work"}, both_verbs, "JOB.yaml is required", "--resume RUN_DIR");
  expect_refused({"work", "--memory", "many"}, both_verbs, "JOB.yaml is required", "");
  expect_refused({"work", "j", "--memory", "many"}, both_verbs, "not a size", "GiB");
  expect_refused({"work", "j", "--memory", "12GB"}, both_verbs, "not a size", "GiB");
  expect_refused({"work", "j", "--memory", "12"}, both_verbs,
                 "is 12 bytes, and a node offers at least 64 MiB", "GiB");
  expect_refused({"work", "j", "--port", "65534"}, both_verbs, "not in range 0 to 65533", "--help");
  expect_refused({"work", "j", "--pricing", "rollout=-1,learner=1"}, both_verbs,
                 "`-1` is no price of rollout", "rollout=2.10,learner=4.00");
  expect_refused({"work", "j", "--bind", "here"}, both_verbs, "--bind", "tandem work --help");
}

TEST(SharedOptions, AResumedRunNeedsNoJobFile) {
  const auto work = parsed<Work>({"work", "--resume", "a-1"});
  EXPECT_EQ(work.job, std::nullopt);
  EXPECT_EQ(work.resume, "a-1");
}

TEST(SharedOptions, SetsAreTakenInOrderAndAsWritten) {
  const auto work = parsed<Work>({"work", "--set", "a.b=[1, 2]", "job.yaml", "--set=c=d=e"});
  EXPECT_EQ(work.job, "job.yaml");
  EXPECT_EQ(work.sets, (Words{"a.b=[1, 2]", "c=d=e"}));
}

TEST(SharedOptions, AControllerListensWhereItIsTold) {
  const auto usual = parsed<Work>({"work", "j"});
  EXPECT_EQ(usual.listen.port, kPortDefault);
  EXPECT_EQ(usual.listen.bind, "127.0.0.1");
  EXPECT_EQ(usual.listen.node_grace_s, 300);
  EXPECT_FALSE(usual.memory_bytes);
  const auto work =
      parsed<Work>({"work", "j", "--port", "0", "--bind", "10.0.0.1", "--allow-host", "a",
                    "--allow-host", "b", "--metrics-without-token", "--node-grace-s", "3600",
                    "--pricing", "rollout=2.10,learner=4", "--memory", "1.5GiB"});
  EXPECT_EQ(work.listen.port, 0);
  EXPECT_EQ(work.listen.bind, "10.0.0.1");
  EXPECT_EQ(work.listen.allow_hosts, (Words{"a", "b"}));
  EXPECT_TRUE(work.listen.metrics_without_token);
  EXPECT_EQ(work.listen.node_grace_s, 3600);
  EXPECT_FALSE(usual.listen.pricing);
  EXPECT_EQ(work.listen.pricing, (scheduler::Pricing{.rollout = 2.1, .learner = 4}));
  EXPECT_EQ(work.memory_bytes, 3ll << 29);
}

// Several values of --set are a sweep where nothing else can be meant: not where a value may have
// commas, and not where a later --set replaces them.
TEST(Sweep, ASetOfSeveralValuesIsOneWhereTheKeyHasNoCommas) {
  const Settings found = with_sweeps_found(
      {.sets = {"seed=1,2", "learner.optimizer.lr=1e-3,3e-3", "data.shuffle=true,false",
                "algorithm.loss_agg_mode=token-mean,seq-mean-token-mean", "rollout.top_k=1,2",
                "actors.counter.replicas=1,2", "data.max_prompt_length=1000,200",
                "data.max_response_length=64,128,1024"},
       .sweeps = {"rollout.n=4,8"}});
  EXPECT_EQ(found.sets, std::vector<std::string>());
  EXPECT_EQ(found.sweeps,
            (std::vector<std::string>{
                "rollout.n=4,8", "seed=1,2", "learner.optimizer.lr=1e-3,3e-3",
                "data.shuffle=true,false", "algorithm.loss_agg_mode=token-mean,seq-mean-token-mean",
                "rollout.top_k=1,2", "actors.counter.replicas=1,2",
                "data.max_prompt_length=1000,200", "data.max_response_length=64,128,1024"}));
  const std::vector<std::string> kept = {
      "seed=1,2",  // replaced below
      "seed=3", "learner.optimizer.betas=0.9,0.99", "data.train_files=a,b", "name=a,b",
      "nothing=1,2", "tracking.notes=one, two",
      // Each may be one number.
      "learner.total_training_steps=1,000", "rollout.n=-1,000,000", "learner.optimizer.lr=0,001",
      "rollout.top_k=1,05"};
  const Settings none = with_sweeps_found({.sets = kept, .sweeps = {}});
  EXPECT_EQ(none.sets, kept);
  EXPECT_EQ(none.sweeps, std::vector<std::string>());
}

TEST(Sweep, PointsAreAllCombinations) {
  EXPECT_EQ(*sweep_points({}), std::vector<SweepPoint>(1));
  EXPECT_EQ(*sweep_points({"seed=1,2", "a.b=[1,2],\"x,y\""}),
            (std::vector<SweepPoint>{{"seed=1", "a.b=[1,2]"},
                                     {"seed=1", "a.b=\"x,y\""},
                                     {"seed=2", "a.b=[1,2]"},
                                     {"seed=2", "a.b=\"x,y\""}}));
  std::string many = "seed=0";
  for (int i = 1; i < 300; ++i) many += "," + std::to_string(i);
  for (const Words& wrong :
       {Words{"seed"}, {"=1"}, {"seed="}, {"seed=1,,2"}, {"a=1", "a=2"}, {many}})
    EXPECT_FALSE(sweep_points(wrong)) << wrong.back();
}

TEST(Sweep, RunsAreLabelledWhereTheJobIsNot) {
  job::JobSpec job;
  job.name = "arith";
  label_sweep_run(job, {}, "t");
  EXPECT_FALSE(job.tracking.group) << "no sweep";
  label_sweep_run(job, {"seed=1", "a.b=[1,2]"}, "t");
  EXPECT_EQ(job.tracking.group, "arith-sweep-t");
  EXPECT_EQ(job.tracking.run_name, "arith seed=1 a.b=[1;2]");
  label_sweep_run(job, {"seed=2"}, "u");
  EXPECT_EQ(job.tracking.group, "arith-sweep-t") << "the job's own";
  EXPECT_EQ(sweep_time(1'800'000'000'000).size(), 15U);
}

}  // namespace
}  // namespace tandem::cli
