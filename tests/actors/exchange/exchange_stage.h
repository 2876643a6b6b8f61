// The exchange against peers that a test plays: what each is sent is kept, and what the exchange
// refuses to hear is noted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/exchange/exchange.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/wire/codec.h"
#include "tests/actors/controller/scenario.h"

namespace tandem::actors {

using actor::Address;

inline const Sender kRollout{"job-1/rollout/0", Incarnation{1}};
inline const Sender kReward{"job-1/reward/0", Incarnation{2}};
inline const Sender kLearner{"job-1/learner/0", Incarnation{3}};

inline constexpr std::int32_t kCapacity =
    24;  // the twelve groups of plain_job that may be admitted

struct StageLinks {                                  // as all links of the stage are now
  std::uint64_t bytes_max = actor::kBytesUnlimited;  // of a message
  bool full = false;
};

// Takes what the exchange sends to one address and keeps it.
template <class Inbox>
class Mailbag final : public actor::Target<Inbox> {
 public:
  Mailbag(const StageLinks& link, std::function<void(const Inbox&)> take)
      : link_(link), take_(std::move(take)) {}
  actor::Delivery post(Inbox message) override {
    if (link_.full) return actor::Delivery::kFull;
    if (bytes(message) > link_.bytes_max) return actor::Delivery::kTooLarge;
    take_(message);
    return actor::Delivery::kAccepted;
  }
  std::uint64_t bytes_max() const override { return link_.bytes_max; }
  Error too_large(const Inbox& message) const override {
    return {ErrorCode::kInvalid, std::to_string(bytes(message)) + " bytes"};
  }

 private:
  static std::uint64_t bytes(const Inbox& message) {
    if constexpr (std::is_same_v<Inbox, ExchangeNotices>)
      return 0;
    else
      return std::visit([](const auto& m) { return wire::encode(m).size(); }, message);
  }
  const StageLinks& link_;
  const std::function<void(const Inbox&)> take_;
};

class Stage {
 public:
  explicit Stage(SimulatedJob what = plain_job(1)) : job(std::move(what)) {
    record.now_ms = [this] { return executor.now().ns / 1'000'000; };
    const ExchangeLinks links{.rollout = keep(to_rollout),
                              .reward = keep(to_reward),
                              .learner = keep(to_learner),
                              .broadcast = keep_broadcast(),
                              .controller = keep(to_controller)(Address{"controller", {}}),
                              .refuse = [this](const Address& who, const std::string& why) {
                                refused.push_back(who.name + ": " + why);
                              }};
    ref = system.spawn<Exchange>("exchange", [this, links] {
      auto made = std::make_unique<Exchange>(exchange_config(job, "job-1", false), links, record,
                                             payload_store);
      exchange = made.get();
      return made;
    });
  }

  void tell(Exchange::Inbox message) {
    ASSERT_EQ(ref.tell(std::move(message)), actor::Delivery::kAccepted);
    run();
  }
  void run(Duration time = Duration{0}) {
    executor.at(executor.now() + time, [] {});  // virtual time moves only to timers
    executor.run_until([] { return false; }, time);
    exchange->core().ledger().check_by_recount();
  }
  static std::uint64_t checksum_of(PolicyVersion version) {
    return 100 + static_cast<std::uint64_t>(version.value);
  }
  void install(const Sender& rollout, PolicyVersion version) {
    tell(Installed{.from = rollout, .version = version, .checksum = checksum_of(version)});
  }
  // What the stage's learner says of a version: the publisher keeps all, until a test clears them.
  Publication publication(PolicyVersion version, PolicyVersion oldest_retained) {
    offered.insert(version);
    return {
        version, oldest_retained, checksum_of(version), 0, 0, {}, {offered.begin(), offered.end()}};
  }
  LearnerUp learner_up(const Sender& learner, std::optional<StepId> checkpoint) const {
    return {learner, checkpoint, {}, {offered.begin(), offered.end()}};
  }
  // All three up, version 0 published and installed.
  void begin() {
    tell(LearnerUp{kLearner, {}});
    tell(Published{kLearner, publication(kInitialWeights, kInitialWeights)});
    tell(WarmStarted{.from = kLearner, .publication = publication({0}, kInitialWeights)});
    tell(CheckpointSaved{kLearner, StepId{0}, "step-0", "sha"});
    tell(RolloutUp{kRollout, kCapacity});
    tell(RewardUp{kReward, 100});
    install(kRollout, PolicyVersion{0});
  }
  std::vector<GroupWork> assigned() const {
    std::vector<GroupWork> works;
    for (const RolloutInbox& message : to_rollout)
      if (const auto* assign = std::get_if<Assign>(&message))
        works.insert(works.end(), assign->groups.begin(), assign->groups.end());
    return works;
  }
  void generate(const GroupWork& work, PolicyVersion version) {
    GroupHeader header{
        .group = work.group, .attempt = work.attempt, .payload = payload_store.put("x")};
    header.trajectories.assign(static_cast<std::size_t>(work.n),
                               {.oldest = version, .newest = version, .completion_tokens = 3});
    tell(Generated{kRollout, {header}});
  }
  // The first completion of each group earns `first`, the second nothing.
  void score_everything(float first = 1) {
    for (const RewardInbox& message : std::exchange(to_reward, {}))
      if (const auto* work = std::get_if<ScoreGroups>(&message))
        for (const GroupToScore& group : work->groups)
          tell(GroupsScored{kReward, {{group.group, group.attempt, {Scored{first}, Scored{0}}}}});
  }
  // Trains steps until `steps` are committed, all by version 0's rollout.
  void train(std::int64_t steps, const StepReport& report = {}, float first_reward = 1) {
    const auto committed = [&] { return exchange->core().ledger().next_commit().value; };
    while (committed() < steps) {
      const std::int64_t before = committed();
      const auto works = assigned();
      for (; works_done < works.size(); ++works_done)
        generate(works[works_done], PolicyVersion{before});
      score_everything(first_reward);
      commit(kLearner, report);
      ASSERT_GT(committed(), before);
    }
  }
  const TrainStep* step_sent() const {
    for (auto it = to_learner.rbegin(); it != to_learner.rend(); ++it)
      if (const auto* step = std::get_if<TrainStep>(&*it)) return step;
    return nullptr;
  }
  void commit(const Sender& learner = kLearner, const StepReport& report = {}) {
    ASSERT_NE(step_sent(), nullptr);
    const TrainStep step = *step_sent();
    const PolicyVersion version{step.step.value + 1};
    StepCommitted committed{
        .from = learner, .step = step.step, .checksum = checksum_of(version), .report = report};
    if (step.publish) {
      committed.publication = publication(version, step.retain);
      committed.publication->broadcast = place;
    }
    tell(committed);
    install(kRollout, version);
  }
  RunTotals newest_totals() {  // of the journal
    std::optional<RunTotals> newest;
    const auto read = record.replay([&](const JournalEntry& entry) {
      if (const auto* noted = std::get_if<TotalsNoted>(&entry.event)) newest = noted->totals;
    });
    EXPECT_TRUE(read);
    return newest.value();
  }
  std::optional<JobEnded> ended() const {
    for (const ExchangeNotices& notice : to_controller)
      if (const auto* end = std::get_if<JobEnded>(&notice)) return *end;
    return std::nullopt;
  }
  template <class M, class Inbox>
  static std::vector<M> only(const std::vector<Inbox>& messages) {
    std::vector<M> found;
    for (const Inbox& message : messages)
      if (const auto* one = std::get_if<M>(&message)) found.push_back(*one);
    return found;
  }

  std::set<PolicyVersion> offered;
  std::size_t works_done = 0;  // of assigned(), by train()
  const SimulatedJob job;
  actor::SimulatedExecutor executor{1};
  MemoryRecord record;
  MemoryPayloads payload_store;
  std::vector<RolloutInbox> to_rollout;
  std::vector<RewardInbox> to_reward;
  std::vector<LearnerInbox> to_learner;
  std::vector<std::pair<Address, BroadcastInbox>> to_broadcast;
  std::optional<wire::BroadcastPlace> place;  // of what is published from now on
  std::vector<ExchangeNotices> to_controller;
  std::vector<std::string> refused;  // "job-1/rollout/0: Generated: …"
  StageLinks link;
  actor::System system{executor, nullptr};
  actor::Ref<Exchange::Inbox> ref;
  Exchange* exchange = nullptr;

 private:
  template <class Inbox>
  std::function<actor::Ref<Inbox>(const Address&)> keep(std::vector<Inbox>& kept) {
    return [this, &kept](const Address& to) {
      return actor::Ref<Inbox>(
          to, std::make_shared<Mailbag<Inbox>>(link, [this, &kept](const Inbox& m) {
            check_journalled(m);
            kept.push_back(m);
          }));
    };
  }
  std::function<actor::Ref<BroadcastInbox>(const Address&)> keep_broadcast() {
    return [this](const Address& to) {
      return actor::Ref<BroadcastInbox>(
          to, std::make_shared<Mailbag<BroadcastInbox>>(
                  link, [this, to](const BroadcastInbox& m) { to_broadcast.emplace_back(to, m); }));
    };
  }
  template <class Inbox>
  void check_journalled(const Inbox& message) const {  // EX-J
    if constexpr (std::is_same_v<Inbox, RolloutInbox>) {
      const auto* assign = std::get_if<Assign>(&message);
      if (!assign) return;
      for (const GroupWork& work : assign->groups) {
        const bool journalled = std::any_of(
            record.events.begin(), record.events.end(), [&](const JournalledRow& event) {
              return event.kind == "rolling" && event.lease == work.attempt;
            });
        EXPECT_TRUE(journalled) << "EX-J";
      }
    }
    if constexpr (std::is_same_v<Inbox, LearnerInbox>) {
      if (std::holds_alternative<SaveCheckpoint>(message)) {
        EXPECT_EQ(record.entries_on_disk, record.entries.size()) << "EX-J, and a power cut";
      }
    }
  }
};

}  // namespace tandem::actors
