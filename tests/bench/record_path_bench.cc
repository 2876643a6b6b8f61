// record_path: what a finished completion of 512 tokens goes through, without the arithmetic before
// and after it. Per iteration 64 groups of 8:
//
//   rollout   encodes the payloads, puts them into the segment files, sends their headers (8 groups
//             a message)
//   exchange  passes each on to the reward, and all together, scored, to the learner
//   reward    the RewardActor: gets the payload, decodes it, compares every text, sends the scores
//   learner   gets all payloads and decodes them
//
// Rollout, reward and learner have links, bulk clients and threads of their own, over TCP loopback.
// items_per_second counts completions. bytes_copied is what went through the bulk sockets for each
// (one put, two gets), encoded_bytes what a completion takes as it is encoded.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <latch>

#include "actors/messages/learner.h"
#include "actors/reward/make_verifier.h"
#include "actors/reward/reward_actor.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/log.h"
#include "runtime/payload/bulk.h"
#include "tests/bench/link_peers.h"
#include "tests/bench/must.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;
using actor::Ref;
using messages::GroupPayload;

constexpr int kGroups = 64, kGroupSize = 8, kTokens = 512, kGroupsPerMessage = 8;
constexpr Duration kPatience = std::chrono::seconds(30);
constexpr const char* kRole = "role";
constexpr const char* kRecord = R"({"prompt":"p","answer":"a"})";

GroupPayload make_payload(std::uint64_t group) {
  GroupPayload payload{.group = {group}, .prompt = "p", .prompt_tokens = {1}};
  for (int i = 0; i < kGroupSize; ++i)
    payload.trajectories.push_back({.tokens = std::vector<std::int32_t>(kTokens, i),
                                    .logprobs = std::vector<float>(kTokens, -0.5f),
                                    .versions = {{PolicyVersion{0}, 0, kTokens}},
                                    .text = std::string(4 * kTokens, 'a')});
  return payload;
}

// One process of the real thing: a link, a bulk client, an actor.
struct Peer {
  Peer(const std::string& name, const link::Endpoint& link_server,
       const link::Endpoint& bulk_server)
      : link(link_io, directory, {link_server, {}}, name), bulk(bulk_io, {bulk_server, {}}) {}
  link::Directory directory;
  link::IoThread link_io{"link"}, bulk_io{"bulk"};
  actor::ThreadedExecutor executor{1, 1};
  actor::System system{executor, {}};
  Dialled link;
  payload::BulkClient bulk;
};

// The messages that the two outer peers send; the reward sends all of RewardEvents.
using RolloutSays = std::variant<messages::Generated>;
using LearnerSays = std::variant<messages::StepCommitted>;

// The exchange's part: headers in, headers out.
class Relay {
 public:
  using Inbox = std::variant<messages::Generated, messages::RewardUp, messages::GroupsScored,
                             messages::TextsScored, messages::RewardTrouble, messages::RewardBack,
                             messages::StepCommitted>;
  Relay(Ref<messages::RewardInbox> reward, Ref<messages::LearnerInbox> learner,
        std::latch*& committed)
      : reward_(std::move(reward)), learner_(std::move(learner)), committed_(committed) {}

  void handle(actor::Context&, messages::Generated generated) {
    messages::ScoreGroups work;
    for (auto& group : generated.groups) {
      work.groups.push_back({group.group, group.attempt, kRecord, group.payload});
      step_.groups.push_back({group.group, group.attempt, std::move(group.payload), {}});
    }
    CHECK(reward_.tell(std::move(work)) == actor::Delivery::kAccepted);
  }
  void handle(actor::Context&, messages::GroupsScored scored) {
    scored_ += static_cast<int>(scored.groups.size());
    if (scored_ < kGroups) return;
    scored_ = 0;
    CHECK(learner_.tell(std::exchange(step_, {})) == actor::Delivery::kAccepted);
  }
  void handle(actor::Context&, messages::StepCommitted) { committed_->count_down(); }
  void handle(actor::Context&, messages::RewardUp) {}
  void handle(actor::Context&, messages::TextsScored) {}
  void handle(actor::Context&, messages::RewardTrouble) {}
  void handle(actor::Context&, messages::RewardBack) {}

 private:
  const Ref<messages::RewardInbox> reward_;
  const Ref<messages::LearnerInbox> learner_;
  std::latch*& committed_;
  messages::TrainStep step_;
  int scored_ = 0;
};

// The learner's part: pulls a step's payloads and decodes them.
class Puller {
 public:
  using Inbox = messages::LearnerInbox;
  Puller(payload::BulkClient& bulk, Ref<LearnerSays> exchange)
      : bulk_(bulk), exchange_(std::move(exchange)) {}

  void handle(actor::Context&, messages::TrainStep step) {
    std::vector<wire::PayloadRef> refs;
    for (auto& group : step.groups) refs.push_back(std::move(group.payload));
    for (const std::string& bytes : must(bulk_.get_many(std::move(refs), kPatience)))
      benchmark::DoNotOptimize(must(wire::decode<GroupPayload>(bytes)));
    CHECK(exchange_.tell(messages::StepCommitted{}) == actor::Delivery::kAccepted);
  }
  void handle(actor::Context&, messages::PublishInitial) {}
  void handle(actor::Context&, messages::WarmStart) {}
  void handle(actor::Context&, messages::SaveCheckpoint) {}

 private:
  payload::BulkClient& bulk_;
  const Ref<LearnerSays> exchange_;
};

class Fleet {
 public:
  explicit Fleet(const fs::path& directory)
      : store_(must(payload::open_file_segments(directory, {}))),
        bulk_(must(payload::BulkServer::listen({address_.binding()}, "bench", *store_))),
        link_(listen()),
        rollout_("rollout", link_->endpoint(), bulk_->endpoints().front()),
        reward_("reward", link_->endpoint(), bulk_->endpoints().front()),
        learner_("learner", link_->endpoint(), bulk_->endpoints().front()) {
    link_->start();
    all_up_.wait();
    expose_reward();
    learner_.directory.expose(kRole, learner_.system.spawn<Puller>("learner", [this] {
      return std::make_unique<Puller>(
          learner_.bulk,
          learner_.directory.remote<LearnerSays>({"learner_events", {}}, learner_.link.sender()));
    }));
    const auto relay = system_.spawn<Relay>("exchange", [this] {
      return std::make_unique<Relay>(
          directory_.remote<messages::RewardInbox>({kRole, {}}, to("reward")),
          directory_.remote<messages::LearnerInbox>({kRole, {}}, to("learner")), committed_);
    });
    directory_.expose("rollout_events", actor::narrow<RolloutSays>(relay));
    directory_.expose("reward_events", actor::narrow<messages::RewardEvents>(relay));
    directory_.expose("learner_events", actor::narrow<LearnerSays>(relay));
  }
  ~Fleet() {
    link_->close(Duration::zero());
    for (Peer* peer : {&rollout_, &reward_, &learner_}) peer->executor.stop();
    executor_.stop();
  }

  void run(const std::vector<GroupPayload>& payloads) {
    std::latch committed(1);
    committed_ = &committed;
    std::vector<wire::PayloadRef> stored;
    const auto exchange =
        rollout_.directory.remote<RolloutSays>({"rollout_events", {}}, rollout_.link.sender());
    for (std::size_t at = 0; at < payloads.size(); at += kGroupsPerMessage) {
      std::vector<std::string> encoded;
      for (std::size_t i = at; i < at + kGroupsPerMessage; ++i)
        encoded.push_back(wire::encode(payloads[i]));
      auto refs = must(rollout_.bulk.put_many(std::move(encoded), kPatience));
      messages::Generated generated;
      stored.insert(stored.end(), refs.begin(), refs.end());
      for (std::size_t i = 0; i < refs.size(); ++i)
        generated.groups.push_back(
            {.group = payloads[at + i].group,
             .prompt_tokens = 1,
             .trajectories = std::vector<messages::TrajectoryHeader>(kGroupSize),
             .payload = std::move(refs[i])});
      CHECK(exchange.tell(std::move(generated)) == actor::Delivery::kAccepted);
    }
    committed.wait();
    for (const auto& payload : stored) CHECK(store_->release(payload));
    must(store_->reclaim(store_->open_segment()));
  }
  payload::BulkCounters counters() const { return bulk_->counters(); }

 private:
  std::unique_ptr<link::LinkServer> listen() {
    auto callbacks = callbacks_of(
        directory_, [this](const ActorId& peer) { return link::to_peer(*link_, peer); });
    callbacks.on_up = [this](const ActorId&, const link::Hello&) { all_up_.count_down(); };
    return must(link::LinkServer::listen(
        io_, {address_.binding()}, {.name = "controller", .incarnation = {1}, .build = kBuild}, {},
        callbacks));
  }
  link::ParcelSender to(const std::string& peer) { return link::to_peer(*link_, {peer, {1}}); }
  void expose_reward() {
    const auto reward = reward_.system.spawn<reward::RewardActor>("reward", [this] {
      reward::RewardActor::Connections connections;
      connections.exchange = reward_.directory.remote<messages::RewardEvents>(
          {"reward_events", {}}, reward_.link.sender());
      connections.read = [this](std::vector<wire::PayloadRef> refs, payload::ReadDone done) {
        reward_.bulk.get_many(std::move(refs), kPatience, std::move(done));
      };
      return std::make_unique<reward::RewardActor>(
          reward::RewardConfig{.self = {"reward", {1}}},
          must(reward::make_verifier({.type = reward::VerifierType::kExact}, nullptr)),
          std::move(connections));
    });
    reward_.directory.expose(kRole, actor::narrow<messages::RewardInbox>(reward));
  }

  link::Directory directory_;
  link::IoThread io_{"link"};
  actor::ThreadedExecutor executor_{1, 1};
  actor::System system_{executor_, {}};
  std::latch all_up_{3};
  std::latch* committed_ = nullptr;
  ServerAddress address_{Transport::kUnix};
  std::unique_ptr<payload::SegmentStore> store_;
  std::unique_ptr<payload::BulkServer> bulk_;
  std::unique_ptr<link::LinkServer> link_;
  Peer rollout_, reward_, learner_;
};

void record_path(benchmark::State& state) {
  init_logging("record_path_bench", LogLevel::kWarnings);
  const fs::path directory =
      fs::temp_directory_path() / ("tandem-record-bench-" + std::to_string(getpid()));
  {
    Fleet fleet(directory);
    std::vector<GroupPayload> payloads;
    for (std::uint64_t group = 1; group <= kGroups; ++group)
      payloads.push_back(make_payload(group));
    for (auto _ : state) fleet.run(payloads);
    const auto records = static_cast<double>(state.iterations() * kGroups * kGroupSize);
    const auto counters = fleet.counters();
    state.SetItemsProcessed(state.iterations() * kGroups * kGroupSize);
    state.counters["bytes_copied"] =
        static_cast<double>(counters.bytes_put + counters.bytes_got) / records;
    state.counters["encoded_bytes"] = static_cast<double>(counters.bytes_put) / records;
  }
  fs::remove_all(directory);
}
BENCHMARK(record_path)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem::bench

BENCHMARK_MAIN();
