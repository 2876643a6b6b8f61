// Tests how the controller answers ranks that fail: after which failures it starts them again,
// which failures end the job, and how it reports a loop of deaths.
//
// Tests actors/controller/controller_core.h.
#include <chrono>

#include "actors/api/api_json.h"
#include "runtime/base/json.h"
#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

struct Failures : testing::Test {
  Failures() {
    world.node("a", 8);
    job = world.submit(shape_of(1));
    world.all_ready(job);
  }
  std::string named(const std::string& actor) const { return job + "/" + actor; }
  void killed_for_memory(const std::string& actor) {
    world.end({.id = {actor, world.record(actor).incarnation, 0},
               .signal = 9,
               .out_of_memory = node::MemoryKill::kProven,
               .memory_peak_bytes = 22 * kGib,
               .memory_last_bytes = 21 * kGib});
  }
  void start_again(const std::string& actor) {
    ASSERT_EQ(world.state_of(actor), ActorState::kBackoff);
    world.now = *world.record(actor).restart_at;
    world.must(Tick{});
    ASSERT_EQ(world.state_of(actor), ActorState::kStarting);
    world.ready(actor);
  }
  std::string end_reason() const {
    const auto told = world.told.find(job);
    return told == world.told.end()
               ? ""
               : std::get<messages::EndJob>(told->second.back().message).reason;
  }

  World world;
  std::string job;
};

TEST_F(Failures, TheSecondWantOfMemoryInARowEndsTheJobWithTheFigures) {  // RB-6
  const std::string learner = named("learner/0");
  killed_for_memory(learner);
  start_again(learner);
  EXPECT_EQ(count_told<messages::EndJob>(world, job), 0u);
  world.now = world.now + 10min;  // it worked well for a while, as the first time
  killed_for_memory(learner);
  EXPECT_EQ(world.state_of(learner), ActorState::kFailed);
  EXPECT_STREQ(world.reason(learner), "OOMKilled");
  ASSERT_EQ(count_told<messages::EndJob>(world, job), 1u);
  EXPECT_EQ(end_reason(), learner +
                              " was killed for want of memory at 21.0 GiB, peak 22.0 GiB, of "
                              "1024.0 GiB on its node, for the second time in a row; lower "
                              "learner.max_token_len, set learner.enable_gradient_checkpointing, "
                              "take a smaller model or a machine with more memory");
}

TEST_F(Failures, PlainKillsInARowDoNotEndTheJob) {  // RB-6
  const std::string learner = named("learner/0");
  for (int i = 0; i < 2; ++i) {
    world.die(learner);
    start_again(learner);
    EXPECT_EQ(world.state_of(learner), ActorState::kReady);
  }
  EXPECT_EQ(count_told<messages::EndJob>(world, job), 0u);
}

TEST_F(Failures, AHintIsToldAndConvictsNobody) {  // RB-6
  const std::string learner = named("learner/0");
  for (int i = 0; i < 3; ++i) {
    world.end({.id = {learner, world.record(learner).incarnation, 0},
               .signal = 9,
               .out_of_memory = node::MemoryKill::kHinted});
    const auto* why = std::get_if<scheduler::Backoff>(&world.record(learner).status.reason);
    ASSERT_NE(why, nullptr);
    EXPECT_NE(why->cause.find("perhaps for want of memory"), std::string::npos) << why->cause;
    start_again(learner);
  }
  EXPECT_EQ(count_told<messages::EndJob>(world, job), 0u);
}

TEST_F(Failures, AFailureThatAnotherStartMayMendIsADeathLikeAnyOther) {  // RB-4
  const std::string rollout = named("rollout/0");
  for (const ErrorCode code : {ErrorCode::kFailed, ErrorCode::kTimedOut, ErrorCode::kUnreachable}) {
    const Incarnation life = world.record(rollout).incarnation;
    world.must(messages::RankFailed{rollout, life, 0, "read file: Input/output error", code});
    EXPECT_EQ(world.state_of(rollout), ActorState::kStopping);
    world.obey();
    const auto* why = std::get_if<scheduler::Backoff>(&world.record(rollout).status.reason);
    ASSERT_NE(why, nullptr) << name(code);
    EXPECT_EQ(why->cause, "failed: read file: Input/output error");
    start_again(rollout);
  }
  EXPECT_EQ(count_told<messages::EndJob>(world, job), 0u);
}

// Whether a prompt is to be suspected of the rollout's end, which is a SIGKILL each time.
TEST_F(Failures, AHangAtWorkOnPromptsCountsAsACrashAndOthersDoNot) {
  const std::string rollout = named("rollout/0");
  const auto counts = [&](const std::string& phase) {
    world.now = world.now + 10min;  // its restarts are not used up
    const node::RankId rank{rollout, world.record(rollout).incarnation, 0};
    world.must(RankHung{.id = rank, .silent_s = 60, .phase = phase, .longest_s = 0.1});
    world.obey();
    bool crashed = false;
    for (const TellExchange& tell : world.told.at(job))
      if (const auto* down = std::get_if<messages::ActorDown>(&tell.message)) {
        EXPECT_EQ(down->who.name, rollout);
        crashed = down->crashed;
      }
    start_again(rollout);
    return crashed;
  };
  EXPECT_TRUE(counts("decode"));
  EXPECT_FALSE(counts("update")) << "it takes weights";
  EXPECT_TRUE(counts("submit"));
  for (const char* phase : {"load", "restore", "", "train"}) EXPECT_FALSE(counts(phase)) << phase;
  EXPECT_FALSE(counts(std::string(scheduler::kStoppedPhase))) << "a signal from outside";
}

// More ends than the budgets of actor and role have, by both ways in which a start fails.
TEST_F(Failures, AnActorThatHasWorkedWaitsForItsDisk) {  // RB-7
  const std::string learner = named("learner/0");
  world.die(learner);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(world.state_of(learner), ActorState::kBackoff) << i;
    world.now = *world.record(learner).restart_at;
    world.must(Tick{});
    ASSERT_EQ(world.state_of(learner), ActorState::kStarting) << i;
    const node::RankId rank{learner, world.record(learner).incarnation, 0};
    if (i % 2 == 0) {
      world.alive.erase(rank);
      world.must(node::RankSpawnFailed{rank, "cannot open the log: No space left on device", true});
    } else {
      world.must(messages::RankFailed{rank.actor, rank.incarnation, 0, "No space left on device",
                                      ErrorCode::kInvalid, true});
      world.obey();
    }
    EXPECT_STREQ(world.reason(learner), "WaitingForDisk") << i;
  }
  const auto* why = std::get_if<scheduler::WaitingForDisk>(&world.record(learner).status.reason);
  ASSERT_NE(why, nullptr);
  EXPECT_NE(why->cause.find("No space left on device"), std::string::npos) << why->cause;
  start_again(learner);
  EXPECT_EQ(world.state_of(learner), ActorState::kReady);
  EXPECT_EQ(count_told<messages::EndJob>(world, job), 0u);
}

TEST(FirstStart, ADiskThatCannotBeWrittenEndsTheJobAtOnce) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const std::string learner = job + "/learner/0";
  world.must(messages::RankFailed{learner, world.record(learner).incarnation, 0,
                                  "No space left on device", ErrorCode::kInvalid, true});
  EXPECT_EQ(count_told<messages::EndJob>(world, job), 1u);
}

TEST(FirstStart, MayFailAndBeTriedAgainUntilTheBudgetIsUsedUp) {  // RB-4, RB-5
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const std::string learner = job + "/learner/0";
  int starts = 0;
  for (; world.state_of(learner) != ActorState::kFailed; ++starts) {
    ASSERT_LT(starts, 100);
    if (starts > 0) {
      ASSERT_EQ(world.state_of(learner), ActorState::kBackoff);
      world.now = *world.record(learner).restart_at;
      world.must(Tick{});
    }
    const Incarnation life = world.record(learner).incarnation;
    world.must(RankConnected{{learner, life, 0}});
    world.must(
        messages::RankFailed{learner, life, 0, "rank 1 came too late", ErrorCode::kTimedOut});
    world.obey();
  }
  EXPECT_GT(starts, 5);
  ASSERT_EQ(count_told<messages::EndJob>(world, job), 1u);
  const auto& end = std::get<messages::EndJob>(world.told[job].back().message);
  EXPECT_NE(end.reason.find("rank 1 came too late"), std::string::npos) << end.reason;
}

TEST_F(Failures, BadInputEndsTheJobAtOnce) {  // RB-4
  for (const ErrorCode code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kInfeasible}) {
    World fresh;
    fresh.node("a", 4);
    const std::string id = fresh.submit(shape_of(1));
    const std::string learner = id + "/learner/0";
    const Incarnation life = fresh.record(learner).incarnation;
    fresh.must(RankConnected{{learner, life, 0}});
    fresh.must(messages::RankFailed{learner, life, 0, "the model file is damaged", code});
    EXPECT_EQ(count_told<messages::EndJob>(fresh, id), 1u) << name(code);
  }
}

struct GangFailures : testing::Test {
  GangFailures() {
    world.node("a", 8);
    job = world.submit(shape_of(1, 1, 2));
    learner = job + "/learner/0";
    life = world.record(learner).incarnation;
  }
  World world;
  std::string job, learner;
  Incarnation life;
};

TEST_F(GangFailures, ItStartsWhenAllOfItsRanksAreUp) {
  world.must(RankConnected{{learner, life, 0}});
  EXPECT_TRUE(world.started.empty()) << "its rendezvous would wait for a rank that is not there";
  world.must(RankConnected{{learner, life, 1}});
  ASSERT_EQ(world.started.size(), 1u);
  EXPECT_EQ(world.started[0].rank, 0);
}

TEST_F(GangFailures, ARankThatNeverReportsIsNotWaitedForForEver) {
  world.ready(job + "/rollout/0");
  world.ready(job + "/reward/0");
  world.must(RankConnected{{learner, life, 0}});
  EXPECT_TRUE(world.wakes.contains(Time{} + kReportWait));
  world.now = Time{} + kReportWait;
  world.must(Tick{});
  EXPECT_EQ(world.told_to_end.size(), 2u);
  world.obey();
  const auto* why = std::get_if<scheduler::Backoff>(&world.record(learner).status.reason);
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->cause,
            "its process could not be started: rank 1 did not report within 120 s of its start");
}

TEST_F(GangFailures, SoIsAProcessOfItsOwnThatNeverReports) {
  world.ready(learner);
  const std::string rollout = job + "/rollout/0", reward = job + "/reward/0";
  world.must(RankConnected{{reward, world.record(reward).incarnation, 0}});  // and loads for long
  world.now = Time{} + (kReportWait - 1s);
  world.must(Tick{});
  EXPECT_TRUE(world.told_to_end.empty());
  world.now = Time{} + kReportWait;
  world.must(Tick{});
  ASSERT_EQ(world.told_to_end.size(), 1u);
  EXPECT_EQ(world.told_to_end.begin()->actor, rollout);
  world.obey();
  ASSERT_EQ(world.state_of(rollout), ActorState::kBackoff);
  EXPECT_EQ(world.state_of(reward), ActorState::kInitializing);
  EXPECT_STREQ(scheduler::reason_name(world.record(reward).status.reason), "StartingVerifier");
  EXPECT_NE(scheduler::message(world.record(rollout).status.reason, world.now)
                .find("rank 0 did not report within 120 s of its start"),
            std::string::npos);
  world.now = *world.record(rollout).restart_at;
  world.must(Tick{});
  EXPECT_EQ(world.state_of(rollout), ActorState::kStarting);
  EXPECT_EQ(world.record(rollout).report_deadline, world.now + kReportWait) << "of its next life";
}

TEST_F(GangFailures, TheRankThatTheKernelKilledIsTheRootCause) {
  world.ready(learner);
  world.must(messages::RankFailed{learner, life, 0, "the gang broke: rank 1 is gone"});
  world.end({.id = {learner, life, 1},
             .signal = 9,
             .out_of_memory = node::MemoryKill::kProven,
             .memory_peak_bytes = kGib});
  world.obey();
  const auto* why = std::get_if<scheduler::Backoff>(&world.record(learner).status.reason);
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->cause, "killed for want of memory at 1.0 GiB, of 1024.0 GiB on its node");
}

TEST_F(Failures, ALoopOfDeathsIsWhatTheJobSays) {  // CL-1
  const std::string rollout = named("rollout/0");
  const auto told = [&] { return api::job_json(world.core.jobs().at(job), nullptr, world.now); };
  world.must(
      messages::JobProgress{job, messages::JobPhase::kRunning, "waits for the learner to start"});
  EXPECT_EQ(told()["message"], "waits for the learner to start");
  world.now = world.now + 5s;
  world.die(rollout);
  const auto once = told();
  EXPECT_NE(once["reason"], "CrashLoop");
  EXPECT_EQ(once["why"][0]["waits_for"], "Backoff") << "one death is no loop";
  const std::string detail = once["why"][0]["detail"];
  EXPECT_TRUE(detail.starts_with("died (killed by SIGKILL (9)); next try in ")) << detail;
  for (int deaths = 1; deaths < 3; ++deaths) {
    start_again(rollout);
    world.now = world.now + 5s;
    world.die(rollout);
  }
  const auto job_then = told();
  EXPECT_EQ(job_then["reason"], "CrashLoop");
  const std::string message = job_then["message"];
  EXPECT_TRUE(message.starts_with(rollout + " restarted 2 times in ")) << message;
  EXPECT_NE(message.find("(killed by SIGKILL (9)); next try in "), std::string::npos) << message;
  const auto& wait = job_then["why"][0];
  EXPECT_EQ(wait["who"], rollout);
  EXPECT_EQ(wait["waits_for"], "CrashLoop");
  EXPECT_GT(wait["deadline_s"], 0.0);
  EXPECT_EQ(rollout + " " + wait["detail"].get<std::string>(), message);

  const auto actor = [&] { return api::actor_json(world.record(rollout), nullptr, 2, world.now); };
  EXPECT_EQ(actor()["why"][0]["waits_for"], "CrashLoop");
  start_again(rollout);
  EXPECT_NE(actor()["message"].get<std::string>().find("; restarted 3 times in "),
            std::string::npos);
  EXPECT_EQ(told()["reason"], "CrashLoop") << "it works again, for how long?";
  world.now = world.now + 2min;
  EXPECT_EQ(told()["reason"], "Working");
  EXPECT_EQ(told()["message"], "waits for the learner to start");
  EXPECT_EQ(actor()["message"], "all is well");
  EXPECT_TRUE(actor()["why"].empty());
}

}  // namespace
}  // namespace tandem::controller
