// The exchange of a job whose weights are broadcast, against ranks that the test plays: the
// messages to each, the exchange's handling of wrong and late answers, and the lines that people
// see.
//
// Tests actors/exchange/broadcasts.h.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;
using wire::BroadcastPlace;

const ActorId kSecond{"job-1/rollout/1", Incarnation{7}};
const std::string kUniqueId(128, 'u');
constexpr std::uint64_t kLayout = 42;

controller::SimulatedJob broadcasting_job() {
  controller::SimulatedJob job = controller::plain_job(1);
  job.exchange.broadcasts = scheduler::BroadcastLimits{.forming_max = 30s};
  return job;
}

struct Broadcasting : Stage {
  Broadcasting() : Stage(broadcasting_job()) { begin(); }

  // The newest message of this type to this actor.
  template <class M>
  std::optional<M> last(const ActorId& to) const {
    for (auto it = to_broadcast.rbegin(); it != to_broadcast.rend(); ++it)
      if (it->first == to)
        if (const auto* message = std::get_if<M>(&it->second)) return *message;
    return std::nullopt;
  }
  template <class M>
  int count(const ActorId& to) const {
    return static_cast<int>(std::ranges::count_if(to_broadcast, [&](const auto& sent) {
      return sent.first == to && std::holds_alternative<M>(sent.second);
    }));
  }
  void bring_up_second() {
    tell(messages::RolloutUp{kSecond, 1});  // no room for a group
    install(kSecond, PolicyVersion{0});
    tell(messages::BroadcastUp{kSecond, 22809});
  }
  // The epoch that the learner was asked to open last, formed by these rollouts and in use.
  std::uint64_t form(const std::vector<ActorId>& rollouts, const ActorId& learner = kLearner) {
    const auto open = last<messages::OpenEpoch>(learner);
    EXPECT_TRUE(open.has_value());
    if (!open) return 0;
    EXPECT_EQ(open->size, static_cast<std::int32_t>(rollouts.size()) + 1);
    tell(messages::EpochOpened{learner, open->epoch, kUniqueId, kLayout});
    for (const ActorId& rank : rollouts) tell(messages::EpochJoined{rank, open->epoch});
    tell(messages::EpochJoined{learner, open->epoch});
    EXPECT_EQ(last<messages::UseEpoch>(learner).value_or(messages::UseEpoch{}).epoch, open->epoch);
    tell(messages::EpochInUse{learner, open->epoch});
    return open->epoch;
  }
  std::uint64_t form_first() {
    tell(messages::BroadcastUp{kLearner, 22809});
    tell(messages::BroadcastUp{kRollout, 22809});
    return form({kRollout});
  }
  void answer_leave(const ActorId& rank) {
    if (const auto leave = last<messages::LeaveEpoch>(rank))
      tell(messages::EpochLeft{rank, leave->epoch});
  }
  std::vector<messages::NewVersion> offers() { return only<messages::NewVersion>(to_rollout); }
  std::vector<messages::Wait> waits() {
    std::optional<messages::ExchangeReport> report;
    const actor::ReplyTo<messages::ExchangeReport> reply(
        [&](Result<messages::ExchangeReport> answer) { report = *std::move(answer); });
    tell(actor::Ask<messages::GetExchangeReport>{{}, reply});
    return report ? report->status.waits : std::vector<messages::Wait>{};
  }
  void commit_one() {
    for (const messages::GroupWork& work : assigned())
      if (exchange->core().ledger().find(work.group) &&
          exchange->core().ledger().find(work.group)->state == scheduler::GroupState::kRolling)
        generate(work, PolicyVersion{exchange->core().ledger().next_commit().value});
    score_everything();
    to_rollout.clear();
    commit();
  }
};

TEST(ExchangeBroadcast, AnEpochFormsAndItsIdAndLayoutReachTheRollouts) {
  Broadcasting stage;
  const std::uint64_t epoch = stage.form_first();
  const auto join = stage.last<messages::JoinEpoch>(kRollout);
  ASSERT_TRUE(join.has_value());
  EXPECT_EQ(join->epoch, epoch);
  EXPECT_EQ(join->unique_id, kUniqueId);
  EXPECT_EQ(join->layout_hash, kLayout);
  EXPECT_EQ(join->rank, 1);
  EXPECT_EQ(join->size, 2);
  const auto events = Stage::only<messages::ExchangeEvent>(stage.to_controller);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_NE(events[0].message.find("broadcast to 1 rollout"), std::string::npos)
      << events[0].message;
  EXPECT_TRUE(stage.refused.empty());
}

TEST(ExchangeBroadcast, APlaceIsToldOnceToThoseWhomTheBroadcastReaches_EXP) {
  Broadcasting stage;
  const std::uint64_t epoch = stage.form_first();
  stage.tell(messages::RolloutUp{kSecond, 1});  // takes no part
  stage.install(kSecond, PolicyVersion{0});
  stage.place = BroadcastPlace{epoch, 1};
  stage.commit_one();
  auto offers = stage.offers();
  ASSERT_EQ(offers.size(), 2u) << "in the order of their names";
  EXPECT_EQ(offers[0].version, PolicyVersion{1});
  EXPECT_EQ(offers[0].broadcast, stage.place);
  EXPECT_EQ(offers[1].broadcast, std::nullopt);
  for (const messages::NewVersion& offer : offers)
    EXPECT_EQ(offer.checksum, Stage::checksum_of({1}));

  // The same version once more, from the learner's next incarnation: no broadcast of that
  // incarnation is left.
  stage.to_rollout.clear();
  stage.tell(messages::ActorDown{kLearner, "killed"});
  messages::LearnerUp next = stage.learner_up({kLearner.name, Incarnation{4}}, StepId{0});
  next.source = wire::WeightSource{"host", "10.0.0.1:2", "a", "b"};
  stage.tell(next);
  offers = stage.offers();
  ASSERT_EQ(offers.size(), 2u);
  for (const messages::NewVersion& offer : offers) {
    EXPECT_EQ(offer.version, PolicyVersion{1});
    EXPECT_EQ(offer.broadcast, std::nullopt);
    EXPECT_EQ(offer.checksum, Stage::checksum_of({1}));
  }
}

TEST(ExchangeBroadcast, ARolloutThatComesAfterAPublicationFetchesIt_EXP) {
  Broadcasting stage;
  const std::uint64_t epoch = stage.form_first();
  stage.place = BroadcastPlace{epoch, 1};
  stage.commit_one();
  stage.to_rollout.clear();
  stage.tell(messages::RolloutUp{kSecond, 1});
  const auto offers = stage.offers();
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].broadcast, std::nullopt);
}

TEST(ExchangeBroadcast, AFailureEndsTheEpochForAllAndIsOneEvent) {
  Broadcasting stage;
  const std::uint64_t epoch = stage.form_first();
  stage.to_controller.clear();
  stage.tell(messages::EpochFailed{kRollout, epoch, "the switch is off"});
  stage.tell(messages::EpochFailed{kLearner, epoch, "rank 1 is gone"});
  stage.run(2s);
  EXPECT_EQ(stage.count<messages::LeaveEpoch>(kRollout), 1) << "BG-3";
  EXPECT_EQ(stage.count<messages::LeaveEpoch>(kLearner), 1) << "BG-3";
  const auto events = Stage::only<messages::ExchangeEvent>(stage.to_controller);
  ASSERT_EQ(events.size(), 1u) << "BC-2";
  EXPECT_NE(events[0].message.find("rollout/0: the switch is off"), std::string::npos)
      << events[0].message;
  stage.place = BroadcastPlace{epoch, 1};  // said before the learner heard of it
  stage.commit_one();
  ASSERT_EQ(stage.offers().size(), 1u);
  EXPECT_EQ(stage.offers()[0].broadcast, std::nullopt) << "whoever has left fetches";
  stage.answer_leave(kRollout);
  stage.answer_leave(kLearner);
  stage.run(5s);  // the next try comes by the exchange's own timer
  EXPECT_GT(stage.last<messages::OpenEpoch>(kLearner)->epoch, epoch);
}

TEST(ExchangeBroadcast, AHungRankCostsOneDeadlineAndIsNamed) {
  Broadcasting stage;
  stage.tell(messages::BroadcastUp{kRollout, 22809});
  stage.bring_up_second();
  stage.tell(messages::BroadcastUp{kLearner, 22809});
  const auto open = stage.last<messages::OpenEpoch>(kLearner);
  ASSERT_TRUE(open);
  stage.tell(messages::EpochOpened{kLearner, open->epoch, kUniqueId, kLayout});
  stage.tell(messages::EpochJoined{kRollout, open->epoch});
  for (int i = 0; i < 60; ++i) {  // kSecond says nothing
    stage.run(1s);
    for (const ActorId& rank : {kLearner, kRollout}) stage.answer_leave(rank);
  }
  EXPECT_GE(stage.count<messages::LeaveEpoch>(kRollout), 1);
  const std::vector<messages::Wait> waits = stage.waits();
  EXPECT_TRUE(std::ranges::any_of(waits, [](const messages::Wait& wait) {
    return wait.detail.find(kSecond.name) != std::string::npos;
  })) << "why it takes no part";
  EXPECT_GT(stage.last<messages::OpenEpoch>(kLearner)->epoch, open->epoch);
  EXPECT_EQ(stage.last<messages::OpenEpoch>(kLearner)->size, 2) << "BG-2: without it";
}

TEST(ExchangeBroadcast, ActorsThatEndOrDrainAreInNoFurtherEpoch) {
  Broadcasting stage;
  const std::uint64_t first = stage.form_first();
  stage.bring_up_second();
  stage.run(5s);
  const std::uint64_t second = stage.form({kRollout, kSecond});
  EXPECT_GT(second, first);
  stage.answer_leave(kRollout);
  stage.answer_leave(kLearner);
  stage.tell(messages::ActorDown{kSecond, "killed"});
  for (const ActorId& rank : {kLearner, kRollout}) stage.answer_leave(rank);
  stage.run(5s);
  const auto third = stage.last<messages::OpenEpoch>(kLearner);
  ASSERT_TRUE(third);
  EXPECT_GT(third->epoch, second);
  EXPECT_EQ(third->size, 2);
  const int asked = stage.count<messages::JoinEpoch>(kSecond);
  stage.tell(messages::BroadcastUp{kSecond, 22809});  // it was on its way
  stage.run(100s);
  EXPECT_EQ(stage.count<messages::JoinEpoch>(kSecond), asked) << "EX-6";
  EXPECT_TRUE(stage.refused.empty());
}

TEST(ExchangeBroadcast, ARolloutThatComesUpWhileItDrainsIsInNoEpoch_BG4) {
  Broadcasting stage;
  stage.tell(messages::BroadcastUp{kLearner, 22809});
  stage.tell(messages::DrainActor{kRollout, 60'000});
  stage.tell(messages::BroadcastUp{kRollout, 22809});
  EXPECT_FALSE(stage.last<messages::OpenEpoch>(kLearner).has_value());
}

TEST(ExchangeBroadcast, TheNextLearnerBeginsItsOwnEpochs) {
  Broadcasting stage;
  const std::uint64_t epoch = stage.form_first();
  stage.tell(messages::ActorDown{kLearner, "killed"});
  stage.answer_leave(kRollout);
  const ActorId next{kLearner.name, Incarnation{4}};
  stage.tell(messages::BroadcastUp{next, 22809});  // before LearnerUp: they are two actors
  stage.tell(stage.learner_up(next, StepId{0}));
  for (int i = 0; i < 70 && !stage.last<messages::OpenEpoch>(next); ++i) stage.run(1s);
  const auto open = stage.last<messages::OpenEpoch>(next);
  ASSERT_TRUE(open);
  EXPECT_GT(open->epoch, epoch);
  EXPECT_EQ(stage.form({kRollout}, next), open->epoch);
}

TEST(ExchangeBroadcast, WhatNoHonestRankSaysIsRefused_BC1) {
  const auto refuses = [](const char* what, auto say) {
    Broadcasting stage;
    const std::uint64_t epoch = stage.form_first();
    const std::size_t sent = stage.to_broadcast.size();
    say(stage, epoch);
    EXPECT_EQ(stage.refused.size(), 1u) << what;
    EXPECT_EQ(stage.to_broadcast.size(), sent) << what;
  };
  refuses("never came up", [](auto& s, auto e) { s.tell(messages::EpochJoined{kSecond, e}); });
  refuses("an epoch to come", [](auto& s, auto e) {
    s.tell(messages::EpochJoined{kRollout, e + 1});
  });
  refuses("epoch 0", [](auto& s, auto) { s.tell(messages::EpochFailed{kRollout, 0, "why"}); });
  refuses("opens as a rollout", [](auto& s, auto e) {
    s.tell(messages::EpochOpened{kRollout, e, kUniqueId, kLayout});
  });
  refuses("opens twice", [](auto& s, auto e) {
    s.tell(messages::EpochOpened{kLearner, e, kUniqueId, kLayout});
  });
  refuses("uses as a rollout", [](auto& s, auto e) { s.tell(messages::EpochInUse{kRollout, e}); });
  refuses("leaves unasked", [](auto& s, auto e) { s.tell(messages::EpochLeft{kRollout, e}); });
  refuses("progress of an epoch to come", [](auto& s, auto e) {
    s.tell(messages::EpochProgress{kRollout, e + 9, {}});
  });

  Broadcasting early;
  early.tell(messages::BroadcastUp{kLearner, 22809});
  early.tell(messages::BroadcastUp{kRollout, 22809});
  const std::uint64_t epoch =
      early.last<messages::OpenEpoch>(kLearner).value_or(messages::OpenEpoch{}).epoch;
  early.tell(messages::EpochJoined{kLearner, epoch});
  EXPECT_EQ(early.refused.size(), 1u) << "it is not open";
  early.tell(messages::EpochOpened{kLearner, epoch, kUniqueId, kLayout});
  early.tell(messages::EpochInUse{kLearner, epoch});
  EXPECT_EQ(early.refused.size(), 2u) << "it was not told to use it";

  Stage plain;
  plain.begin();
  plain.tell(messages::BroadcastUp{kRollout, 22809});
  EXPECT_EQ(plain.refused.size(), 1u) << "a job without broadcasts";
}

// The ranks have outlived an exchange: its epochs are over, and what is still said of them, in
// whichever order, has no effect.
TEST(ExchangeBroadcast, AnExchangeThatFollowsFormsANewEpoch_BG1_BC1) {
  Broadcasting stage;
  const std::uint64_t former = stage.form_first();
  for (const messages::GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  stage.score_everything();
  stage.follow();
  stage.to_broadcast.clear();
  stage.to_rollout.clear();
  const auto say_late = [&] {
    stage.tell(messages::EpochJoined{kRollout, former});
    stage.tell(messages::EpochFailed{kLearner, former, "the simulated network is down"});
    stage.tell(messages::EpochLeft{kRollout, former});
  };
  say_late();
  // A step that was trained meanwhile was broadcast in the former epoch, to nobody.
  messages::StepCommitted committed{.from = kLearner, .step = StepId{0}};
  committed.publication = stage.publication(PolicyVersion{1}, kInitialWeights);
  committed.publication->broadcast = BroadcastPlace{former, 9};
  stage.tell(committed);
  stage.tell(messages::LearnerBack{
      .from = kLearner, .step = StepId{1}, .training = {}, .source = {}, .warm_started = {}});
  stage.tell(messages::RolloutBack{.from = kRollout,
                                   .capacity = kCapacity,
                                   .installed = PolicyVersion{0},
                                   .checksum = Stage::checksum_of(PolicyVersion{0}),
                                   .held = {}});
  EXPECT_EQ(stage.exchange->core().ledger().next_commit(), StepId{1});
  ASSERT_FALSE(stage.offers().empty());
  EXPECT_EQ(stage.offers().back().version, PolicyVersion{1});
  EXPECT_FALSE(stage.offers().back().broadcast.has_value()) << "it is fetched";

  EXPECT_FALSE(stage.last<messages::OpenEpoch>(kLearner).has_value()) << "nobody is up here";
  stage.tell(messages::BroadcastUp{kLearner, 22809});
  stage.tell(messages::BroadcastUp{kRollout, 22809});
  EXPECT_EQ(stage.form({kRollout}), former + 1);
  say_late();
  EXPECT_TRUE(stage.refused.empty());
  EXPECT_EQ(stage.count<messages::LeaveEpoch>(kRollout), 0);
}

// It has met two exchanges, one soon after the other, and says so twice to the second one. Each
// time it has left all of its epochs.
TEST(ExchangeBroadcast, ARankThatComesUpAgainIsAskedIntoTheNextEpoch) {
  Broadcasting stage;
  const std::uint64_t first = stage.form_first();
  stage.tell(messages::BroadcastUp{kRollout, 22809});
  EXPECT_EQ(stage.last<messages::LeaveEpoch>(kLearner).value_or(messages::LeaveEpoch{}).epoch,
            first);
  EXPECT_EQ(stage.last<messages::LeaveEpoch>(kRollout).value_or(messages::LeaveEpoch{}).epoch,
            first);
  stage.answer_leave(kLearner);
  stage.tell(messages::BroadcastUp{kRollout, 22809});  // it has not heard the order
  stage.run(2s);
  EXPECT_EQ(stage.last<messages::OpenEpoch>(kLearner)->epoch, first) << "BG-2";
  stage.answer_leave(kRollout);
  stage.run(2s);
  EXPECT_EQ(stage.form({kRollout}), first + 1);
  EXPECT_TRUE(stage.refused.empty());
}

TEST(ExchangeBroadcast, AVersionIsPublishedInAnEpochThatTheLearnerWasToUse) {
  Broadcasting stage;
  const std::uint64_t epoch = stage.form_first();
  for (const messages::GroupWork& work : stage.assigned()) stage.generate(work, PolicyVersion{0});
  stage.score_everything();
  messages::StepCommitted committed{.from = kLearner, .step = StepId{0}};
  committed.publication = messages::Publication{.version = PolicyVersion{1},
                                                .oldest_retained = kInitialWeights,
                                                .broadcast = BroadcastPlace{epoch + 1, 1}};
  stage.tell(committed);
  EXPECT_EQ(stage.refused.size(), 1u);
  stage.commit();
  EXPECT_EQ(stage.exchange->core().ledger().next_commit(), StepId{1});
}

TEST(ExchangeBroadcast, WhoHoldsABroadcastUpIsAWait) {
  Broadcasting stage;
  const std::uint64_t epoch = stage.form_first();
  const auto progress = [&](const ActorId& rank, messages::EpochOperationState state,
                            std::int64_t ms) {
    stage.tell(messages::EpochProgress{rank, epoch, {{3, "version 7, bucket 2", 64, state, ms}}});
  };
  progress(kLearner, messages::EpochOperationState::kEntered, 5000);
  progress(kRollout, messages::EpochOperationState::kQueued, 0);
  const auto held_up = [&] {
    const std::vector<messages::Wait> waits = stage.waits();
    return std::ranges::any_of(waits, [](const messages::Wait& wait) {
      return wait.detail.find("rollout/0 has not entered") != std::string::npos;
    });
  };
  EXPECT_TRUE(held_up());
  stage.tell(messages::EpochProgress{kLearner, epoch, {}});
  EXPECT_FALSE(held_up());
}

TEST(ExchangeBroadcast, NothingIsSaidAfterTheJobsEnd) {
  Broadcasting stage;
  stage.form_first();
  stage.tell(messages::EndJob{messages::JobOutcome::kCancelled, "cancelled by the user"});
  ASSERT_TRUE(stage.ended());
  const std::size_t sent = stage.to_broadcast.size();
  stage.tell(messages::BroadcastUp{kSecond, 22809});
  stage.run(100s);
  EXPECT_EQ(stage.to_broadcast.size(), sent);
}

}  // namespace
}  // namespace tandem::exchange
