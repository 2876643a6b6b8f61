#include "actors/replay/journal_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/actors/exchange/state/every_event.h"
#include "tests/actors/replay/journal_of_batches.h"
#include "tests/actors/runs/recorded_batches.h"

namespace tandem::replay {
namespace {

using runs::recorded_batch;

std::vector<GroupId> groups_of(const JournalStep& step) {
  std::vector<GroupId> groups;
  for (const JournalGroup& group : step.groups) groups.push_back(group.group);
  return groups;
}

TEST(JournalSteps, AStepHasItsGroupsInOrderWithTheirScores) {
  const auto batch = recorded_batch(0, 3);
  JournalSteps journal;
  take_all(journal, events_of(batch, 77));
  ASSERT_EQ(journal.steps().size(), 1u);
  const JournalStep& step = journal.steps().begin()->second;
  EXPECT_EQ(step.checksum, 77u);
  ASSERT_EQ(step.groups.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(step.groups[i].group, batch.step.groups[i].group);
    EXPECT_EQ(step.groups[i].rewards, batch.step.groups[i].rewards);
    EXPECT_EQ(step.groups[i].payload_checksum, batch.step.groups[i].payload.checksum);
  }
}

// A lease that ended lets a group be generated and scored once more.
TEST(JournalSteps, TheNewestGenerationOfAGroupCounts) {
  auto batch = recorded_batch(0, 1);
  auto events = events_of(batch, 1);
  batch.step.groups[0].payload.checksum = 5;
  batch.step.groups[0].rewards = {7, 8};
  const auto again = events_of(batch, 2);
  events.insert(events.begin() + 2, again.begin(), again.begin() + 2);
  JournalSteps journal;
  take_all(journal, events);
  const JournalGroup& group = journal.steps().at(StepId{0}).groups.at(0);
  EXPECT_EQ(group.payload_checksum, 5u);
  EXPECT_EQ(group.rewards, (std::vector<float>{7, 8}));
}

TEST(JournalSteps, AStepThatALearnerRepeatsStaysWhatItWas) {
  JournalSteps journal;
  take_all(journal, events_of(recorded_batch(0, 2), 7));
  journal.take(exchange::StepTrained{.step = StepId{0}, .learner = {}, .checksum = 7});
  EXPECT_EQ(journal.steps().at(StepId{0}).groups.size(), 2u);
}

// Steps 0 to 3 are trained with checkpoints 2 and 4; the run goes on from 2 and trains others.
TEST(JournalSteps, WhatARunWentBackFromDoesNotCount_RJ1) {
  JournalSteps journal;
  for (int s = 0; s < 4; ++s) take_all(journal, events_of(recorded_batch(s, 2), 10 + s));
  journal.take(exchange::CheckpointKept{StepId{2}, "step-2", "two"});
  journal.take(exchange::CheckpointKept{StepId{4}, "step-4", "four"});
  journal.take(exchange::RunResumed{.checkpoint = StepId{2}});
  EXPECT_EQ(journal.steps().size(), 2u);
  EXPECT_EQ(journal.digests(), (std::map<StepId, std::string>{{StepId{2}, "two"}}));
  auto other = recorded_batch(9, 3);
  other.step.step = StepId{2};
  take_all(journal, events_of(other, 99));
  EXPECT_EQ(journal.steps().rbegin()->first, StepId{2});
  EXPECT_EQ(journal.steps().at(StepId{2}).checksum, 99u);
  EXPECT_EQ(groups_of(journal.steps().at(StepId{2})).front(), other.step.groups[0].group);
}

TEST(JournalSteps, TheVersionsBeforeTheFirstStepHaveTheirChecksums) {
  JournalSteps journal;
  EXPECT_FALSE(journal.checksum(kInitialWeights));
  journal.take(exchange::VersionPublished{
      .who = {}, .publication = {.version = kInitialWeights, .checksum = 4}});
  journal.take(exchange::VersionPublished{
      .who = {}, .publication = {.version = PolicyVersion{0}, .checksum = 5}});
  EXPECT_EQ(journal.checksum(kInitialWeights), 4u);
  EXPECT_EQ(journal.checksum(PolicyVersion{0}), 5u);
  EXPECT_FALSE(journal.checksum(PolicyVersion{1}));
}

// The journal's first events may be summed up, wherever that ends.
TEST(JournalSteps, AStepOfWhichAPartIsMissingIsNoStep) {
  std::vector<exchange::JournalEvent> events{exchange::RunBegan{}};
  // The groups of a step are scored while the step before is trained.
  for (int s = 0; s < 4; ++s) {
    auto more = events_of(recorded_batch(s, 3), 10 + s);
    if (s < 3) {  // the first group of the next step came before those of this one
      auto early = events_of(recorded_batch(s + 1, 3), 0);
      more.insert(more.begin(), early.begin(), early.begin() + 2);
    }
    if (s > 0) more.erase(more.begin() + (s < 3 ? 2 : 0), more.begin() + (s < 3 ? 4 : 2));
    if (s > 0) {  // the last two of a step are its batch
      more.insert(more.end() - 2, events.end() - 2, events.end());
      events.resize(events.size() - 2);
    }
    events.insert(events.end(), more.begin(), more.end());
  }
  JournalSteps whole;
  take_all(whole, events);
  ASSERT_EQ(whole.steps().size(), 4u);
  std::set<std::size_t> sizes;
  for (std::size_t cut = 1; cut <= events.size(); ++cut) {
    JournalSteps rest;
    take_all(rest, {events.begin() + static_cast<std::ptrdiff_t>(cut), events.end()});
    sizes.insert(rest.steps().size());
    for (const auto& [step, told] : rest.steps()) {
      const JournalStep& wanted = whole.steps().at(step);
      ASSERT_EQ(groups_of(told), groups_of(wanted)) << "from event " << cut;
      for (std::size_t i = 0; i < told.groups.size(); ++i) {
        EXPECT_EQ(told.groups[i].payload_checksum, wanted.groups[i].payload_checksum);
        EXPECT_EQ(told.groups[i].rewards, wanted.groups[i].rewards);
      }
    }
    const std::int64_t first = rest.steps().empty() ? 4 : rest.steps().begin()->first.value;
    EXPECT_EQ(std::ssize(rest.steps()), 4 - first) << "no gaps";
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{0, 1, 2, 4}));
}

// A journal that somebody changed is read to its end: what is missing is told by the comparison.
TEST(JournalSteps, AnyEventsInAnyOrderAreTaken_RJ2) {
  auto events = exchange::every_event();
  JournalSteps forward, backward;
  take_all(forward, events);
  std::ranges::reverse(events);
  take_all(backward, events);
  JournalSteps unknown;
  unknown.take(exchange::RunBegan{});
  unknown.take(exchange::StepTrained{
      .step = StepId{0}, .learner = {}, .checksum = 1, .groups = {GroupId{4}}});
  EXPECT_EQ(unknown.steps().at(StepId{0}).groups.at(0).payload_checksum, 0u);
  EXPECT_TRUE(unknown.steps().at(StepId{0}).groups.at(0).rewards.empty());
}

}  // namespace
}  // namespace tandem::replay
