// The section `actors` of a job file, alone and beside training.
//
// Tests actors/job/actor_spec.h.
#include <gtest/gtest.h>

#include "actors/job/explain.h"
#include "actors/job/print_job.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

const std::string kCounter =
    "name: demo\nactors:\n  counter:\n    command: [bin/counter, --fast]\n";

TEST(Actors, AJobOfActorsAloneNeedsNothingElse) {
  const JobFolder folder;
  const auto job =
      folder.parse(kCounter + "    replicas: 2\n    args: { start: 3, \"n\": [a, 1.5] }\n");
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_FALSE(trains(job->spec));
  EXPECT_TRUE(job->warnings.empty());
  const ActorSpec& counter = job->spec.actors.at("counter");
  EXPECT_EQ(counter.command->at(0), (folder.root() / "bin/counter").string());
  EXPECT_EQ(counter.command->at(1), "--fast");
  EXPECT_EQ(counter.replicas, 2);
  EXPECT_EQ(counter.cpus_per_actor, 0.5);
  EXPECT_FALSE(counter.memory_megabytes);
  EXPECT_EQ(counter.args.text, R"({"start": 3, "n": ["a", 1.5]})");
}

TEST(Actors, ThePrintedJobOfActorsAloneReadsBackAsItselfPJ1) {
  const JobFolder folder;
  const auto job = folder.parse(kCounter + "  other: { command: [sh], env: { A: \"1\" } }\n");
  ASSERT_TRUE(job) << render(job.error());
  const std::string printed = print_job(job->spec);
  EXPECT_TRUE(printed.starts_with("name: demo\nactors:\n  counter:\n    command: [")) << printed;
  EXPECT_EQ(printed.find("seed"), std::string::npos);
  const auto again = folder.parse(printed);
  ASSERT_TRUE(again) << render(again.error()) << printed;
  EXPECT_EQ(print_job(again->spec), printed);
}

TEST(Actors, StandBesideTraining) {
  const JobFolder folder;
  const auto job =
      folder.parse(folder.minimal() + "actors: { counter: { command: [sh] } }\n",
                   {"actors.counter.replicas=0", "actors.extra.command=[../bin/counter]"});
  ASSERT_TRUE(job) << render(job.error());
  EXPECT_TRUE(trains(job->spec));
  EXPECT_EQ(job->spec.actors.at("counter").replicas, 0);
  EXPECT_EQ(job->spec.actors.at("extra").command->front(),
            (folder.root() / "bin/counter").string());
  const auto without =
      folder.parse(folder.minimal() + "actors: { counter: { command: [sh] } }\n", {"actors=null"});
  ASSERT_TRUE(without) << render(without.error());
  EXPECT_TRUE(without->spec.actors.empty());
}

TEST(Actors, OtherSectionsBelongToTraining) {
  const JobFolder folder;
  const Refused r = refused(folder.parse(kCounter + "reward: { type: exact }\n"));
  EXPECT_EQ(r.message, "`model.path` is missing");
  EXPECT_HAS(r.help,
             "a job of actors alone has only `name` and `actors`, and this one also `reward`");
  EXPECT_EQ(refused(folder.parse("name: demo\nactors: {}\n")).message, "`model.path` is missing");
}

TEST(Actors, RefusesNamesAndKeysWithTheirPlace) {
  const JobFolder folder;
  const auto check = [&](const std::string& entry, const std::string& message,
                         const std::string& where) {
    const Refused r = refused(folder.parse("name: demo\nactors:\n" + entry));
    EXPECT_HAS(r.message, message);
    EXPECT_EQ(r.where, where) << r.message;
  };
  check("  rollout: { command: [sh] }\n", "`rollout` is a name of Tandem's own", "job.yaml:3:3");
  check("  Counter: { command: [sh] }\n", "`Counter` cannot name a role", "job.yaml:3:3");
  check("  a.b: { command: [sh] }\n", "unknown key `actors.a.b`", "job.yaml:3:3");
  check("  counter: { comand: [sh] }\n", "unknown key `actors.counter.comand`", "job.yaml:3:14");
  check("  counter: { replicas: 2 }\n", "`actors.counter.command` is missing", "job.yaml:3:12");
  check("  counter: { command: [] }\n", "`actors.counter.command` is empty", "job.yaml:3:14");
  check("  counter: { command: sh }\n", "`actors.counter.command` expects a list", "job.yaml:3:23");
  check("  counter: { command: [sh], replicas: 1025 }\n", "out of range: 1025", "job.yaml:3:39");
  check("  counter: { command: [sh], args: { a: 1, a: 2 } }\n", "has `a` twice", "job.yaml:3:43");
  check("  counter: { command: [sh], args: { a: .inf } }\n", "no number of JSON", "job.yaml:3:40");
  check("  counter: { command: [sh], env: { 1A: b } }\n", "cannot name an environment variable",
        "job.yaml:3:29");
  check("  counter: 5\n", "`actors.counter` is a section", "job.yaml:3:12");
  check("  counter: { command: [no-such-program-here] }\n",
        "cannot run `no-such-program-here`, named by `actors.counter.command`", "job.yaml:3:14");
  check("  counter: { command: [./data/train.jsonl] }\n", "cannot run", "job.yaml:3:14");
  EXPECT_HAS(refused(folder.parse("name: d\nactors: { counter: { comand: [sh] } }\n")).help,
             "`actors.counter.command`");
}

TEST(Actors, ArgumentsAreBounded) {
  const JobFolder folder;
  const std::string much(70'000, 'x');
  EXPECT_HAS(refused(folder.parse(kCounter + "    args: { a: " + much + " }\n")).message,
             "too large");
  // Aliases repeat what they stand for: ten levels of ten are ten thousand million items.
  std::string bomb = "    args:\n      l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string above = "*l" + std::to_string(i - 1);
    std::string line = "      l" + std::to_string(i) + ": &l" + std::to_string(i) + " [" + above;
    for (int k = 0; k < 9; ++k) line += ", " + above;
    bomb += line + "]\n";
  }
  EXPECT_HAS(refused(folder.parse(kCounter + bomb)).message, "too large");
}

TEST(Actors, MayAskForASandbox) {
  const JobFolder folder;
  EXPECT_EQ(folder.parse(kCounter)->spec.actors.at("counter").sandbox, SandboxMode::kOff);
  const auto job = folder.parse(kCounter + "    sandbox: strict\n    readable: [data]\n");
  ASSERT_TRUE(job) << render(job.error());
  const ActorSpec& counter = job->spec.actors.at("counter");
  EXPECT_EQ(counter.sandbox, SandboxMode::kStrict);
  EXPECT_EQ(counter.readable, (std::vector<std::filesystem::path>{folder.root() / "data"}));
  const auto again = folder.parse(print_job(job->spec));
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(again->spec.actors.at("counter").readable, counter.readable) << "PJ-1";
  EXPECT_HAS(refused(folder.parse(kCounter + "    sandbox: auto\n    gpus_per_actor: 1\n")).message,
             "sees no GPU");
  EXPECT_HAS(refused(folder.parse(kCounter + "    readable: [data]\n")).help, "sandbox: auto");
}

TEST(Actors, AreExplained) {
  const auto section = explain("actors");
  ASSERT_TRUE(section);
  EXPECT_HAS(*section, "actors.NAME.command");
  ASSERT_TRUE(explain("actors.NAME.args"));
  EXPECT_HAS(*explain("actors.counter.args"), "at most 64 KiB");
}

}  // namespace
}  // namespace tandem::job
