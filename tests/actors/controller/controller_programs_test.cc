// Programs of a user's as actors: alone in a job, and beside training.
//
// Tests actors/controller/controller_core.h, actors/controller/programs.h.
#include <chrono>

#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

void pass(World& world, Duration time) {
  world.now = world.now + time;
  world.must(Tick{});
}

TEST(ControllerPrograms, AJobOfActorsAloneRunsOnceAllAreReady) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(actors_alone(2));
  EXPECT_EQ(world.state(job), JobState::kStarting);
  EXPECT_TRUE(world.exchanges.empty());
  const std::string first = job + "/counter/0";
  world.must(RankConnected{{first, world.record(first).incarnation, 0}});
  EXPECT_STREQ(world.reason(first), "WaitingForProgram");
  ASSERT_EQ(world.programs_started.size(), 1u);
  EXPECT_EQ(world.programs_started[0].actor, first);
  EXPECT_EQ(world.programs_started[0].role, "counter");
  EXPECT_EQ(world.programs_started[0].replicas, 2);
  EXPECT_EQ(world.programs_started[0].args_json, R"({"start": 3})");
  EXPECT_EQ(world.programs_started[0].run_dir, "runs/" + job);
  EXPECT_TRUE(world.started.empty()) << "no StartRank for a user's program";
  world.ready(first);
  EXPECT_EQ(world.state(job), JobState::kStarting);
  world.ready(job + "/counter/1");
  EXPECT_EQ(world.state(job), JobState::kRunning);
  ASSERT_TRUE(world.core.program_to_ask(first));
  EXPECT_EQ(world.core.program_to_ask(first)->actor, first);
}

TEST(ControllerPrograms, SucceedsWhenAllHaveEndedWithZero) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(actors_alone(2));
  world.all_ready(job);
  world.exit_0(job + "/counter/0");
  EXPECT_EQ(world.state_of(job + "/counter/0"), ActorState::kStopped);
  EXPECT_STREQ(world.reason(job + "/counter/0"), "Finished");
  EXPECT_EQ(world.state(job), JobState::kRunning);
  world.exit_0(job + "/counter/1");
  EXPECT_EQ(world.state(job), JobState::kSucceeded);
  EXPECT_TRUE(world.results.contains(job));
  EXPECT_TRUE(world.core.idle());
}

TEST(ControllerPrograms, FinishesBeforeItWasReadyAndBeforeTheOthersAre) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(actors_alone(2));
  world.exit_0(job + "/counter/0");
  EXPECT_EQ(world.state(job), JobState::kStarting);
  world.ready(job + "/counter/1");
  EXPECT_EQ(world.state(job), JobState::kRunning);
}

TEST(ControllerPrograms, ADeathIsRestartedAndFailsItsQuestions) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(actors_alone(1)), counter = job + "/counter/0";
  world.all_ready(job);
  world.die(counter);
  EXPECT_EQ(world.state_of(counter), ActorState::kBackoff);
  EXPECT_EQ(world.state(job), JobState::kRunning);
  ASSERT_EQ(world.asks_failed.size(), 1u);
  EXPECT_EQ(world.asks_failed[0].id.actor, counter);
  EXPECT_EQ(world.asks_failed[0].cause, "killed by SIGKILL (9)");
  EXPECT_EQ(world.core.program_to_ask(counter).error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(world.core.program_to_ask(job + "/counter/9").error().code, ErrorCode::kNotFound);
  pass(world, 10s);
  world.ready(counter);
  EXPECT_EQ(world.state_of(counter), ActorState::kReady);
  // An exit with another code than 0 is a death too, and enough of them fail the job.
  for (int i = 0; i < 1000 && world.state(job) == JobState::kRunning; ++i) {
    world.die(counter);
    pass(world, 100s);
  }
  EXPECT_EQ(world.state(job), JobState::kFailed);
  EXPECT_TRUE(world.results.contains(job));
}

TEST(ControllerPrograms, TheLinkOfAProgramThatEndsMayGoDownFirst) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(actors_alone(2));
  world.all_ready(job);
  const auto hang_up = [&](const std::string& actor) {
    world.must(RankHung{{actor, world.record(actor).incarnation, 0}, 0});
  };
  hang_up(job + "/counter/0");
  EXPECT_TRUE(world.told_to_end.empty());
  world.exit_0(job + "/counter/0");
  EXPECT_STREQ(world.reason(job + "/counter/0"), "Finished");
  // A program that runs on without a link is ended, which counts as a death.
  hang_up(job + "/counter/1");
  pass(world, 4s);
  EXPECT_EQ(world.told_to_end.size(), 1u);
  world.obey();
  EXPECT_EQ(world.state_of(job + "/counter/1"), ActorState::kBackoff);
}

TEST(ControllerPrograms, AreScaledAndDrained) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(actors_alone(2));
  world.all_ready(job);
  world.must(ScaleRole{job, {"counter"}, 4});
  world.all_ready(job);
  EXPECT_EQ(world.alive.size(), 4u);
  world.must(ScaleRole{job, {"counter"}, 1});
  EXPECT_EQ(world.told_to_drain.size(), 3u);
  EXPECT_TRUE(world.told_to_end.empty());
  EXPECT_EQ(world.state_of(job + "/counter/3"), ActorState::kDraining);
  world.exit_0(job + "/counter/3");
  world.exit_0(job + "/counter/2");
  pass(world, 31s);
  EXPECT_EQ(world.told_to_end.size(), 1u) << "it took too long";
  world.obey();
  EXPECT_EQ(world.core.jobs().at(job).actors.size(), 1u);
  EXPECT_EQ(world.state(job), JobState::kRunning);
  world.must(ScaleRole{job, {"counter"}, 0});
  world.exit_0(job + "/counter/0");
  EXPECT_TRUE(world.core.jobs().at(job).actors.empty());
  EXPECT_EQ(world.state(job), JobState::kRunning) << "it waits to be scaled";
  const auto unknown = world.take(ScaleRole{job, messages::Role::kRollout, 2});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().help, "possible: counter=N");
  const auto many = world.take(ScaleRole{job, {"counter"}, 1025});
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message, "cannot scale counter to 1025: a role has 0 to 1024 actors");
}

TEST(ControllerPrograms, AFinishedActorThatIsScaledAwayMayComeBack) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(actors_alone(2));
  world.all_ready(job);
  world.exit_0(job + "/counter/1");
  world.must(ScaleRole{job, {"counter"}, 1});
  EXPECT_EQ(world.core.jobs().at(job).actors.size(), 1u);
  world.must(ScaleRole{job, {"counter"}, 2});
  EXPECT_EQ(world.state_of(job + "/counter/1"), ActorState::kStarting);
}

TEST(ControllerPrograms, ACancelledJobDrainsAndEnds) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(actors_alone(2));
  world.all_ready(job);
  world.must(CancelJob{job});
  EXPECT_EQ(world.state(job), JobState::kStopping);
  EXPECT_EQ(world.told_to_drain.size(), 2u);
  world.exit_0(job + "/counter/0");
  EXPECT_EQ(world.state(job), JobState::kStopping);
  world.exit_0(job + "/counter/1");
  EXPECT_EQ(world.state(job), JobState::kCancelled);
  EXPECT_TRUE(world.results.contains(job));
}

TEST(ControllerPrograms, RunBesideTrainingAndEndWithIt) {
  World world;
  world.node("a", 8);
  JobShape shape = shape_of(1);
  add_program(shape, "counter", 2);
  const std::string job = world.submit(shape);
  EXPECT_EQ(world.alive.size(), 5u);
  EXPECT_TRUE(world.exchanges.contains(job));
  world.all_ready(job);
  EXPECT_EQ(world.state(job), JobState::kStarting) << "the exchange says when it runs";
  world.must(messages::JobProgress{job, messages::JobPhase::kRunning, "training"});
  world.exit_0(job + "/counter/0");
  EXPECT_EQ(world.state(job), JobState::kRunning);
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 0u) << "the exchange does not know it";
  EXPECT_EQ(world.core.program_to_ask(job + "/rollout/0").error().code, ErrorCode::kInvalid);
  world.must(messages::JobEnded{job, messages::JobOutcome::kSucceeded, "all steps are trained"});
  EXPECT_EQ(world.told_to_drain.size(), 1u);
  world.obey();
  EXPECT_EQ(world.state(job), JobState::kSucceeded);
  EXPECT_FALSE(world.results.contains(job)) << "the exchange writes the result";
}

TEST(ControllerPrograms, AreRefusedWhereTheyFitNoNode) {
  World world;
  world.node("a", 4);
  const auto refused = world.take(SubmitJob{actors_alone(20), "big-1", "runs/big-1"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(refused.error().help.find("actors.counter.replicas=8"), std::string::npos)
      << refused.error().help;
}

TEST(ControllerPrograms, NamesOfTandemAreNoNamesOfRoles) {
  for (const char* good : {"counter", "a", "parameter-server_2"})
    EXPECT_TRUE(messages::check_role_name(good)) << good;
  for (const char* bad : {"", "Counter", "2nd", "a.b", "a/b", "rollout", "learner", "reward",
                          "controller", "exchange", "node", "agent", "environment", "critic",
                          "reference", "abcdefghijklmnopqrstuvwxyzabcdefg"})
    EXPECT_FALSE(messages::check_role_name(bad)) << bad;
}

TEST(ControllerPrograms, ARunOfActorsAloneIsTakenUpWhenItGoesOn) {
  World world;
  JobShape shape = actors_alone(1);
  shape.resume_dir = "runs/job-1";
  const std::string queued = world.submit(shape);
  world.must(CancelJob{queued});
  EXPECT_TRUE(world.runs_taken_up.empty()) << "its former result stays";
  EXPECT_STREQ(outcome_file(world.core.jobs().at(queued)), "resume.json");
  world.node("a", 4);
  const std::string job = world.submit(shape);
  EXPECT_EQ(world.runs_taken_up, std::vector<std::string>{job});
  world.submit(actors_alone(1));
  EXPECT_EQ(world.runs_taken_up.size(), 1u) << "a new run";
}

}  // namespace
}  // namespace tandem::controller
