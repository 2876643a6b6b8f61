// Every message that a peer can send, with numbers and names drawn at random, and with bits turned
// over on its way: whatever comes in, the process goes on, the ledger's invariants hold (LG-1 …
// LG-5, SB-1, recounted after each message) and the controller's rules are kept.
//
// Tests actors/doors/doors.h, actors/exchange/exchange.h, actors/controller/controller_core.h.
#include <gtest/gtest.h>

#include <limits>

#include "actors/doors/doors.h"
#include "actors/doors/exchange_door.h"
#include "runtime/collective/nccl_api.h"
#include "runtime/link/remote.h"
#include "tests/actors/exchange/exchange_stage.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

constexpr int kMessages = 300;  // messages per seed

// Draws values of any wired type: often small numbers and names that exist, sometimes the limits.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : rng(seed) {}

  template <class T>
  void fill(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = rng.below(2) == 0;
    } else if constexpr (std::is_enum_v<T>) {
      do value = static_cast<T>(rng.below(8));
      while (!wire_has(value));
    } else if constexpr (std::is_integral_v<T>) {
      value = integer<T>();
    } else if constexpr (std::is_floating_point_v<T>) {
      const T values[] = {0,
                          1,
                          T(0.5),
                          T(-1),
                          std::numeric_limits<T>::max(),
                          std::numeric_limits<T>::quiet_NaN(),
                          std::numeric_limits<T>::infinity()};
      value = values[rng.below(std::size(values))];
    } else if constexpr (wire::wire_detail::is_id<T>) {
      fill(value.value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      const char* const texts[] = {"job-1/rollout/0",
                                   "job-1/rollout/1",
                                   "job-1/reward/0",
                                   "job-1/learner/0",
                                   "simulated",
                                   "a",
                                   "",
                                   "\xff\xfe",
                                   "x"};
      value = texts[rng.below(std::size(texts))];
    } else if constexpr (wire::wire_detail::is_a<T, std::optional>) {
      if (rng.below(2) == 0) fill(value.emplace());
    } else if constexpr (wire::wire_detail::is_a<T, std::vector>) {
      value.resize(rng.below(4));
      for (auto& element : value) fill(element);
    } else if constexpr (wire::wire_detail::is_a<T, std::variant>) {
      fill_variant(value, std::make_index_sequence<std::variant_size_v<T>>());
    } else {
      [&]<auto... kMembers>(wire::WireFields<T, kMembers...>) { (fill(value.*kMembers), ...); }
      (wire_fields(&value));
    }
  }

  Rng rng;

 private:
  template <class T>
  T integer() {
    switch (rng.below(8)) {
      case 0:
        return std::numeric_limits<T>::max();
      case 1:
        return std::numeric_limits<T>::min();
      case 2:
        return static_cast<T>(-1);
      case 3:
        return static_cast<T>(rng.next());
      default:
        return static_cast<T>(rng.below(14));
    }
  }
  template <class T, std::size_t... I>
  void fill_variant(T& value, std::index_sequence<I...>) {
    const std::size_t index = rng.below(sizeof...(I));
    ((I == index ? fill(value.template emplace<I>()) : void()), ...);
  }
};

template <class Events>
std::string parcel(const std::string& port, const Events& events) {
  std::string frame = wire::encode(link::ParcelHead{.to = {port, {}}});
  wire::WireWriter out(frame);
  out.array(2);
  out.unsigned_integer(events.index());
  std::visit([&](const auto& message) { wire::encode_to(out, message); }, events);
  return frame;
}

const std::vector<ActorId> kPeers = {{"job-1/rollout/0", {1}},
                                     {"job-1/rollout/1", {7}},
                                     {"job-1/reward/0", {2}},
                                     {"job-1/learner/0", {3}},
                                     {"node/a@3", {5}}};

// An exchange behind its doors. A refused message does not end the peer here: the peer goes on to
// attack.
class Fuzzed {
 public:
  explicit Fuzzed(std::uint64_t seed) : draw_(seed), stage_(fuzzed_job()) {
    messages::for_each_peer([this]<class Peer> {
      directory_.expose(Peer::kName, actor::narrow<typename Peer::Events>(stage_.ref),
                        doors::exchange_door<Peer>("job-1"));
    });
    stage_.begin();
    stage_.tell(messages::RolloutUp{{"job-1/rollout/1", {7}}, 8});
    for (const ActorId& rank : {exchange::kLearner, exchange::kRollout})
      stage_.tell(messages::BroadcastUp{rank, 22809});
  }
  bool goes_on() const { return !stage_.ended(); }
  void attack() {
    if (draw_.rng.below(4) == 0) (void)stage_.payload_store.put("x");
    const ActorId from = kPeers[draw_.rng.below(kPeers.size())];
    std::string frame =
        draw_.rng.below(3) == 0   ? frame_of<messages::BroadcastEvents>("broadcast", from)
        : draw_.rng.below(3) == 0 ? frame_of<messages::RewardEvents>("reward", from)
        : draw_.rng.below(2) == 0 ? frame_of<messages::LearnerEvents>("learner", from)
                                  : frame_of<messages::RolloutEvents>("rollout", from);
    if (draw_.rng.below(3) == 0) turn_bits(frame);
    const auto back = [](std::string) { return link::Sent::kAccepted; };
    (void)directory_.deliver(frame, back, from);
    stage_.run();
  }
  std::size_t refused() const { return stage_.refused.size() + directory_.counters().refused; }

 private:
  template <class Events>
  std::string frame_of(const std::string& port, const ActorId& from) {
    Events events;
    draw_.fill(events);
    std::visit(
        [&](auto& message) {
          if (draw_.rng.below(5) > 0) message.from = from;
          if (draw_.rng.below(10) > 0) make_plausible(message);
        },
        events);
    return parcel(port, events);
  }
  // Corrects the fields that would be wrong in every draw and so end each attack at the same check.
  template <class M>
  void make_plausible(M& message) {
    if constexpr (std::is_same_v<M, messages::Installed>)
      message.checksum = exchange::Stage::checksum_of(message.version);  // EX-7
    if constexpr (std::is_same_v<M, messages::EpochOpened>)
      message.unique_id.resize(collective::kNcclUniqueIdBytes);
  }
  static SimulatedJob fuzzed_job() {
    SimulatedJob job = plain_job(1);
    job.exchange.broadcasts.emplace();
    return job;
  }
  void turn_bits(std::string& frame) {
    for (std::uint64_t bits = 1 + draw_.rng.below(4); bits > 0; --bits)
      frame[draw_.rng.below(frame.size())] ^= static_cast<char>(1 << draw_.rng.below(8));
  }

  Draw draw_;
  exchange::Stage stage_;
  link::Directory directory_;
};

TEST(PeersFuzz, AnExchangeOutlivesEverything) {
  std::size_t refused = 0;
  for_seeds(60, [&](std::uint64_t seed) {
    Fuzzed fuzzed(seed);
    for (int i = 0; i < kMessages && fuzzed.goes_on(); ++i) fuzzed.attack();
    refused += fuzzed.refused();
  });
  EXPECT_GT(refused, 100u);
}

TEST(PeersFuzz, AControllerOutlivesEverything) {
  std::size_t passed = 0;
  for_seeds(60, [&](std::uint64_t seed) {
    Draw draw(seed);
    doors::Roster roster;
    ControllerCore core(seed);
    Time now{1};
    const auto step = [&](const ControllerEvent& event) {
      const auto effects = core.step(event, now);
      ASSERT_TRUE(effects);
      for (const ControllerEffect& effect : *effects)
        if (const auto* spawn = std::get_if<SpawnRankOn>(&effect))
          roster.started(spawn->node, spawn->id);
    };
    step(node::NodeUp{
        .node = "a", .incarnation = {5}, .cpus = 16, .memory_bytes = std::int64_t{64} << 30});
    step(SubmitJob{shape_of(plain_job(1)), "job-1", "runs/job-1"});
    const auto agents = doors::agent_door([&](const auto& rank) { return roster.node_of(rank); });
    const auto ranks = doors::rank_door();
    for (int i = 0; i < kMessages; ++i) {
      now = now + std::chrono::milliseconds(draw.rng.below(2000));
      const ActorId from = kPeers[draw.rng.below(kPeers.size())];
      messages::RankEvents rank;
      node::AgentEvents agent;
      draw.fill(rank);
      draw.fill(agent);
      const bool both = draw.rng.below(2) == 0;
      if (both && ranks(from, rank)) {
        ++passed;
        std::visit([&](const auto& message) { step(message); }, rank);
      } else if (agents(from, agent)) {
        ++passed;
        std::visit(
            [&](const auto& message) {
              if constexpr (std::is_convertible_v<decltype(message), ControllerEvent>)
                step(message);
              else
                for (const RankHung& hung : core.note_usage(message)) step(hung);
            },
            agent);
      } else {
        step(Tick{});
      }
    }
  });
  EXPECT_GT(passed, 10u);
}

}  // namespace
}  // namespace tandem::controller
