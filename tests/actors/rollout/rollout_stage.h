// A rollout actor with a FakeEngine in the simulated executor. The test plays the exchange, the
// publisher of weights and the store of payloads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/rollout/fake_engine.h"
#include "actors/rollout/fake_weights.h"
#include "actors/rollout/rollout_actor.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "tests/actors/rollout/versions.h"

namespace tandem::rollout {

using namespace std::chrono_literals;
using actor::Delivery;

// Keeps the messages of a rollout; a test can make it refuse them as a full mailbox does.
struct Heard final : actor::Target<messages::RolloutEvents> {
  Delivery post(messages::RolloutEvents event) override {
    if (refusals_left > 0) {
      --refusals_left;
      return Delivery::kFull;
    }
    events.push_back(std::move(event));
    return Delivery::kAccepted;
  }
  template <class M>
  std::vector<M> all() const {
    std::vector<M> some;
    for (const messages::RolloutEvents& event : events)
      if (const auto* m = std::get_if<M>(&event)) some.push_back(*m);
    return some;
  }
  std::uint64_t bytes_max() const override { return room; }
  std::vector<messages::RolloutEvents> events;
  int refusals_left = 0;
  std::uint64_t room = actor::kBytesUnlimited;  // the largest message that is taken
};

inline std::uint64_t checksum_of(PolicyVersion version) {
  return 100 + static_cast<std::uint64_t>(version.value);
}

struct InPlace {  // how versions are read in place
  bool can = true;
  bool lose = false;  // a version that is held is withdrawn before it is installed
};

// Notes in which order it is told of a broadcast and asked for a version.
class NotingSubscriber final : public FakeWeightSubscriber {
 public:
  NotingSubscriber(std::shared_ptr<const FakeWeightBoard> board,
                   std::shared_ptr<std::vector<std::string>> calls, const InPlace* in_place)
      : FakeWeightSubscriber(std::move(board), 3), calls_(std::move(calls)), in_place_(in_place) {}
  void look_at(const wire::WeightSource& source) override {
    calls_->push_back("look at " + source.endpoint);
  }
  void expect(PolicyVersion version, std::uint64_t checksum,
              const wire::BroadcastPlace& place) override {
    calls_->push_back("expect " + std::to_string(version.value) + " of " +
                      std::to_string(checksum) + " at " + std::to_string(place.epoch) + "/" +
                      std::to_string(place.sequence));
  }
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override {
    calls_->push_back("begin " + std::to_string(version.value));
    return FakeWeightSubscriber::begin(version, buffer);
  }
  void cancel() override {
    calls_->push_back("cancel");
    FakeWeightSubscriber::cancel();
  }
  bool in_place() const override { return in_place_->can; }
  std::span<const std::byte> held() override {
    calls_->push_back("held");
    return std::span(&byte_, in_place_->lose ? 0 : 1);
  }

 private:
  const std::shared_ptr<std::vector<std::string>> calls_;
  const InPlace* const in_place_;
  const std::byte byte_{};
};

// A payload store in virtual time.
struct Store {
  actor::SimulatedExecutor* executor;
  std::vector<std::string> payloads;
  int failures_left = 0;
  Error failure{ErrorCode::kUnreachable, "no store"};
  int writes_open = 0;
  int writes_open_max = 0;

  void write(std::vector<std::string> batch, payload::WriteDone done) {
    writes_open_max = std::max(writes_open_max, ++writes_open);
    executor->at(executor->now() + 5ms, [this, batch = std::move(batch), done = std::move(done)] {
      --writes_open;
      if (failures_left > 0) return --failures_left, done(failure);
      std::vector<wire::PayloadRef> refs;
      for (const std::string& payload : batch) {
        refs.push_back({.node = "n", .offset = payloads.size(), .bytes = payload.size()});
        payloads.push_back(payload);
      }
      done(std::move(refs));
    });
  }
};

struct Fixture {
  explicit Fixture(std::uint64_t seed = 1, FakeEngineConfig engine = engine_config())
      : executor(seed), system(executor, [this](auto&, const Error& why) { failure = why; }) {
    store.executor = &executor;
    const auto heard_target = std::shared_ptr<actor::Target<messages::RolloutEvents>>(heard);
    ref = system.spawn<RolloutActor>("j/rollout/0", [=, this] {
      return std::make_unique<RolloutActor>(
          RolloutConfig{
              .self = {"j/rollout/0", Incarnation{3}}, .group_size = 4, .max_num_seqs = 16},
          std::make_unique<FakeEngine>(engine),
          std::make_shared<NotingSubscriber>(board, weight_calls, &in_place),
          RolloutActor::Connections{
              .exchange =
                  actor::Ref<messages::RolloutEvents>({"exchange/j", Incarnation{1}}, heard_target),
              .write = [this](auto batch, auto done) { store.write(std::move(batch), done); },
              .progress = [this](const char* phase, Time) { phases.emplace_back(phase); }});
    });
    EXPECT_EQ(ref.tell(StartRollout{actor::narrow<std::variant<Step>>(ref)}), Delivery::kAccepted);
  }
  ~Fixture() {  // the actor refers to itself, so it has to end
    system.stop("j/rollout/0");
    executor.run_until([this] { return !system.alive("j/rollout/0"); }, 1s);
  }
  static FakeEngineConfig engine_config() {
    return {.engine = {.args = {.max_num_seqs = 16}, .max_response_length = 32},
            .step_time = 1ms,
            .sequence_time = 10us,
            .install_time = 2ms,
            .unservable_prompt = "too long"};
  }
  void tell(RolloutActor::Inbox message) {
    EXPECT_EQ(ref.tell(std::move(message)), Delivery::kAccepted);
  }
  void publish(PolicyVersion version, PolicyVersion oldest) {
    board->publish(version, oldest, checksum_of(version));
    tell(messages::NewVersion{.version = version,
                              .oldest_retained = oldest,
                              .source = {},
                              .broadcast = {},
                              .checksum = checksum_of(version)});
  }
  void assign(std::uint64_t first, std::uint64_t count,
              std::optional<PolicyVersion> version = std::nullopt) {
    messages::Assign work;
    for (std::uint64_t i = first; i < first + count; ++i)
      work.groups.push_back({.group = GroupId{i},
                             .attempt = 1,
                             .seed = i,
                             .n = 4,
                             .prompt = "p" + std::to_string(i),
                             .version = version});
    tell(std::move(work));
  }
  std::map<GroupId, messages::GroupHeader> generated() const {
    std::map<GroupId, messages::GroupHeader> groups;
    for (const messages::Generated& message : heard->all<messages::Generated>())
      for (const messages::GroupHeader& header : message.groups) {
        const bool fresh = groups.emplace(header.group, header).second;
        EXPECT_TRUE(fresh) << "RO-2";
      }
    return groups;
  }
  bool run_until_generated(std::size_t groups) {
    return executor.run_until([&] { return generated().size() >= groups; }, 60s);
  }

  actor::SimulatedExecutor executor;
  actor::System system;
  std::optional<Error> failure;
  InPlace in_place;
  std::shared_ptr<FakeWeightBoard> board = std::make_shared<FakeWeightBoard>();
  std::shared_ptr<std::vector<std::string>> weight_calls =
      std::make_shared<std::vector<std::string>>();
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  Store store{};
  actor::Ref<RolloutActor::Inbox> ref;
  std::vector<std::string> phases;  // as the actor told them
};

}  // namespace tandem::rollout
