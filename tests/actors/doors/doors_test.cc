// DR-1 and DR-2: each kind of message is let in from the peer that may send it, and refused from
// every other peer.
#include "actors/doors/doors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "actors/doors/exchange_door.h"

namespace tandem::doors {
namespace {

using link::Hello;
using node::AgentEvents;
using node::NodeUp;
using node::RankExited;
using node::RankId;
using node::RankSpawned;
using node::RankSpawnFailed;
using node::UsageReport;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const ActorId kRolloutPeer{"j-1/rollout/0", {4}};
const ActorId kRewardPeer{"j-1/reward/0", {5}};
const ActorId kLearnerPeer{"j-1/learner/0", {6}};

messages::GroupHeader group(std::vector<messages::TrajectoryHeader> trajectories,
                            std::int32_t prompt_tokens = 1) {
  return {.group = GroupId{1}, .prompt_tokens = prompt_tokens, .trajectories = trajectories};
}

template <class Events>
void expect_all(const link::Door<Events>& door, const ActorId& from,
                const std::vector<Events>& messages, bool pass) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Result<void> result = door(from, messages[i]);
    EXPECT_EQ(result.has_value(), pass) << "message " << i << " of kind " << messages[i].index();
    if (!result) {
      EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
      EXPECT_FALSE(result.error().message.empty());
    }
  }
}

TEST(Doors, ARolloutSaysWhatRolloutsSay_DR2) {
  const ActorId& me = kRolloutPeer;
  const messages::TrajectoryHeader fine{PolicyVersion{0}, PolicyVersion{3}, 5};
  const auto door = exchange_door<messages::RolloutPeer>("j-1");
  expect_all<messages::RolloutEvents>(
      door, kRolloutPeer,
      {messages::RolloutUp{me, 1}, messages::Installed{me, kInitialWeights, 0.5},
       messages::Generated{me, {group({fine, fine})}}, messages::Unservable{me},
       messages::Evaluated{me, {}, {{0, 0, "t", false}}, {1}}, messages::RolloutStats{me},
       messages::RolloutBack{me, 1, kInitialWeights, 0, {{GroupId{1}, 2}}},
       messages::VersionDamaged{me, PolicyVersion{3}, "why"}, messages::EngineBroke{me, "NaN"}},
      true);
  const auto of = [&](messages::TrajectoryHeader wrong) {
    return messages::Generated{me, {group({fine}), group({fine, wrong})}};
  };
  const std::vector<messages::HeldGroup> too_many(messages::kHeldMax + 1);
  const PolicyVersion huge{std::numeric_limits<std::int64_t>::max()};
  messages::RolloutStats nan{me}, negative{me}, endless{me}, no_sum{me}, shrunk{me};
  nan.kv_cache_usage = kNan;
  negative.requests_running = -1;
  endless.busy_seconds = kInf;
  no_sum.step_seconds.x1y = kNan;
  shrunk.step_seconds.count = -1;
  messages::RolloutStats short_one{me}, long_one{me}, absurd{me}, backwards{me};
  short_one.latencies.queue.counts.pop_back();
  long_one.latencies.first_token.counts.push_back(0);
  absurd.latencies.token.counts[3] = std::numeric_limits<std::uint64_t>::max();
  backwards.latencies.request.sum = -1;
  expect_all<messages::RolloutEvents>(door, kRolloutPeer,
                                      {messages::RolloutBack{me, 0},
                                       messages::RolloutBack{me, 1, PolicyVersion{-2}},
                                       messages::RolloutBack{me, 1, {}, 0, too_many},
                                       messages::RolloutUp{me, 0},
                                       messages::RolloutUp{me, -5},
                                       messages::Installed{me, PolicyVersion{-2}},
                                       messages::Installed{me, huge},
                                       messages::Installed{me, PolicyVersion{1}, -1},
                                       messages::Installed{me, {}, kNan},
                                       messages::VersionDamaged{me, PolicyVersion{-2}},
                                       messages::VersionDamaged{me, huge},
                                       messages::Generated{me, {group({})}},
                                       messages::Generated{me, {group({fine}, -1)}},
                                       of({PolicyVersion{-2}, PolicyVersion{0}, 1}),
                                       of({PolicyVersion{2}, PolicyVersion{1}, 1}),
                                       of({PolicyVersion{0}, huge, 1}),
                                       of({PolicyVersion{0}, PolicyVersion{0}, -1}),
                                       messages::Evaluated{me, {}, {{-1, 0, "t", false}}, {}},
                                       messages::Evaluated{me, {}, {{1, -1, "t", false}}, {}},
                                       messages::Evaluated{me, {}, {}, {-1}},
                                       nan,
                                       negative,
                                       endless,
                                       no_sum,
                                       shrunk,
                                       short_one,
                                       long_one,
                                       absurd,
                                       backwards},
                                      false);
  EXPECT_EQ(door(kRolloutPeer, short_one).error().message,
            "RolloutStats: vllm:request_queue_time_seconds has 21 buckets, not 22");
}

TEST(Doors, ARewardSaysWhatRewardsSay_DR2) {
  const ActorId me = kRewardPeer;
  const auto door = exchange_door<messages::RewardPeer>("j-1");
  expect_all<messages::RewardEvents>(
      door, kRewardPeer,
      {messages::RewardUp{me, 1},
       messages::GroupsScored{me, {{GroupId{1}, 1, {messages::Scored{-2.5}}}}},
       messages::GroupsScored{me, {{GroupId{1}, 1, {messages::ScoreFailed{"why"}}}}},
       messages::TextsScored{me, {}, {{0, 0, messages::Scored{1}}}},
       messages::RewardBack{me, 1, {{GroupId{1}, 2}}}},
      true);
  expect_all<messages::RewardEvents>(
      door, kRewardPeer,
      {messages::RewardUp{me, 0}, messages::RewardBack{me, 0, {}},
       messages::RewardBack{me, 1, std::vector<messages::HeldGroup>(messages::kHeldMax + 1)},
       messages::GroupsScored{me, {{GroupId{1}, 1, {messages::Scored{kNan}}}}},
       messages::GroupsScored{me,
                              {{GroupId{1}, 1, {messages::Scored{1}, messages::Scored{-kInf}}}}},
       messages::GroupsScored{me, {{GroupId{1}, 1, {messages::Scored{1e39}}}}},
       messages::GroupsScored{
           me,
           {{GroupId{1},
             1,
             {messages::Scored{1, {}, std::string(messages::kExtraBytesMax + 1, 'x')}}}}},
       messages::TextsScored{me, {}, {{-1, 0, messages::Scored{1}}}},
       messages::TextsScored{me, {}, {{1, -1, messages::Scored{1}}}},
       messages::TextsScored{me, {}, {{1, 0, messages::Scored{kInf}}}},
       messages::TextsScored{me, {}, {{1, 0, messages::Scored{1e300}}}},
       messages::GroupsScored{me,
                              {{GroupId{1}, 1, {messages::Scored{1}, messages::Scored{-1e39}}}}}},
      false);
}

TEST(Doors, ALearnerSaysWhatLearnersSay_DR2) {
  const ActorId me = kLearnerPeer;
  const auto door = exchange_door<messages::LearnerPeer>("j-1");
  const messages::Publication first{PolicyVersion{0},  kInitialWeights, 1, 2, 0.1, {},
                                    {PolicyVersion{0}}};
  const messages::Publication third{.version = PolicyVersion{3},
                                    .oldest_retained = PolicyVersion{1},
                                    .offered = {PolicyVersion{1}, PolicyVersion{3}}};
  messages::StepCommitted committed{.from = me, .step = StepId{2}, .publication = third};
  expect_all<messages::LearnerEvents>(
      door, kLearnerPeer,
      {messages::LearnerUp{me, {}}, messages::LearnerUp{me, StepId{4}},
       messages::LearnerUp{me, {}, wire::WeightSource{"host", "10.0.0.1:7", "a", "b"}},
       messages::LearnerUp{me, {}, wire::WeightSource{.host = "host"}},
       messages::LearnerUp{me, StepId{4}, {}, {kInitialWeights, PolicyVersion{4}}},
       messages::Published{me, third}, messages::Published{me, third, {-1, -2.5f}},
       messages::WarmStartProgress{me, 1, 2, kNan, {}}, messages::WarmStarted{me, 3, first},
       committed, messages::StepCommitted{.from = me},
       messages::CheckpointSaved{me, StepId{3}, "d", std::string(64, 'a')},
       messages::LearnerFailed{me, "why"}, messages::LearnerBack{me, StepId{2}, StepId{2}, {}},
       messages::LearnerWaits{me, "the disk is full"}},
      true);
  const StepId huge{std::numeric_limits<std::int64_t>::max()};
  messages::StepCommitted other = committed, overflow = committed, before = committed;
  before.report.recorded_from = StepId{-1};
  other.publication->version = PolicyVersion{4};
  overflow.step = huge;
  expect_all<messages::LearnerEvents>(
      door, kLearnerPeer,
      {messages::LearnerUp{me, StepId{-1}},
       messages::LearnerUp{me, huge},
       messages::LearnerBack{me, StepId{-1}, {}, {}},
       messages::LearnerBack{me, StepId{1}, StepId{2}, {}},
       messages::LearnerBack{me, StepId{1}, {}, wire::WeightSource{}},
       messages::LearnerUp{me, {}, wire::WeightSource{"host", "10.0.0.1:7", "a", ""}},
       messages::LearnerUp{me, {}, wire::WeightSource{"host", "", "a", "b"}},
       messages::LearnerUp{me, {}, wire::WeightSource{}},
       messages::LearnerUp{me, {}, wire::WeightSource{"host", "ipc:///tmp/socket", "a", "b"}},
       messages::LearnerUp{
           me, {}, wire::WeightSource{std::string(600, 'h'), "10.0.0.1:7", "a", "b"}},
       messages::LearnerUp{me, {}, {}, {PolicyVersion{-2}}},
       messages::LearnerUp{me, {}, {}, std::vector<PolicyVersion>(messages::kOfferedMax + 1)},
       messages::Published{me, {.version = {-2}, .oldest_retained = {-2}, .offered = {{-2}}}},
       messages::Published{me, {.version = {1}, .oldest_retained = {2}, .offered = {{1}}}},
       messages::Published{me, {.version = {1}, .oldest_retained = {0}, .offered = {{0}}}},
       messages::Published{me, {{1}, {0}, 0, 0, kNan, {}, {{1}}}},
       messages::WarmStartProgress{me, -1, 2},
       messages::WarmStarted{me, -1, first},
       messages::WarmStarted{me, 1, third},
       messages::Published{me, third, {-1, static_cast<float>(kNan)}},
       messages::WarmStarted{me, 3, first, true, std::vector<float>(messages::kProbeMax + 1)},
       messages::StepCommitted{.from = me, .probe = {std::numeric_limits<float>::infinity()}},
       other,
       overflow,
       before,
       messages::CheckpointSaved{me, StepId{-1}},
       messages::CheckpointSaved{me, huge},
       messages::CheckpointSaved{me, StepId{1}, "d", "\xff\xfe"},
       messages::CheckpointSaved{me, StepId{1}, "d", std::string(65, 'a')}},
      false);
}

TEST(Doors, ABroadcastRankSaysWhatTheySay_DR2) {
  const auto door = exchange_door<messages::BroadcastPeer>("j-1");
  const std::string id(128, 'i');
  const auto progress = [](const ActorId& me, std::size_t operations, std::int64_t since_ms,
                           std::size_t label) {
    return messages::EpochProgress{
        me, 3,
        std::vector(operations,
                    messages::EpochOperation{1, std::string(label, 'l'), 8, {}, since_ms})};
  };
  for (const ActorId& peer : {kRolloutPeer, kLearnerPeer}) {
    const ActorId& me = peer;
    expect_all<messages::BroadcastEvents>(
        door, peer,
        {messages::BroadcastUp{me, 22809}, messages::EpochOpened{me, 1, id, 7},
         messages::EpochJoined{me, 1}, messages::EpochInUse{me, 1},
         messages::EpochFailed{me, 1, "why"}, messages::EpochLeft{me, 1}, progress(me, 0, 0, 0),
         progress(me, messages::kEpochOperationsMax, 5000, 100)},
        true);
    expect_all<messages::BroadcastEvents>(
        door, peer,
        {messages::BroadcastUp{me, 0}, messages::BroadcastUp{me, -1},
         messages::EpochOpened{me, 1, ""}, messages::EpochOpened{me, 1, std::string(129, 'i')},
         messages::EpochOpened{me, 1, id, 7, std::string(messages::kLayoutBytesMax + 1, 'x')},
         messages::EpochFailed{me, 1, std::string(1 << 20, 'x')},
         progress(me, messages::kEpochOperationsMax + 1, 0, 0), progress(me, 1, -1, 0),
         progress(me, 1, std::numeric_limits<std::int64_t>::max(), 0), progress(me, 1, 0, 1 << 20)},
        false);
  }
  const ActorId& me = kLearnerPeer;
  messages::Publication publication{
      .version = {3}, .oldest_retained = {1}, .offered = {PolicyVersion{3}}};
  for (const auto& [place, fine] :
       {std::pair{wire::BroadcastPlace{1, 1}, true}, std::pair{wire::BroadcastPlace{0, 1}, false},
        std::pair{wire::BroadcastPlace{1, 0}, false}}) {
    publication.broadcast = place;
    expect_all<messages::LearnerEvents>(exchange_door<messages::LearnerPeer>("j-1"), kLearnerPeer,
                                        {messages::Published{me, publication}}, fine);
  }
}

TEST(Doors, EveryActorSpeaksForItself_DR1) {
  const auto rollout = exchange_door<messages::RolloutPeer>("j-1");
  const messages::RolloutUp own{kRolloutPeer, 1};
  EXPECT_TRUE(rollout(kRolloutPeer, own));
  EXPECT_FALSE(rollout({"j-1/rollout/1", {4}}, own)) << "another actor";
  EXPECT_FALSE(rollout({"j-1/rollout/0", {5}}, own)) << "another incarnation";
  EXPECT_FALSE(rollout(kRewardPeer, messages::RolloutUp{kRewardPeer, 1})) << "another role";
  EXPECT_FALSE(exchange_door<messages::RolloutPeer>("j-2")(kRolloutPeer, own)) << "another job";
  EXPECT_FALSE(rollout({"node/a", {4}}, messages::RolloutUp{{"node/a", {4}}, 1}));
  const auto broadcast = exchange_door<messages::BroadcastPeer>("j-1");
  EXPECT_FALSE(broadcast(kRolloutPeer, messages::EpochJoined{kLearnerPeer, 1})) << "another actor";
  EXPECT_FALSE(broadcast(kRolloutPeer, messages::EpochJoined{{kRolloutPeer.name, {5}}, 1}));
  EXPECT_FALSE(broadcast(kRewardPeer, messages::BroadcastUp{kRewardPeer, 22809})) << "another role";
  EXPECT_FALSE(broadcast({"j-1/learner/0@1", {6}}, messages::BroadcastUp{kLearnerPeer, 22809}));
  EXPECT_FALSE(exchange_door<messages::BroadcastPeer>("j-2")(
      kRolloutPeer, messages::BroadcastUp{kRolloutPeer, 22809}));
  EXPECT_FALSE(exchange_door<messages::RewardPeer>("j-1")(kRolloutPeer,
                                                          messages::RewardUp{kRolloutPeer, 1}));
  EXPECT_FALSE(exchange_door<messages::LearnerPeer>("j-1")(kRolloutPeer,
                                                           messages::LearnerUp{kRolloutPeer, {}}));
  EXPECT_FALSE(exchange_door<messages::LearnerPeer>("j-1")({"j-1/learner/0@1", {6}},
                                                           messages::LearnerUp{kLearnerPeer, {}}));

  const auto rank = rank_door();
  EXPECT_TRUE(rank(kLearnerPeer, messages::RankListening{"j-1/learner/0", {6}, "127.0.0.1:9"}));
  EXPECT_TRUE(rank({"j-1/learner/0@2", {6}}, messages::RankReady{"j-1/learner/0", {6}, 2}));
  EXPECT_TRUE(rank({"j-1/learner/0@2", {6}}, messages::RankFailed{"j-1/learner/0", {6}, 2, "why"}));
  EXPECT_FALSE(rank({"j-1/learner/0@1", {6}}, messages::RankReady{"j-1/learner/0", {6}, 2}));
  EXPECT_FALSE(rank({"j-1/learner/0@1", {6}}, messages::RankListening{"j-1/learner/0", {6}, "x"}));
  EXPECT_FALSE(rank(kRolloutPeer, messages::RankFailed{"j-1/learner/0", {6}, 0, "why"}));
  EXPECT_FALSE(rank(kRolloutPeer, messages::RankPreempted{"j-1/learner/0", {6}, 0}));
  EXPECT_TRUE(rank(kLearnerPeer, messages::RankPreempted{"j-1/learner/0", {6}, 0}));
  EXPECT_FALSE(rank(kLearnerPeer, messages::RankReady{"j-1/learner/0", {7}, 0}));
  EXPECT_FALSE(rank(kLearnerPeer, messages::RankReady{"j-1/learner/0", {6}, -1}));
  EXPECT_FALSE(
      rank(kLearnerPeer, messages::RankListening{"j-1/learner/0", {6}, std::string(1 << 20, 'x')}));
}

TEST(Doors, NodesSpeakOfTheirOwnRanks_DR1_DR2) {
  Roster roster;
  const RankId here{"j-1/rollout/0", {4}, 0}, there{"j-1/rollout/1", {5}, 0};
  roster.started("a", here);
  roster.started("b", there);
  const auto door = agent_door([&](const RankId& rank) { return roster.node_of(rank); });
  const ActorId a{"node/a@3", {9}};
  NodeUp up{.node = "a", .incarnation = {9}, .cpus = 2, .memory_bytes = 1, .pid = 3};
  const RankId over{"j-1/rollout/0", {3}, 0};  // an earlier incarnation, as the controller knows
  NodeUp holds = up;
  holds.ranks = {{here, 7}, {over, 8}};
  holds.gpus = {{.uuid = "GPU-1"}, {.uuid = "GPU-2"}};
  holds.ended = {{over, 0, {}, "exit"}};
  expect_all<AgentEvents>(door, a,
                          {up, holds, RankSpawned{here, 7}, RankSpawnFailed{here, "why"},
                           RankExited{here, 0, {}, "exit"}, RankExited{here, {}, 9, "killed"},
                           RankExited{over, 0, {}, "exit"}, UsageReport{},
                           UsageReport{{{here, 150.5, 1 << 30, 2000}, {over, 0, 0}}}},
                          true);
  std::vector<AgentEvents> wrong = {RankSpawned{there, 7},
                                    RankSpawned{here, -1},
                                    RankSpawnFailed{there, "why"},
                                    RankExited{there, 0, {}, ""},
                                    RankExited{here, -1, {}, ""},
                                    RankExited{here, {}, 65, ""},
                                    RankExited{{"j-1/rollout/0", {4}, -1}, 0, {}, ""},
                                    UsageReport{{{here, 1, 1}, {there, 1, 1}}},
                                    UsageReport{{{here, kNan, 1}}},
                                    UsageReport{{{here, kInf, 1}}},
                                    UsageReport{{{here, -1, 1}}},
                                    UsageReport{{{here, 1, -1}}},
                                    UsageReport{{{here, 1, 1, -1}}},
                                    UsageReport{{{here, 1, 1, std::int64_t{1} << 62}}},
                                    UsageReport{{{here, 1, std::int64_t{1} << 60}}}};
  const auto as = [&](auto change) {
    NodeUp forged = up;
    change(forged);
    wrong.push_back(forged);
  };
  as([](NodeUp& n) { n.node = "b"; });
  as([](NodeUp& n) { n.incarnation = {10}; });
  as([](NodeUp& n) { n.cpus = kNan; });
  as([](NodeUp& n) { n.cpus = -1; });
  as([](NodeUp& n) { n.cpus = 1e300; });
  as([](NodeUp& n) { n.memory_bytes = -1; });
  as([](NodeUp& n) { n.memory_bytes = std::numeric_limits<std::int64_t>::max(); });
  as([](NodeUp& n) { n.pid = -1; });
  as([&](NodeUp& n) { n.ranks = {{there, 7}}; });
  as([&](NodeUp& n) { n.ranks = {{here, -1}}; });
  as([&](NodeUp& n) { n.ranks.resize(5000, {here, 7}); });
  as([&](NodeUp& n) { n.ended = {{there, 0, {}, ""}}; });
  as([&](NodeUp& n) { n.ended = {{here, 300, {}, ""}}; });
  as([&](NodeUp& n) { n.ended.resize(300, {here, 0, {}, ""}); });
  as([](NodeUp& n) { n.gpus.resize(5000); });
  as([](NodeUp& n) { n.gpus.push_back({.uuid = "GPU-1", .memory_bytes = -1}); });
  as([](NodeUp& n) { n.gpus = {{.uuid = "GPU-1"}, {.uuid = "GPU-1"}}; });
  for (const std::string& uuid : {std::string(), std::string("GPU-1,GPU-2"), std::string(129, 'x')})
    as([&](NodeUp& n) { n.gpus = {{.uuid = uuid}}; });
  as([](NodeUp& n) { n.nccl.version = -1; });
  as([](NodeUp& n) { n.nccl = {.version = 2'000'000'000, .path = "libnccl.so.2"}; });
  as([](NodeUp& n) { n.nccl = {.version = 22809}; });
  as([](NodeUp& n) { n.nccl = {.path = "libnccl.so.2"}; });
  as([](NodeUp& n) { n.nccl = {.version = 22809, .path = "p", .absent = "none"}; });
  as([](NodeUp& n) { n.nccl = {.version = 22809, .path = "p", .shares_gpus = true}; });
  as([](NodeUp& n) { n.nccl = {.version = 23003, .path = std::string(5000, 'p')}; });
  as([](NodeUp& n) { n.nccl.absent = std::string(5000, 'a'); });
  expect_all<AgentEvents>(door, a, wrong, false);
  for (const node::NodeNccl& nccl :
       {node::NodeNccl{.version = 22809, .path = "p"},
        node::NodeNccl{.version = 23003, .path = "p", .shares_gpus = true},
        node::NodeNccl{.absent = "no NCCL library"}}) {
    NodeUp told = up;
    told.nccl = nccl;
    EXPECT_TRUE(door(a, told)) << nccl.version;
  }
  EXPECT_FALSE(door({"j-1/rollout/0", {4}}, RankExited{here, 0, {}, ""})) << "no node";
}

Hello hello(std::string name, std::uint64_t incarnation, std::int32_t rank = 0,
            std::string actor = "j-1/learner/0") {
  return {.name = std::move(name),
          .incarnation = {incarnation},
          .rank = rank,
          .opaque = std::move(actor)};
}

TEST(Roster, ExpectsTheRanksThatWereStarted) {
  Roster roster;
  EXPECT_TRUE(roster.admit(hello("node/a@0", 1)));  // by its pid
  for (const char* const name :
       {"node/", "node/@0", "node/a", "node/a#1@0", "node/a@1", "", "controller", "nodes/a@0"})
    EXPECT_FALSE(roster.admit(hello(name, 1))) << name;
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0", 3))) << "not started";
  roster.started("a", {"j-1/learner/0", {3}, 0});
  roster.started("a", {"j-1/learner/0", {3}, 1});
  EXPECT_TRUE(roster.admit(hello("j-1/learner/0", 3)));
  EXPECT_TRUE(roster.admit(hello("j-1/learner/0@1", 3, 1)));
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0", 4))) << "an incarnation to come";
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0", ~std::uint64_t{0})));
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0", 2))) << "one that is over";
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0", 3, 1))) << "a rank that its name is not";
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0", 3, 0, "j-1/rollout/0")));
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0@1", 3, -1)));
  roster.started("b", {"j-1/learner/0", {4}, 0});
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0", 3)));
  EXPECT_TRUE(roster.admit(hello("j-1/learner/0", 4)));
  EXPECT_EQ(roster.node_of({"j-1/learner/0", {4}, 0}), "b");
  EXPECT_EQ(roster.node_of({"j-1/learner/0", {3}, 0}), std::nullopt);
  roster.started("a", {"j-11/learner/0", {9}, 0});
  roster.forget("j-1");
  EXPECT_FALSE(roster.admit(hello("j-1/learner/0", 4)));
  EXPECT_TRUE(roster.admit(hello("j-11/learner/0", 9, 0, "j-11/learner/0")));
}

}  // namespace
}  // namespace tandem::doors
