// An exchange behind a live link server, one rollout that is honest, and one that is not: the
// dishonest one loses its link, the honest one notices nothing.
//
// Tests actors/exchange/exchange.h, actors/doors/doors.h.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>

#include "actors/doors/doors.h"
#include "actors/doors/exchange_door.h"
#include "actors/exchange/exchange.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/guarded.h"
#include "runtime/link/remote.h"
#include "runtime/payload/segment_store.h"
#include "tests/actors/controller/scenario.h"
#include "tests/runtime/link/bindings.h"

namespace tandem::controller {
namespace {

using link::Down;
using link::Hello;
using link::LinkCallbacks;

constexpr auto kPatience = std::chrono::seconds(100);  // ends a hang; never measured
constexpr const char* kRole = "role";
constexpr const char* kRolloutPort = "exchange/job-1/rollout";
constexpr const char* kLearnerPort = "exchange/job-1/learner";
const ActorId kHonest{"job-1/rollout/0", {1}}, kAttacker{"job-1/rollout/1", {7}};
const ActorId kLearner{"job-1/learner/0", {3}};

link::LinkOptions patient() {
  link::LinkOptions options;
  options.peer_timeout = std::chrono::seconds(60);  // a stalled machine loses no peer
  options.disconnect_grace = std::chrono::seconds(60);
  return options;
}

// Lets several threads wait until a condition is true.
class Changes {
 public:
  template <class Change>
  void make(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  template <class Condition>
  bool await(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class StoredPayloads final : public exchange::PayloadStore {
 public:
  explicit StoredPayloads(payload::SegmentStore& store) : store_(store) {}
  bool holds(const wire::PayloadRef& payload) const override { return store_.holds(payload); }
  void release(const wire::PayloadRef& payload) override { CHECK(store_.release(payload)); }
  bool recover(const wire::PayloadRef&) override { return false; }
  void settle() override {}
  Result<std::string> read(const wire::PayloadRef&) override {
    return Error{ErrorCode::kNotFound, "not read"};
  }

 private:
  payload::SegmentStore& store_;
};

// The controller's process, without a controller.
struct Cluster {
  Cluster() {
    record.now_ms = [] { return std::int64_t{0}; };
    for (const ActorId& peer : {kHonest, kAttacker, kLearner})
      roster.with([&](doors::Roster& r) { r.started("a", {peer.name, peer.incarnation, 0}); });
    LinkCallbacks callbacks;
    callbacks.on_up = [this](const ActorId& peer, const Hello&) {
      changes.make([&] { up.insert(peer); });
    };
    callbacks.on_down = [this](const ActorId& peer, const Down&) {
      changes.make([&] { up.erase(peer); });
    };
    callbacks.on_parcel = [this](const ActorId& peer, std::string& frame) {
      return directory.deliver(frame, to_peer(*server, peer), peer);
    };
    callbacks.admit = [this](const Hello& hello) {
      return roster.with([&](doors::Roster& r) { return r.admit(hello); });
    };
    server = std::move(link::LinkServer::listen(io, {link::here()},
                                                {.name = "controller", .incarnation = {1}},
                                                patient(), callbacks)
                           .value());
    exchange = system.spawn<exchange::Exchange>("exchange/job-1", [this] {
      return std::make_unique<exchange::Exchange>(exchange_config(plain_job(1), "job-1", false),
                                                  links(), record, payload_store);
    });
    directory.expose(kRolloutPort, actor::narrow<messages::RolloutEvents>(exchange),
                     doors::exchange_door<messages::RolloutPeer>("job-1"));
    directory.expose(kLearnerPort, actor::narrow<messages::LearnerEvents>(exchange),
                     doors::exchange_door<messages::LearnerPeer>("job-1"));
    server->start();
  }
  ~Cluster() {
    server->close(Duration{0});
    executor.stop();
    std::filesystem::remove_all(payloads);
  }
  exchange::ExchangeLinks links() {
    struct Deaf final : actor::Target<messages::ExchangeNotices> {
      actor::Delivery post(messages::ExchangeNotices) override {
        return actor::Delivery::kAccepted;
      }
    };
    const auto dial = [this]<class Peer>(const ActorId& to) {
      return directory.remote<typename Peer::Inbox>({kRole, {}}, to_peer(*server, to));
    };
    return {.dials = exchange::dials(dial),
            .controller = {{"controller", {}}, std::make_shared<Deaf>()},
            .refuse = [this](const ActorId& who, const std::string&) { server->fence(who); }};
  }
  bool await_version(std::int64_t version) {
    const Time end = steady_now() + kPatience;
    while (steady_now() < end) {
      const auto report = actor::ask_and_wait(exchange, messages::GetExchangeReport{}, kPatience);
      if (report.value().status.policy_version == version) return true;
    }
    return false;
  }
  bool await_state(GroupId group, const std::string& state) {
    const Time end = steady_now() + kPatience;
    while (steady_now() < end) {
      const auto groups = actor::ask_and_wait(exchange, messages::GetGroups{}, kPatience);
      for (const messages::GroupView& view : groups.value())
        if (view.group == group.value && view.state == state) return true;
    }
    return false;
  }
  bool is_up(const ActorId& peer) { return server->status(peer).has_value(); }
  wire::PayloadRef put() {  // as the payload socket does for a rollout
    const std::uint64_t bytes = 1;
    const payload::Extent extent = store->reserve({&bytes, 1}).value()[0];
    CHECK(store->write(extent, 0, std::as_bytes(std::span("x", 1))));
    store->commit(extent, ++checksums);
    return {"job-1", extent.segment, extent.offset, extent.bytes, checksums};
  }

  Changes changes;
  std::set<ActorId> up;
  Guarded<doors::Roster> roster;
  MemoryRecord record;
  const std::filesystem::path payloads =
      std::filesystem::temp_directory_path() / ("tandem-attack-test-" + std::to_string(::getpid()));
  std::unique_ptr<payload::SegmentStore> store =
      std::move(payload::open_file_segments(payloads, {})).value();
  std::uint64_t checksums = 0;
  StoredPayloads payload_store{*store};
  link::Directory directory;
  link::IoThread io{"server"};
  std::unique_ptr<link::LinkServer> server;
  actor::ThreadedExecutor executor{1, 1};
  actor::Ref<exchange::Exchange::Inbox> exchange;
  actor::System system{executor, [](const ActorId&, const Error& why) { FAIL() << why.message; }};
};

// A rank's process: it keeps what it is sent.
template <class Inbox, class Events>
class Rank {
 public:
  Rank(Cluster& cluster, const ActorId& self, const char* port)
      : link_(io_, {cluster.server->endpoint(), {}},
              Hello{.name = self.name, .incarnation = self.incarnation, .opaque = self.name},
              patient(), callbacks()),
        exchange_(directory_.remote<Events>({port, {}}, link::to_server(link_))) {
    struct Box final : actor::Target<Inbox> {
      explicit Box(Rank& rank) : owner(rank) {}
      actor::Delivery post(Inbox message) override {
        owner.changes_.make([&] { owner.heard_.push_back(std::move(message)); });
        return actor::Delivery::kAccepted;
      }
      Rank& owner;
    };
    directory_.expose(kRole, actor::Ref<Inbox>({kRole, {}}, std::make_shared<Box>(*this)));
    link_.start();
  }
  ~Rank() { link_.close(Duration{0}); }
  void say(Events message) {
    ASSERT_EQ(exchange_.tell(std::move(message)), actor::Delivery::kAccepted);
  }
  template <class M>
  M hear() {
    M found;
    EXPECT_TRUE(changes_.await([&] {
      for (const Inbox& message : heard_)
        if (const auto* one = std::get_if<M>(&message)) {
          found = *one;
          return true;
        }
      return false;
    }));
    return found;
  }
  bool await_up() {
    return changes_.await([&] { return up_ || down_; }) && !down_;
  }
  std::optional<Down> await_down() {
    EXPECT_TRUE(changes_.await([&] { return down_.has_value(); }));
    return down_;
  }

 private:
  LinkCallbacks callbacks() {
    LinkCallbacks callbacks;
    callbacks.on_up = [this](const ActorId&, const Hello&) { changes_.make([&] { up_ = true; }); };
    callbacks.on_down = [this](const ActorId&, const Down& down) {
      changes_.make([&] { down_ = down; });
    };
    callbacks.on_parcel = [this](const ActorId&, std::string& frame) {
      return directory_.deliver(frame, link::to_server(link_));
    };
    return callbacks;
  }

  Changes changes_;
  bool up_ = false;
  std::optional<Down> down_;
  std::vector<Inbox> heard_;
  link::Directory directory_;
  link::IoThread io_{"rank"};
  link::LinkClient link_;
  const actor::Ref<Events> exchange_;
};
using RolloutRank = Rank<messages::RolloutInbox, messages::RolloutEvents>;
using LearnerRank = Rank<messages::LearnerInbox, messages::LearnerEvents>;

// A job that trains: version 0 is published, and the honest rollout has the groups.
struct Attack : testing::Test {
  void SetUp() override {
    ASSERT_TRUE(learner.await_up());
    ASSERT_TRUE(honest.await_up());
    learner.say(messages::LearnerUp{kLearner, {}});
    (void)learner.hear<messages::PublishInitial>();
    learner.say(messages::Published{kLearner,
                                    {.version = kInitialWeights,
                                     .oldest_retained = kInitialWeights,
                                     .offered = {kInitialWeights}}});
    (void)learner.hear<messages::WarmStart>();
    learner.say(messages::WarmStarted{
        .from = kLearner,
        .publication = {.version = {0}, .oldest_retained = kInitialWeights, .offered = {{0}}}});
    ASSERT_TRUE(cluster.await_version(0));
    honest.say(messages::RolloutUp{kHonest, 24});
    (void)honest.hear<messages::NewVersion>();
    honest.say(messages::Installed{kHonest, PolicyVersion{0}});
    works = honest.hear<messages::Assign>().groups;
    ASSERT_FALSE(works.empty());
  }
  messages::GroupHeader header(const messages::GroupWork& work) {
    messages::GroupHeader header{
        .group = work.group, .attempt = work.attempt, .payload = cluster.put()};
    header.trajectories.resize(static_cast<std::size_t>(work.n), {.completion_tokens = 1});
    return header;
  }
  // The attacker says `event` and is fenced; the honest rollout is up as before.
  void expect_fenced(messages::RolloutEvents event) {
    RolloutRank attacker(cluster, kAttacker, kRolloutPort);
    ASSERT_TRUE(attacker.await_up());
    attacker.say(messages::RolloutUp{kAttacker, 24});
    attacker.say(std::move(event));
    const auto down = attacker.await_down();
    ASSERT_TRUE(down);
    EXPECT_EQ(down->reason, Down::Reason::kFenced) << "LK-4";
    const Time end = steady_now() + kPatience;  // the attacker hears it before it is down here
    while (cluster.is_up(kAttacker) && steady_now() < end) sched_yield();
    EXPECT_FALSE(cluster.is_up(kAttacker));
    EXPECT_TRUE(cluster.is_up(kHonest));
  }

  Cluster cluster;
  LearnerRank learner{cluster, kLearner, kLearnerPort};
  RolloutRank honest{cluster, kHonest, kRolloutPort};
  std::vector<messages::GroupWork> works;
};

TEST_F(Attack, AHelloOfALaterIncarnationEvictsNobody) {
  for (const ActorId& forged : {ActorId{kHonest.name, {99}}, ActorId{kHonest.name, {~0ull}},
                                ActorId{"job-1/rollout/5", {1}}}) {
    RolloutRank attacker(cluster, forged, kRolloutPort);
    const auto down = attacker.await_down();
    ASSERT_TRUE(down);
    EXPECT_EQ(down->reason, Down::Reason::kRefused) << down->error.message;
    EXPECT_TRUE(cluster.is_up(kHonest));
  }
}

TEST_F(Attack, NobodyGeneratesInTheNameOfAnother_DR1) {
  const messages::GroupHeader stolen = header(works[0]);
  expect_fenced(messages::Generated{kHonest, {stolen}});
  EXPECT_TRUE(cluster.store->holds(stolen.payload));
}

TEST_F(Attack, NobodyFreesThePayloadOfAnother) {
  const messages::GroupHeader mine = header(works[0]);
  honest.say(messages::Generated{kHonest, {mine}});
  ASSERT_TRUE(cluster.await_state(works[0].group, "generated"));
  messages::GroupHeader theirs = mine;
  theirs.group = GroupId{12345};
  expect_fenced(messages::Generated{kAttacker, {theirs}});
  EXPECT_TRUE(cluster.store->holds(mine.payload));
}

TEST_F(Attack, NobodyFreesWhatNobodyStored) {
  messages::GroupHeader made_up = header(works[0]);
  made_up.payload.offset += 1000;
  expect_fenced(messages::Generated{kAttacker, {made_up}});
}

TEST_F(Attack, AnotherNumberOfTrajectoriesEndsItsSender) {
  messages::GroupHeader many = header(works[0]);
  many.trajectories.resize(1000);
  expect_fenced(messages::Generated{kAttacker, {many}});
}

TEST_F(Attack, TheLeaseOfAnotherIsNotHandedBack) {
  expect_fenced(messages::Unservable{kAttacker, works[0].group, works[0].attempt});
}

}  // namespace
}  // namespace tandem::controller
