// Tests the controller's decisions from a job's submission to its end. controller_gpus_test.cc
// tests those about GPUs and their memory.
#include <chrono>

#include "actors/controller/result_json.h"
#include "tests/actors/controller/controller_world.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

TEST(ControllerCore, JobStartsRunsAndLeavesNothing) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  EXPECT_EQ(world.state(job), JobState::kStarting);
  EXPECT_EQ(world.alive.size(), 3u);
  world.all_ready(job);
  EXPECT_EQ(world.started.size(), 3u);
  EXPECT_EQ(world.state_of(job + "/learner/0"), ActorState::kReady);
  world.must(messages::JobProgress{job, messages::JobPhase::kRunning, "training"});
  EXPECT_EQ(world.state(job), JobState::kRunning);
  world.must(messages::JobEnded{job, messages::JobOutcome::kSucceeded, "all steps are trained"});
  EXPECT_EQ(world.state(job), JobState::kStopping);
  world.obey();
  EXPECT_EQ(world.state(job), JobState::kSucceeded);
  EXPECT_TRUE(world.core.idle());
}

TEST(ControllerCore, RanksOfAGangStartWhenTheFirstListens) {
  World world;
  world.node("a", 8);
  const std::string job = world.submit(shape_of(1, 1, 3));
  const std::string learner = job + "/learner/0";
  const Incarnation life = world.record(learner).incarnation;
  for (const std::int32_t rank : {2, 1, 0}) world.must(RankConnected{{learner, life, rank}});
  ASSERT_EQ(world.started.size(), 1u);
  EXPECT_EQ(world.started[0].rank, 0);
  world.must(messages::RankListening{learner, life, "tcp://a:9"});
  ASSERT_EQ(world.started.size(), 3u);
  EXPECT_EQ(world.started[2].gang_endpoint, "tcp://a:9");
  world.must(messages::RankReady{learner, life, 1});
  EXPECT_STREQ(world.reason(learner), "WaitingForGang");
  world.must(messages::RankReady{learner, life, 7});  // it has no such rank
  world.die({learner, life, 1});                      // all for one
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 1u);
  EXPECT_EQ(world.told_to_end.size(), 2u);
  world.obey();
  EXPECT_EQ(world.state_of(learner), ActorState::kBackoff);
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 1u);
}

TEST(ControllerCore, JobsQueueInOrderByCapacity) {
  World world;
  world.node("a", 4);
  const std::string first = world.submit(shape_of(1));
  const std::string second = world.submit(shape_of(1));
  const std::string third = world.submit(shape_of(0.1));
  EXPECT_EQ(world.state(second), JobState::kQueued);
  EXPECT_STREQ(world.reason(second + "/learner/0"), "WaitingForCapacity");
  EXPECT_EQ(world.state(third), JobState::kQueued) << "nothing overtakes the queue";
  EXPECT_STREQ(world.reason(third + "/learner/0"), "WaitingForJobs");
  world.must(messages::JobEnded{first, messages::JobOutcome::kSucceeded, ""});
  world.obey();
  EXPECT_EQ(world.state(second), JobState::kStarting);
  EXPECT_EQ(world.state(third), JobState::kStarting);
  EXPECT_EQ(world.core.nodes().at("a").leased, scheduler::resources({.cpus = 3.3}));
}

TEST(ControllerCore, QueuedJobDoesNotTakeThePlaceOfAnActorThatBacksOff) {
  World world;
  world.node("a", 5);
  const std::string first = world.submit(shape_of(1));
  const std::string second = world.submit(shape_of(1));
  world.all_ready(first);
  world.die(first + "/learner/0");  // now three CPUs are free
  EXPECT_EQ(world.state_of(first + "/learner/0"), ActorState::kBackoff);
  EXPECT_EQ(world.state(second), JobState::kQueued);
  world.now = *world.wakes.begin();
  world.must(Tick{});
  EXPECT_EQ(world.state_of(first + "/learner/0"), ActorState::kStarting);
}

TEST(ControllerCore, ShapeThatNeverFitsIsRefusedWithTheNearestFit) {
  World world;
  world.node("a", 4);
  const auto refused = world.take(SubmitJob{shape_of(1, 5), "big-1", "runs/big-1"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(refused.error().help.find("rollout.replicas=2"), std::string::npos)
      << refused.error().help;
  EXPECT_TRUE(world.core.jobs().empty());
  const std::string job = world.submit(shape_of(1));
  EXPECT_FALSE(world.take(ScaleRole{job, messages::Role::kRollout, 9}).has_value());
  EXPECT_FALSE(world.take(ScaleRole{job, messages::Role::kLearner, 2}).has_value());
  EXPECT_FALSE(world.take(ScaleRole{job, messages::Role::kReward, 0}).has_value());
  EXPECT_FALSE(world.take(ScaleRole{"nobody", messages::Role::kReward, 1}).has_value());
  EXPECT_FALSE(world.take(CancelJob{"nobody"}).has_value());
  EXPECT_FALSE(world.take(SubmitJob{shape_of(1), job, "runs/x"}).has_value()) << "it runs already";
}

TEST(ControllerCore, ScaleIsBoundedAndThousandsArePlacedAtOnce) {
  World world;
  world.node("a", 5000);
  const std::string job = world.submit(shape_of(1));
  for (const std::int32_t count : {-1, 0, scheduler::kReplicasMax + 1, 100'000, 2'000'000'000}) {
    const auto refused = world.take(ScaleRole{job, messages::Role::kRollout, count});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message,
              "cannot scale rollout to " + std::to_string(count) + ": a role has 1 to 4096 actors");
  }
  EXPECT_EQ(world.alive.size(), 3u);
  world.must(ScaleRole{job, messages::Role::kRollout, scheduler::kReplicasMax});
  EXPECT_EQ(world.alive.size(), 4098u);
}

TEST(ControllerCore, ThousandsThatNeverFitAreRefusedWithTheNearestFit) {
  World world;
  world.node("a", 100);
  world.node("b", 100.5);
  const std::string job = world.submit(shape_of(1));
  const auto refused =
      world.take(ScaleRole{job, messages::Role::kRollout, scheduler::kReplicasMax});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(refused.error().help, "with rollout.replicas=198 it would fit");
}

// Hundreds wait for what another job holds; each that ends makes room for one of them.
TEST(ControllerCore, WhoWaitsStartsWhenThereIsRoom) {
  World world;
  world.node("a", 200);
  const std::string first = world.submit(shape_of(1, 100));
  const std::string second = world.submit(shape_of(1));
  world.must(ScaleRole{second, messages::Role::kRollout, 198});
  EXPECT_EQ(world.alive.size(), 200u);
  EXPECT_EQ(world.core.jobs().at(second).waiting.size(), 102u);
  for (const std::string& waiting : world.core.jobs().at(second).waiting)
    ASSERT_STREQ(world.reason(waiting), "WaitingForCapacity");
  world.must(ScaleRole{first, messages::Role::kRollout, 40});
  world.obey();
  EXPECT_EQ(world.alive.size(), 200u);
  EXPECT_EQ(world.core.jobs().at(second).waiting.size(), 42u);
}

TEST(ControllerCore, RestartsBackOffAndTheRootCauseEndsTheJob) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const std::string rollout = job + "/rollout/0";
  Duration before{0};
  for (int deaths = 1;; ++deaths) {
    ASSERT_LT(deaths, 100);
    world.ready(rollout);
    world.die(rollout);
    if (world.state_of(rollout) == ActorState::kFailed) break;
    ASSERT_EQ(world.state_of(rollout), ActorState::kBackoff);
    const Duration wait = *world.record(rollout).restart_at - world.now;
    if (deaths <= 5) {
      EXPECT_GT(wait, before);
    }
    before = wait;
    world.now = *world.record(rollout).restart_at;
    world.must(Tick{});
    EXPECT_EQ(world.state_of(rollout), ActorState::kStarting);
  }
  ASSERT_EQ(count_told<messages::EndJob>(world, job), 1u);
  const auto& end = std::get<messages::EndJob>(world.told[job].back().message);
  EXPECT_EQ(end.outcome, messages::JobOutcome::kFailed);
  EXPECT_NE(end.reason.find("SIGKILL"), std::string::npos) << end.reason;
  world.must(messages::JobEnded{job, messages::JobOutcome::kFailed, end.reason});
  world.obey();
  EXPECT_EQ(world.state(job), JobState::kFailed);
  EXPECT_STREQ(scheduler::reason_name(world.core.jobs().at(job).status.reason), "JobFailed");
}

TEST(ControllerCore, PermanentFailureIsNotRestarted) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const std::string learner = job + "/learner/0";
  const Incarnation life = world.record(learner).incarnation;
  world.must(RankConnected{{learner, life, 0}});
  world.must(
      messages::RankFailed{learner, life, 0, "the model file is damaged", ErrorCode::kInvalid});
  world.die(learner);
  EXPECT_EQ(world.state_of(learner), ActorState::kFailed);
  ASSERT_EQ(count_told<messages::EndJob>(world, job), 1u);
  world.must(messages::JobEnded{job, messages::JobOutcome::kFailed, "the model file is damaged"});
  world.obey();
  EXPECT_EQ(world.state(job), JobState::kFailed);
}

TEST(ControllerCore, AJobThatFailsWhileItIsCancelledTellsTheFailure) {
  for (const messages::JobOutcome outcome :
       {messages::JobOutcome::kFailed, messages::JobOutcome::kCancelled}) {
    World world;
    world.node("a", 4);
    const std::string job = world.submit(shape_of(1));
    world.all_ready(job);
    world.must(messages::JobProgress{job, messages::JobPhase::kRunning, "training"});
    world.must(CancelJob{job});
    world.must(
        messages::JobProgress{job, messages::JobPhase::kStopping, "saving a checkpoint of step 3"});
    EXPECT_EQ(world.state(job), JobState::kStopping);
    world.must(messages::JobEnded{job, outcome, "was being cancelled when: the disk is full"});
    world.obey();
    const scheduler::JobStatus& status = world.core.jobs().at(job).status;
    EXPECT_EQ(status.state,
              outcome == messages::JobOutcome::kFailed ? JobState::kFailed : JobState::kCancelled);
    EXPECT_EQ(scheduler::message(status.reason, world.now),
              "was being cancelled when: the disk is full");
  }
}

TEST(ControllerCore, AJobThatNeverHadAnExchangeLeavesAResultToo) {
  World world;
  const std::string queued = world.submit(shape_of(1));
  world.must(CancelJob{queued});
  EXPECT_TRUE(world.results.contains(queued));
  world.node("a", 4);
  const std::string failed = world.submit(shape_of(1));
  world.must(messages::JobEnded{failed, messages::JobOutcome::kFailed, "no port is free",
                                /*has_result=*/false});
  world.obey();
  EXPECT_TRUE(world.results.contains(failed));
  EXPECT_EQ(world.state(failed), JobState::kFailed);
}

TEST(ControllerCore, AJobThatEndsBeforeItsRunIsResumedTellsItsOutcome) {
  World world;
  JobShape shape = shape_of(1);
  shape.resume_dir = "runs/job-1";
  const std::string queued = world.submit(shape);
  world.must(CancelJob{queued});
  EXPECT_TRUE(world.results.contains(queued));
  EXPECT_TRUE(ended_unresumed(world.core.jobs().at(queued)));
  EXPECT_STREQ(outcome_file(world.core.jobs().at(queued)), "resume.json");
  world.node("a", 4);
  const std::string failed = world.submit(shape);
  EXPECT_FALSE(ended_unresumed(world.core.jobs().at(failed))) << "it starts";
  world.must(messages::JobEnded{failed, messages::JobOutcome::kFailed, "no port is free",
                                /*has_result=*/false});
  world.obey();
  EXPECT_TRUE(world.results.contains(failed));
  EXPECT_TRUE(ended_unresumed(world.core.jobs().at(failed)));
  const std::string fresh = world.submit(shape_of(1));
  world.must(messages::JobEnded{fresh, messages::JobOutcome::kFailed, "no port is free",
                                /*has_result=*/false});
  EXPECT_STREQ(outcome_file(world.core.jobs().at(fresh)), "result.json");
}

TEST(ControllerCore, OnlyAJobThatHasEndedIsForgotten) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const auto refused = world.take(ForgetJob{job});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  const node::RankId rank = world.alive.begin()->first;
  world.must(messages::JobEnded{job, messages::JobOutcome::kSucceeded, "done"});
  world.obey();
  world.must(ForgetJob{job});
  EXPECT_TRUE(world.core.jobs().empty());
  world.must(node::RankExited{.id = rank, .signal = 9});  // said twice, and of no job now
  world.must(ForgetJob{job});
}

TEST(ControllerCore, NewsOfADeadLifeDoesNotHoldUpTheNext) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const std::string rollout = job + "/rollout/0";
  const node::RankId dead{rollout, world.record(rollout).incarnation, 0};
  world.ready(rollout);
  world.die(rollout);
  world.must(RankHung{dead, 0});  // its link goes down after its process
  world.must(RankConnected{dead});
  world.now = *world.record(rollout).restart_at;
  world.must(Tick{});
  world.must(RankHung{dead, 0});
  world.must(node::RankExited{.id = dead, .code = 0});
  world.must(messages::RankReady{rollout, dead.incarnation, 0});
  EXPECT_EQ(world.state_of(rollout), ActorState::kStarting);
  const node::RankId living{rollout, world.record(rollout).incarnation, 0};
  EXPECT_TRUE(
      world.core
          .note_usage(
              {{{living, 50, 2, 1999}, {dead, 100, 1, 9000}, {{"nobody", {1}, 0}, 1, 1, 9000}}})
          .empty());
  EXPECT_EQ(world.record(rollout).ranks[0].usage->memory_bytes, 2);
  world.ready(rollout);
  EXPECT_EQ(world.state_of(rollout), ActorState::kReady);
}

TEST(ControllerCore, ActorThatDrainsAndIsWantedAgainComesBack) {
  World world;
  world.node("a", 6);
  const std::string job = world.submit(shape_of(1, 3));
  world.all_ready(job);
  const std::string last = job + "/rollout/2";
  for (const bool dies_first : {false, true}) {
    SCOPED_TRACE(dies_first);
    world.must(ScaleRole{job, messages::Role::kRollout, 1});
    EXPECT_EQ(world.state_of(last), ActorState::kDraining);
    world.must(ScaleRole{job, messages::Role::kRollout, 3});
    const Incarnation life = world.record(last).incarnation;
    if (dies_first) {
      world.die(last);
    } else {
      world.must(messages::ActorDrained{job, {last, life}});
      world.obey();
    }
    EXPECT_EQ(world.state_of(last), ActorState::kStarting);
    EXPECT_GT(world.record(last).incarnation, life);
    const std::string middle = job + "/rollout/1";
    world.must(messages::ActorDrained{job, {middle, world.record(middle).incarnation}});
    world.obey();
    world.all_ready(job);
    EXPECT_EQ(world.alive.size(), 5u);
  }
}

TEST(ControllerCore, ScalesDownWhatHasNotStarted) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  world.must(ScaleRole{job, messages::Role::kRollout, 2});
  EXPECT_EQ(world.state_of(job + "/rollout/1"), ActorState::kStarting);
  world.must(ScaleRole{job, messages::Role::kRollout, 1});
  EXPECT_EQ(world.state_of(job + "/rollout/1"), ActorState::kStopping);
  world.obey();
  EXPECT_FALSE(world.core.jobs().at(job).actors.contains(job + "/rollout/1"));
}

// The next controller would not know of what starts meanwhile.
TEST(ControllerCore, NothingStartsWhileTheJournalCannotBeWritten_CC1) {
  World world;
  world.node("a", 8);
  const std::string running = world.submit(shape_of(1)), rollout = running + "/rollout/0";
  world.all_ready(running);
  world.die(rollout);
  world.must(JournalNews{.fails = true});
  EXPECT_STREQ(world.reason(rollout), "Backoff");
  const Time restart = *world.record(rollout).restart_at;
  EXPECT_EQ(world.wakes.count(restart), 1u);
  world.now = restart;
  world.must(Tick{});
  EXPECT_STREQ(world.reason(rollout), "WaitingForJournal");
  const std::string queued = world.submit(shape_of(1));
  EXPECT_STREQ(world.reason(queued + "/learner/0"), "WaitingForJournal");
  EXPECT_EQ(world.alive.size(), 2u);
  world.must(JournalNews{.fails = false});
  EXPECT_EQ(world.alive.size(), 6u);
}

TEST(ControllerCore, LostNodeIsReplacedByTheOther) {
  World world;
  world.node("a", 3);
  world.node("b", 3);
  const std::string job = world.submit(shape_of(1));
  world.all_ready(job);
  const std::string node = world.alive.begin()->second;
  world.must(NodeDown{node, Incarnation{99}});  // another incarnation of the node
  EXPECT_EQ(world.state_of(job + "/learner/0"), ActorState::kReady);
  world.node_lost(node);
  EXPECT_EQ(world.state_of(job + "/learner/0"), ActorState::kBackoff);
  world.now = world.now + 10s;
  world.must(Tick{});
  EXPECT_EQ(world.alive.begin()->second, node == "a" ? "b" : "a");
}

TEST(ControllerCore, ASecondAgentOfANodeThatIsUpIsRefused) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  world.all_ready(job);
  const Incarnation first = world.nodes.at("a").incarnation;
  world.node("a", 8);
  ASSERT_EQ(world.nodes_refused.size(), 1u);
  EXPECT_NE(world.nodes_refused[0].incarnation, first);
  EXPECT_EQ(world.nodes_refused[0].pid_up, 1);
  EXPECT_EQ(world.core.nodes().at("a").incarnation, first);
  EXPECT_EQ(world.state_of(job + "/learner/0"), ActorState::kReady) << "nothing of it is touched";
  world.must(NodeDown{"a", world.nodes_refused[0].incarnation});  // the refused one ends
  EXPECT_TRUE(world.core.nodes().at("a").up);
  EXPECT_EQ(world.state_of(job + "/learner/0"), ActorState::kReady);
}

TEST(ControllerCore, AJobWhoseNodeIsLostSaysSoUntilTheNodeIsBack) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  world.all_ready(job);
  world.must(messages::JobProgress{job, messages::JobPhase::kRunning, "training"});
  const auto reason = [&] {
    return std::string(scheduler::reason_name(world.core.jobs().at(job).status.reason));
  };
  EXPECT_EQ(reason(), "Working");
  world.now = world.now + 1s;
  world.node_lost("a");
  EXPECT_EQ(world.core.nodes().at("a").since, world.now);
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 3u);
  world.now = world.now + 10s;
  world.must(Tick{});
  EXPECT_STREQ(world.reason(job + "/learner/0"), "NodeLost");
  EXPECT_EQ(world.state(job), JobState::kRunning);
  EXPECT_EQ(reason(), "NodeLost");
  world.node("a", 4);
  world.all_ready(job);
  EXPECT_EQ(reason(), "Working");
}

class Storm {
 public:
  explicit Storm(std::uint64_t seed) : world(seed), rng_(derive_seed(seed, "storm")) {
    world.node("a", 4);
    world.node("b", 3);
  }

  void blow() {
    world.now = world.now + Duration(rng_.below(2'000'000'000));
    switch (rng_.below(15)) {
      case 0:
        if (world.core.jobs().size() < 12)
          (void)world.take(
              SubmitJob{any_shape(), "job-" + std::to_string(++world.submitted), "runs/x"});
        break;
      case 1:
        (void)world.take(
            ScaleRole{any_job(), any_role(), static_cast<std::int32_t>(rng_.below(5))});
        break;
      case 2:
        if (rng_.below(4) == 0) (void)world.take(CancelJob{any_job()});
        break;
      case 3:
        if (const auto rank = any_rank()) rng_.below(4) ? dies(*rank) : spawn_fails(*rank);
        break;
      case 4:
        if (const auto rank = any_rank()) world.must(RankHung{*rank, 60});
        break;
      case 5:
        if (const auto rank = any_rank(); rank && rng_.below(20) == 0)
          world.must(
              messages::RankFailed{rank->actor, rank->incarnation, rank->rank, "damaged",
                                   rng_.below(2) ? ErrorCode::kInvalid : ErrorCode::kTimedOut});
        break;
      case 6:
        node_goes_or_comes();
        break;
      case 7:
        world.must(messages::JobProgress{
            any_job(),
            rng_.below(2) ? messages::JobPhase::kRunning : messages::JobPhase::kWarmStart, "on"});
        break;
      case 8:
        if (rng_.below(4) == 0 && world.exchanges.contains(any_job_))
          world.must(messages::JobEnded{any_job_, messages::JobOutcome::kSucceeded, "done"});
        break;
      case 9:
        answer_exchange_messages();
        break;
      case 10:
        if (!world.told_to_end.empty()) world.obey();
        break;
      case 11:
        cordons();
        break;
      default:
        if (const auto rank = any_rank()) world.connect_and_ready(*rank);
        break;
    }
    world.must(Tick{});
  }

  void calm() {
    for (const auto& [id, job] : std::map(world.core.jobs())) (void)world.take(CancelJob{id});
    for (int i = 0; i < 5; ++i) {
      answer_exchange_messages();
      world.obey();
      world.now = world.now + 4s;  // who may not have heard its end is given up
      world.must(Tick{});
    }
  }

  World world;

 private:
  std::string any_job() {
    const auto& jobs = world.core.jobs();
    if (jobs.empty()) return any_job_ = "none";
    return any_job_ =
               std::next(jobs.begin(), static_cast<std::ptrdiff_t>(rng_.below(jobs.size())))->first;
  }
  // A job that trains, with or without programs of the user's, or one of actors alone.
  JobShape any_shape() {
    const auto programs = static_cast<std::int32_t>(rng_.below(4));
    if (rng_.below(3) == 0) return actors_alone(programs);
    JobShape shape = shape_of(0.25 * static_cast<double>(1 + rng_.below(6)),
                              1 + static_cast<std::int32_t>(rng_.below(3)),
                              1 + static_cast<std::int32_t>(rng_.below(2)));
    if (rng_.below(2) == 0) add_program(shape, "counter", programs);
    return shape;
  }
  messages::Role any_role() {
    constexpr std::uint64_t kOurs = std::size(messages::kTrainingRoles);
    const std::uint64_t drawn = rng_.below(kOurs + 1);
    return drawn == kOurs ? messages::Role{"counter"} : messages::kTrainingRoles[drawn];
  }
  std::optional<node::RankId> any_rank() {
    if (world.alive.empty()) return std::nullopt;
    return std::next(world.alive.begin(),
                     static_cast<std::ptrdiff_t>(rng_.below(world.alive.size())))
        ->first;
  }
  void dies(const node::RankId& rank) {
    if (rng_.below(4) == 0) return world.end({.id = rank, .code = static_cast<int>(rng_.below(2))});
    world.end(
        {.id = rank,
         .signal = 9,
         .out_of_memory = rng_.below(4) ? node::MemoryKill::kNone : node::MemoryKill::kProven});
  }
  void spawn_fails(const node::RankId& rank) {
    world.alive.erase(rank);
    world.told_to_end.erase(rank);
    world.must(node::RankSpawnFailed{rank, "no room for a process", rng_.below(2) == 0});
  }
  void node_goes_or_comes() {
    const std::string name = rng_.below(2) ? "a" : "b";
    const auto& known = world.core.nodes().at(name);
    const bool has_ranks =
        std::ranges::any_of(world.alive, [&](const auto& rank) { return rank.second == name; });
    if (known.up && rng_.below(6) == 0)
      world.node_lost(name);
    else if (known.up && rng_.below(6) == 0)
      agent_dies(name);
    else if (!known.up && has_ranks)
      world.agent_back(name);
    else if (!known.up)
      world.node(name, name == "a" ? 4 : 3);
  }
  // Processes that have no link yet are refused one, and end.
  void agent_dies(const std::string& name) {
    std::erase_if(world.alive, [&](const auto& rank) {
      const auto& [id, node] = rank;
      return node == name && !world.record(id.actor).ranks.at(id.rank).connected;
    });
    world.must(NodeDown{name, world.core.nodes().at(name).incarnation});
    for (const node::RankId& id : std::exchange(world.links_cut, {})) {  // which ends them
      world.alive.erase(id);
      world.told_to_end.erase(id);
      world.must(RankHung{id, 0});
    }
  }
  void cordons() {
    const std::string name = rng_.below(2) ? "a" : "b";
    if (rng_.below(2))
      world.must(UncordonNode{name});
    else
      world.must(CordonNode{name, "for a while", rng_.below(2) == 0});
  }
  void answer_exchange_messages() {
    for (auto& [job, told] : std::exchange(world.told, {}))
      for (const TellExchange& tell : told) {
        if (const auto* drain = std::get_if<messages::DrainActor>(&tell.message))
          world.must(messages::ActorDrained{job, drain->who});
        if (const auto* end = std::get_if<messages::EndJob>(&tell.message))
          world.must(messages::JobEnded{job, end->outcome, end->reason});
      }
  }

  Rng rng_;
  std::string any_job_ = "none";
};

TEST(ControllerCore, StormsKeepTheInvariantsAndLeaveNothing) {
  for_seeds(300, [](std::uint64_t seed) {
    Storm storm(seed);
    for (int i = 0; i < 300; ++i) storm.blow();
    storm.calm();
    EXPECT_TRUE(storm.world.alive.empty()) << "CC-4";
    EXPECT_TRUE(storm.world.exchanges.empty());
    EXPECT_TRUE(storm.world.core.idle());
  });
}

}  // namespace
}  // namespace tandem::controller
