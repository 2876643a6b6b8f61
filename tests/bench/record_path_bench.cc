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
using actors::GroupPayload;
using runtime::Ref;

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
  Peer(const std::string& name, const runtime::Endpoint& link_server,
       const runtime::Endpoint& bulk_server)
      : link(link_io, directory, {link_server, {}}, name), bulk(bulk_io, {bulk_server, {}}) {}
  runtime::Directory directory;
  runtime::IoThread link_io{"link"}, bulk_io{"bulk"};
  runtime::ThreadedExecutor executor{1, 1};
  runtime::System system{executor, {}};
  Dialled link;
  runtime::BulkClient bulk;
};

// What the two outer peers say; the reward says all of RewardEvents.
using RolloutSays = std::variant<actors::Generated>;
using LearnerSays = std::variant<actors::StepCommitted>;

// The exchange's part: headers in, headers out.
class Relay {
 public:
  using Inbox = std::variant<actors::Generated, actors::RewardUp, actors::GroupsScored,
                             actors::TextsScored, actors::RewardTrouble, actors::StepCommitted>;
  Relay(Ref<actors::RewardInbox> reward, Ref<actors::LearnerInbox> learner, std::latch*& committed)
      : reward_(std::move(reward)), learner_(std::move(learner)), committed_(committed) {}

  void handle(runtime::Context&, actors::Generated generated) {
    actors::ScoreGroups work;
    for (auto& group : generated.groups) {
      work.groups.push_back({group.group, group.attempt, kRecord, group.payload});
      step_.groups.push_back({group.group, group.attempt, std::move(group.payload), {}});
    }
    CHECK(reward_.tell(std::move(work)) == runtime::Delivery::kAccepted);
  }
  void handle(runtime::Context&, actors::GroupsScored scored) {
    scored_ += static_cast<int>(scored.groups.size());
    if (scored_ < kGroups) return;
    scored_ = 0;
    CHECK(learner_.tell(std::exchange(step_, {})) == runtime::Delivery::kAccepted);
  }
  void handle(runtime::Context&, actors::StepCommitted) { committed_->count_down(); }
  void handle(runtime::Context&, actors::RewardUp) {}
  void handle(runtime::Context&, actors::TextsScored) {}
  void handle(runtime::Context&, actors::RewardTrouble) {}

 private:
  const Ref<actors::RewardInbox> reward_;
  const Ref<actors::LearnerInbox> learner_;
  std::latch*& committed_;
  actors::TrainStep step_;
  int scored_ = 0;
};

// The learner's part: pulls a step's payloads and decodes them.
class Puller {
 public:
  using Inbox = actors::LearnerInbox;
  Puller(runtime::BulkClient& bulk, Ref<LearnerSays> exchange)
      : bulk_(bulk), exchange_(std::move(exchange)) {}

  void handle(runtime::Context&, actors::TrainStep step) {
    std::vector<runtime::PayloadRef> refs;
    for (auto& group : step.groups) refs.push_back(std::move(group.payload));
    for (const std::string& bytes : must(bulk_.get_many(std::move(refs), kPatience)))
      benchmark::DoNotOptimize(must(runtime::decode<GroupPayload>(bytes)));
    CHECK(exchange_.tell(actors::StepCommitted{}) == runtime::Delivery::kAccepted);
  }
  void handle(runtime::Context&, actors::PublishInitial) {}
  void handle(runtime::Context&, actors::WarmStart) {}
  void handle(runtime::Context&, actors::SaveCheckpoint) {}

 private:
  runtime::BulkClient& bulk_;
  const Ref<LearnerSays> exchange_;
};

class Fleet {
 public:
  explicit Fleet(const fs::path& directory)
      : store_(must(runtime::open_file_segments(directory, {}))),
        bulk_(must(runtime::BulkServer::listen({places_.binding()}, "bench", *store_))),
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
          directory_.remote<actors::RewardInbox>({kRole, {}}, to("reward")),
          directory_.remote<actors::LearnerInbox>({kRole, {}}, to("learner")), committed_);
    });
    directory_.expose("rollout_events", runtime::narrow<RolloutSays>(relay));
    directory_.expose("reward_events", runtime::narrow<actors::RewardEvents>(relay));
    directory_.expose("learner_events", runtime::narrow<LearnerSays>(relay));
  }
  ~Fleet() {
    link_->close(Duration::zero());
    for (Peer* peer : {&rollout_, &reward_, &learner_}) peer->executor.stop();
    executor_.stop();
  }

  void run(const std::vector<GroupPayload>& payloads) {
    std::latch committed(1);
    committed_ = &committed;
    std::vector<runtime::PayloadRef> stored;
    const auto exchange =
        rollout_.directory.remote<RolloutSays>({"rollout_events", {}}, rollout_.link.sender());
    for (std::size_t at = 0; at < payloads.size(); at += kGroupsPerMessage) {
      std::vector<std::string> encoded;
      for (std::size_t i = at; i < at + kGroupsPerMessage; ++i)
        encoded.push_back(runtime::encode(payloads[i]));
      auto refs = must(rollout_.bulk.put_many(std::move(encoded), kPatience));
      actors::Generated generated;
      stored.insert(stored.end(), refs.begin(), refs.end());
      for (std::size_t i = 0; i < refs.size(); ++i)
        generated.groups.push_back(
            {.group = payloads[at + i].group,
             .prompt_tokens = 1,
             .trajectories = std::vector<actors::TrajectoryHeader>(kGroupSize),
             .payload = std::move(refs[i])});
      CHECK(exchange.tell(std::move(generated)) == runtime::Delivery::kAccepted);
    }
    committed.wait();
    for (const auto& payload : stored) CHECK(store_->release(payload));
    must(store_->reclaim(store_->open_segment()));
  }
  runtime::BulkCounters counters() const { return bulk_->counters(); }

 private:
  std::unique_ptr<runtime::LinkServer> listen() {
    auto callbacks = callbacks_of(
        directory_, [this](const runtime::PeerId& peer) { return runtime::to_peer(*link_, peer); });
    callbacks.on_up = [this](const runtime::PeerId&, const runtime::Hello&) {
      all_up_.count_down();
    };
    return must(runtime::LinkServer::listen(
        io_, {places_.binding()}, {.name = "controller", .incarnation = {1}, .build = kBuild}, {},
        callbacks));
  }
  runtime::ParcelSender to(const std::string& peer) {
    return runtime::to_peer(*link_, {peer, {1}});
  }
  void expose_reward() {
    const auto reward = reward_.system.spawn<actors::RewardActor>("reward", [this] {
      actors::RewardActor::Connections connections;
      connections.exchange = reward_.directory.remote<actors::RewardEvents>({"reward_events", {}},
                                                                            reward_.link.sender());
      connections.read = [this](std::vector<runtime::PayloadRef> refs, runtime::ReadDone done) {
        reward_.bulk.get_many(std::move(refs), kPatience, std::move(done));
      };
      return std::make_unique<actors::RewardActor>(
          actors::RewardConfig{.self = {"reward", {1}}},
          must(actors::make_verifier({.type = actors::VerifierType::kExact}, nullptr)),
          std::move(connections));
    });
    reward_.directory.expose(kRole, runtime::narrow<actors::RewardInbox>(reward));
  }

  runtime::Directory directory_;
  runtime::IoThread io_{"link"};
  runtime::ThreadedExecutor executor_{1, 1};
  runtime::System system_{executor_, {}};
  std::latch all_up_{3};
  std::latch* committed_ = nullptr;
  Place places_{Transport::kUnix};
  std::unique_ptr<runtime::SegmentStore> store_;
  std::unique_ptr<runtime::BulkServer> bulk_;
  std::unique_ptr<runtime::LinkServer> link_;
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
