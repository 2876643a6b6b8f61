// The controller and GPUs: who gets which, when one is given again, and what a want of their memory
// does.
//
// Tests actors/controller/controller_core.h.
#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

TEST(ControllerCore, AGpuIsLeasedAgainWhenItsProcessIsGone) {
  World world;
  world.node("a", 16, 2);
  JobShape shape = gpu_shape_of(1);
  shape.per_rank[messages::Role::kLearner] = scheduler::resources({.cpus = 0.5, .gpus = 0.5});
  const std::string first = world.submit(shape);
  const Incarnation life = world.record(first + "/learner/0").incarnation;
  EXPECT_EQ(world.gpus[first + "/rollout/0"], std::vector<std::string>{"a-0"});
  EXPECT_EQ(world.gpus[first + "/learner/0"], std::vector<std::string>{"a-1"});
  EXPECT_TRUE(world.gpus[first + "/reward/0"].empty());
  shape.per_rank[messages::Role::kRollout] = scheduler::resources({.cpus = 0.5, .gpus = 0.5});
  const std::string second = world.submit(shape);  // its two halves do not fit beside the learner
  EXPECT_EQ(world.state(second), JobState::kQueued);
  EXPECT_STREQ(world.reason(second + "/rollout/0"), "WaitingForCapacity");

  world.must(messages::JobEnded{first, messages::JobOutcome::kSucceeded, ""});
  EXPECT_EQ(world.state(second), JobState::kQueued) << "told to end is not gone";
  world.die({first + "/learner/0", life, 0});
  EXPECT_EQ(world.state(second), JobState::kStarting);
  EXPECT_EQ(world.gpus[second + "/rollout/0"], std::vector<std::string>{"a-1"});
  EXPECT_EQ(world.gpus[second + "/learner/0"], std::vector<std::string>{"a-1"}) << "packed";
}

TEST(ControllerCore, AJobOfOneGpuIsNotScaledOverItsEdge) {
  World world;
  world.node("a", 16, 2);
  JobShape shape = shape_of(0.5);
  shape.one_gpu = "weight_broadcast.type: cuda_ipc";
  shape.per_rank[messages::Role::kRollout] = scheduler::resources({.cpus = 0.5, .gpus = 0.25});
  shape.per_rank[messages::Role::kLearner] = scheduler::resources({.cpus = 0.5, .gpus = 0.5});
  const std::string job = world.submit(shape);
  EXPECT_EQ(world.gpus[job + "/rollout/0"], world.gpus[job + "/learner/0"]);
  world.must(ScaleRole{job, messages::Role::kRollout, 2});
  EXPECT_EQ(world.gpus[job + "/rollout/1"], world.gpus[job + "/learner/0"]);
  const auto third = world.take(ScaleRole{job, messages::Role::kRollout, 3});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(third.error().message.find("1.250 GPUs"), std::string::npos) << third.error().message;
}

TEST(ControllerCore, AJobForGpusOnAMachineWithoutIsRefused) {
  World world;
  node::NodeUp up{"a", Incarnation{1}, 8, std::int64_t{1} << 40, 1};
  up.gpus_absent = "no GPU: no NVIDIA driver";
  world.must(up);
  JobShape shape = shape_of(0.5);
  shape.per_rank[messages::Role::kLearner] = scheduler::resources({.cpus = 0.5, .gpus = 1});
  const auto verdict = world.core.can_ever_run(shape);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(verdict.error().message.find("a has: no GPU: no NVIDIA driver"), std::string::npos);
  EXPECT_EQ(verdict.error().help, "with pools.learner.gpus_per_actor=0.0 it would fit");
}

// An agent dies, and the next one finds a GPU less: others keep their indices, and so does the one
// that is gone, until the ranks have ended that hold them.
TEST(ControllerCore, AGpuThatIsGoneIsGivenToNobodyAndTheOthersStayWithTheirRanks) {
  World world;
  world.node("a", 16, 3);
  JobShape shape = gpu_shape_of(1, 3);
  const std::string job = world.submit(shape);
  world.all_ready(job);
  const auto rollout = [&](std::int32_t gpu) {
    for (int i = 0; i < 3; ++i)
      if (const ActorRecord& actor = world.record(job + "/rollout/" + std::to_string(i));
          actor.ranks.front().gpus.front() == gpu)
        return actor.name;
    return std::string();
  };
  const std::string on_0 = rollout(0), on_1 = rollout(1), on_2 = rollout(2);
  world.must(NodeDown{"a", world.core.nodes().at("a").incarnation});
  node::NodeUp up{"a", Incarnation{++world.node_lives}, 16, std::int64_t{1} << 40, 2};
  up.gpus = {{.name = "GPU", .uuid = "a-0"}, {.name = "GPU", .uuid = "a-2"}};
  for (const auto& [id, node] : world.alive) up.ranks.push_back({id, 4711});
  world.must(up);
  const auto gpus = [&]() -> const std::vector<GpuRecord>& {
    return world.core.nodes().at("a").gpus;
  };
  ASSERT_EQ(gpus().size(), 3u);
  EXPECT_TRUE(gpus()[1].gone);
  EXPECT_EQ(gpus()[2].device.uuid, "a-2");
  world.die(on_1);
  world.now = world.now + std::chrono::seconds(10);
  world.must(Tick{});
  EXPECT_STREQ(world.reason(on_1), "WaitingForCapacity");
  world.die(on_2);
  world.now = world.now + std::chrono::seconds(10);
  world.must(Tick{});
  EXPECT_NE(alive(world.record(on_1)), alive(world.record(on_2))) << "one of them has a-2";
  EXPECT_EQ(world.gpus[alive(world.record(on_1)) ? on_1 : on_2], std::vector<std::string>{"a-2"});
  EXPECT_EQ(world.gpus[on_0], std::vector<std::string>{"a-0"});
}

const node::NodeNccl kOlder{.version = 22809, .path = "libnccl.so.2"};
const node::NodeNccl kNewer{.version = 23003, .path = "libnccl.so.2"};

// A learner of `ranks` ranks and a rollout, each rank with a GPU, that meet by NCCL.
JobShape nccl_shape(std::int32_t ranks) {
  JobShape shape = shape_of(0.5);
  shape.learner_ranks = ranks;
  for (const messages::Role& role : {messages::Role::kRollout, messages::Role::kLearner})
    shape.per_rank[role] = scheduler::resources({.cpus = 0.5, .gpus = 1});
  shape.nccl_roles = {messages::Role::kRollout, messages::Role::kLearner};
  return shape;
}

TEST(ControllerCore, TheRanksOfALearnerOnGpusHaveOneEach) {
  World world;
  world.node("a", 16, 2, kOlder);
  world.node("b", 16, 1, kOlder);
  const std::string job = world.submit(nccl_shape(2));
  const ActorRecord& learner = world.record(job + "/learner/0");
  ASSERT_EQ(learner.ranks.size(), 2u);
  EXPECT_EQ(learner.ranks[0].node, "a");
  EXPECT_EQ(learner.ranks[1].node, "a");
  EXPECT_NE(learner.ranks[0].gpus, learner.ranks[1].gpus);
  EXPECT_EQ(learner.ranks[0].gpus.size(), 1u);
  EXPECT_EQ(world.record(job + "/rollout/0").ranks[0].node, "b");
}

// NCCL would carry the gradients of the two ranks from host to host, and it encrypts nothing.
TEST(ControllerCore, ALearnerOnTheGpusOfSeveralHostsNeedsANetworkThatIsTrusted) {
  for (const bool trusted : {false, true}) {
    World world(1, {}, {.plaintext_gang = trusted});
    for (const char* name : {"a", "b", "c"}) world.node(name, 16, 1, kOlder);
    const std::string job = world.submit(nccl_shape(2)), learner = job + "/learner/0";
    ASSERT_NE(world.record(learner).ranks[0].node, world.record(learner).ranks[1].node);
    for (const auto& [id, node] : std::map(world.alive))
      if (id.actor == learner) world.must(RankConnected{id});
    const auto told = std::ranges::find_if(world.announced, [&](const Announce& event) {
      return event.subject == learner && event.message.find("unencrypted") != std::string::npos;
    });
    ASSERT_NE(told, world.announced.end());
    if (trusted) {
      EXPECT_EQ(told->level, messages::EventLevel::kWarning);
      ASSERT_EQ(world.started.size(), 1u) << "rank 0, which is to tell where it listens";
      EXPECT_TRUE(world.started.front().gang_plain);
      continue;
    }
    EXPECT_EQ(told->level, messages::EventLevel::kError);
    EXPECT_NE(told->message.find("--allow-plaintext-gang"), std::string::npos) << told->message;
    EXPECT_TRUE(world.started.empty());
    ASSERT_FALSE(world.told[job].empty());
    const auto* const end = std::get_if<messages::EndJob>(&world.told[job].back().message);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->outcome, messages::JobOutcome::kFailed);
  }
}

// Without GPUs the ranks encrypt by themselves.
TEST(ControllerCore, ALearnerOnTheCpusOfSeveralHostsStartsEncrypted) {
  World world;
  for (const char* name : {"a", "b", "c"}) world.node(name, 1);
  JobShape shape = shape_of(0.5);
  shape.learner_ranks = 2;
  shape.per_rank[messages::Role::kLearner] = scheduler::resources({.cpus = 0.9});
  const std::string job = world.submit(shape), learner = job + "/learner/0";
  ASSERT_NE(world.record(learner).ranks[0].node, world.record(learner).ranks[1].node);
  for (const auto& [id, node] : std::map(world.alive))
    if (id.actor == learner) world.must(RankConnected{id});
  ASSERT_EQ(world.started.size(), 1u);
  EXPECT_FALSE(world.started.front().gang_plain);
}

TEST(ControllerCore, AJobThatNeedsNcclIsRefusedWhereVersionsDiffer) {
  World world;
  world.node("a", 16, 2, kOlder);
  world.node("b", 16, 2, kNewer);
  const auto verdict = world.core.can_ever_run(nccl_shape(1));
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(verdict.error().message.find("a has NCCL 2.28.9; b has NCCL 2.30.3"), std::string::npos)
      << verdict.error().message;
}

// A node of another version that comes later has room, and takes none of the job's ranks.
TEST(ControllerCore, PL4ARankWaitsRatherThanMeetAnotherVersionOfNccl) {
  World world;
  world.node("a", 16, 2, kOlder);
  const std::string job = world.submit(nccl_shape(1));
  world.all_ready(job);
  world.node("b", 16, 2, kNewer);
  const std::string rollout = job + "/rollout/0";
  const auto scaled = world.take(ScaleRole{job, messages::Role::kRollout, 2});
  ASSERT_FALSE(scaled) << "versions differ";
  world.die(rollout);
  world.now = *world.record(rollout).restart_at;
  world.must(Tick{});
  ASSERT_EQ(world.state_of(rollout), ActorState::kStarting);
  EXPECT_EQ(world.record(rollout).ranks[0].node, "a");
  EXPECT_EQ(world.core.jobs().at(job).nccl_version, "2.28.9");
}

// The living ranks' node, which has their version, comes back later than a node of another one.
TEST(ControllerCore, PL4ARankWaitsForTheNodeWhoseVersionTheOthersHave) {
  World before;
  before.node("a", 16, 3, kOlder);
  JobShape shape = nccl_shape(1);
  shape.replicas[messages::Role::kRollout] = 2;
  const std::string job = before.submit(shape), rollout = job + "/rollout/1";
  before.all_ready(job);
  before.die(rollout);
  World after(2, before);
  shape.resume_dir = "runs/" + job;
  after.must(TakeUpJobs{{{{shape, job, "runs/" + job, 1}, {}, /*follows=*/true}}, {}});
  after.node("b", 16, 3, kNewer);
  EXPECT_EQ(after.state_of(rollout), ActorState::kQueued);
  EXPECT_STREQ(after.reason(rollout), "InfeasibleShape");
  node::NodeUp back{"a", after.nodes.at("a").incarnation, 16, std::int64_t{1} << 40, 1};
  for (int i = 0; i < 3; ++i)
    back.gpus.push_back({.name = "GPU", .uuid = "a-" + std::to_string(i)});
  back.nccl = kOlder;
  for (const auto& [id, on] : after.alive) back.ranks.push_back({id, 4711});
  after.must(back);
  EXPECT_EQ(after.state_of(rollout), ActorState::kStarting);
  EXPECT_EQ(after.record(rollout).ranks[0].node, "a");
}

// A start of `actor` that finds no memory, and the end of its process if it is told to end.
void find_no_memory(World& world, const std::string& actor) {
  const Incarnation life = world.record(actor).incarnation;
  world.must(RankConnected{{actor, life, 0}});
  world.must(
      messages::RankFailed{actor, life, 0, "80 GiB asked, 1 GiB free", ErrorCode::kOutOfMemory});
  if (world.told_to_end.contains({actor, life, 0})) world.die({actor, life, 0});
}

TEST(ControllerCore, AWantOfMemoryIsTriedAgainByWhoHasWorkedBefore) {  // RB-4
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const std::string learner = job + "/learner/0";
  world.ready(learner);
  world.die(learner);
  for (int i = 0; i < 2; ++i) {  // the memory that the last incarnation held is not free yet
    world.now = *world.record(learner).restart_at;
    world.must(Tick{});
    ASSERT_EQ(world.state_of(learner), ActorState::kStarting);
    find_no_memory(world, learner);
    ASSERT_EQ(world.state_of(learner), ActorState::kBackoff);
    EXPECT_GT(*world.record(learner).restart_at, world.now);
    EXPECT_EQ(count_told<messages::EndJob>(world, job), 0u);
  }
  world.now = *world.record(learner).restart_at;
  world.must(Tick{});
  world.ready(learner);
  EXPECT_EQ(world.state_of(learner), ActorState::kReady);
  EXPECT_TRUE(world.started.back().resume);
}

TEST(ControllerCore, AWantOfMemoryThatLastsEndsTheJobWithWhatWasAsked) {  // RB-4
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const std::string rollout = job + "/rollout/0";
  world.ready(rollout);
  world.die(rollout);
  for (int deaths = 1; world.state_of(rollout) == ActorState::kBackoff; ++deaths) {
    ASSERT_LT(deaths, 100);
    world.now = *world.record(rollout).restart_at;
    world.must(Tick{});
    find_no_memory(world, rollout);
  }
  ASSERT_EQ(count_told<messages::EndJob>(world, job), 1u);
  const auto& end = std::get<messages::EndJob>(world.told[job].back().message);
  EXPECT_NE(end.reason.find("80 GiB asked, 1 GiB free"), std::string::npos) << end.reason;
}

TEST(ControllerCore, AWantOfMemoryAtTheFirstStartEndsTheJobAtOnce) {  // RB-4
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  find_no_memory(world, job + "/rollout/0");
  ASSERT_EQ(count_told<messages::EndJob>(world, job), 1u);
  const auto& end = std::get<messages::EndJob>(world.told[job].back().message);
  EXPECT_NE(end.reason.find("80 GiB asked, 1 GiB free"), std::string::npos) << end.reason;
}

}  // namespace
}  // namespace tandem::controller
