// The exchange against peers that a test plays: the stage keeps every message that a peer is sent,
// and notes each message that the exchange refuses.
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
#include "tests/actors/exchange/mailbag.h"

namespace tandem::exchange {

using messages::GroupWork;
using messages::StepReport;
using messages::TrainStep;

inline const ActorId kRollout{"job-1/rollout/0", Incarnation{1}};
inline const ActorId kReward{"job-1/reward/0", Incarnation{2}};
inline const ActorId kLearner{"job-1/learner/0", Incarnation{3}};

inline constexpr std::int32_t kCapacity = 24;  // plain_job may have twelve groups admitted

class Stage {
 public:
  explicit Stage(controller::SimulatedJob what = controller::plain_job(1)) : job(std::move(what)) {
    record.now_ms = [this] { return executor.now().ns / 1'000'000; };
    open({});
  }

  // The exchange dies, and another one goes on from its journal: nobody has said anything to it.
  void follow() {
    system.stop("exchange");
    executor.run_until([this] { return !system.alive("exchange"); }, std::chrono::seconds(1));
    auto before = record.predecessor();
    payload_store.reopen(before.state.facts().flow);
    open(std::move(before));
    tell(Begin{});
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
  void install(const ActorId& rollout, PolicyVersion version) {
    tell(
        messages::Installed{.from = rollout, .version = version, .checksum = checksum_of(version)});
  }
  // The stage's learner's message about a version: the publisher keeps all, until a test clears
  // them.
  messages::Publication publication(PolicyVersion version, PolicyVersion oldest_retained) {
    offered.insert(version);
    return {
        version, oldest_retained, checksum_of(version), 0, 0, {}, {offered.begin(), offered.end()}};
  }
  messages::LearnerUp learner_up(const ActorId& learner, std::optional<StepId> checkpoint) const {
    return {learner, checkpoint, {}, {offered.begin(), offered.end()}};
  }
  // Brings all three actors up, with version 0 published and installed.
  void begin() {
    tell(messages::LearnerUp{kLearner, {}});
    tell(messages::Published{kLearner, publication(kInitialWeights, kInitialWeights)});
    tell(messages::WarmStarted{.from = kLearner, .publication = publication({0}, kInitialWeights)});
    tell(messages::CheckpointSaved{kLearner, StepId{0}, "step-0", "sha"});
    tell(messages::RolloutUp{kRollout, kCapacity});
    tell(messages::RewardUp{kReward, 100});
    install(kRollout, PolicyVersion{0});
  }
  std::vector<GroupWork> assigned() const {
    std::vector<GroupWork> works;
    for (const messages::RolloutInbox& message : to_rollout)
      if (const auto* assign = std::get_if<messages::Assign>(&message))
        works.insert(works.end(), assign->groups.begin(), assign->groups.end());
    return works;
  }
  // What the rollout stores of a group, and tells of.
  messages::GroupHeader stored(const GroupWork& work, PolicyVersion version) {
    const messages::GroupPayload payload{.group = work.group, .attempt = work.attempt};
    messages::GroupHeader header{.group = work.group,
                                 .attempt = work.attempt,
                                 .payload = payload_store.put(wire::encode(payload))};
    header.trajectories.assign(static_cast<std::size_t>(work.n),
                               {.oldest = version, .newest = version, .completion_tokens = 3});
    return header;
  }
  void generate(const GroupWork& work, PolicyVersion version) {
    tell(messages::Generated{kRollout, {stored(work, version)}});
  }
  // The first completion of each group earns `first`, the second nothing.
  void score_everything(float first = 1) {
    for (const messages::RewardInbox& message : std::exchange(to_reward, {}))
      if (const auto* work = std::get_if<messages::ScoreGroups>(&message))
        for (const messages::GroupToScore& group : work->groups)
          tell(messages::GroupsScored{
              kReward,
              {{group.group, group.attempt, {messages::Scored{first}, messages::Scored{0}}}}});
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
  void commit(const ActorId& learner = kLearner, const StepReport& report = {}) {
    ASSERT_NE(step_sent(), nullptr);
    const TrainStep step = *step_sent();
    const PolicyVersion version{step.step.value + 1};
    messages::StepCommitted committed{
        .from = learner, .step = step.step, .checksum = checksum_of(version), .report = report};
    if (step.publish) {
      committed.publication = publication(version, step.retain);
      committed.publication->broadcast = place;
    }
    tell(committed);
    install(kRollout, version);
  }
  RunTotals newest_totals() {  // the newest totals in the journal
    std::optional<RunTotals> newest;
    for (const JournalEntry& entry : record.entries)
      if (const auto* noted = std::get_if<TotalsNoted>(&entry.event)) newest = noted->totals;
    return newest.value();
  }
  std::optional<messages::JobEnded> ended() const {
    for (const messages::ExchangeNotices& notice : to_controller)
      if (const auto* end = std::get_if<messages::JobEnded>(&notice)) return *end;
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
  std::size_t works_done = 0;  // how many of assigned() train() has done
  const controller::SimulatedJob job;
  actor::SimulatedExecutor executor{1};
  controller::MemoryRecord record;
  controller::MemoryPayloads payload_store;
  std::vector<messages::RolloutInbox> to_rollout;
  std::vector<messages::RewardInbox> to_reward;
  std::vector<messages::LearnerInbox> to_learner;
  std::vector<std::pair<ActorId, messages::BroadcastInbox>> to_broadcast;
  // The broadcast place of versions published from now on.
  std::optional<wire::BroadcastPlace> place;
  std::vector<messages::ExchangeNotices> to_controller;
  std::vector<std::string> refused;  // "job-1/rollout/0: Generated: …"
  StageLinks link;
  actor::System system{executor, nullptr};
  actor::Ref<Exchange::Inbox> ref;
  Exchange* exchange = nullptr;

 private:
  void open(std::optional<Predecessor> before) {
    Dials dials;
    std::get<Dial<messages::RolloutPeer>>(dials) = keep(to_rollout);
    std::get<Dial<messages::LearnerPeer>>(dials) = keep(to_learner);
    std::get<Dial<messages::RewardPeer>>(dials) = keep(to_reward);
    std::get<Dial<messages::BroadcastPeer>>(dials) = keep_broadcast();
    const ExchangeLinks links{.dials = dials,
                              .controller = keep(to_controller)(ActorId{"controller", {}}),
                              .refuse = [this](const ActorId& who, const std::string& why) {
                                refused.push_back(who.name + ": " + why);
                              }};
    ExchangeConfig config = controller::exchange_config(job, "job-1", false);
    config.epoch = Epoch{++epoch_};
    ref = system.spawn<Exchange>("exchange", [this, links, config, before] {
      auto made = before ? std::make_unique<Exchange>(config, links, record, payload_store, *before,
                                                      executor.now())
                         : std::make_unique<Exchange>(config, links, record, payload_store);
      exchange = made.get();
      return made;
    });
  }
  template <class Inbox>
  std::function<actor::Ref<Inbox>(const ActorId&)> keep(std::vector<Inbox>& kept) {
    return [this, &kept](const ActorId& to) {
      return actor::Ref<Inbox>(
          to, std::make_shared<Mailbag<Inbox>>(link, [this, &kept](const Inbox& m) {
            check_journalled(m);
            kept.push_back(m);
          }));
    };
  }
  std::function<actor::Ref<messages::BroadcastInbox>(const ActorId&)> keep_broadcast() {
    return [this](const ActorId& to) {
      return actor::Ref<messages::BroadcastInbox>(
          to, std::make_shared<Mailbag<messages::BroadcastInbox>>(
                  link, [this, to](const messages::BroadcastInbox& m) {
                    to_broadcast.emplace_back(to, m);
                  }));
    };
  }
  template <class Inbox>
  void check_journalled(const Inbox& message) const {  // EX-1
    if constexpr (std::is_same_v<Inbox, messages::RolloutInbox>) {
      const auto* assign = std::get_if<messages::Assign>(&message);
      if (!assign) return;
      for (const GroupWork& work : assign->groups) {
        const bool journalled =
            std::any_of(record.events.begin(), record.events.end(),
                        [&](const controller::JournalledRow& event) {
                          return event.kind == "rolling" && event.lease == work.attempt;
                        });
        EXPECT_TRUE(journalled) << "EX-1";
      }
    }
    if constexpr (std::is_same_v<Inbox, messages::LearnerInbox>) {
      if (std::holds_alternative<messages::SaveCheckpoint>(message)) {
        EXPECT_EQ(record.entries_on_disk, record.entries.size()) << "EX-1, and a power cut";
      }
    }
  }

  std::uint64_t epoch_ = 0;
};

}  // namespace tandem::exchange
