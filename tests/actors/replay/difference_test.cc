#include "actors/replay/difference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/actors/replay/journal_of_batches.h"
#include "tests/actors/runs/recorded_batches.h"

namespace tandem::replay {
namespace {

using runs::recorded_batch;
using runs::RecordedBatch;

JournalStep told_of(const RecordedBatch& batch) {
  JournalSteps journal;
  take_all(journal, events_of(batch, 1));
  return journal.steps().begin()->second;
}

// The difference between the journal of a batch and the batch after a change.
std::string found(const std::function<void(JournalStep&, RecordedBatch&)>& change) {
  RecordedBatch batch = recorded_batch(3, 3);
  JournalStep told = told_of(batch);
  change(told, batch);
  return difference(told, batch).value_or("");
}

TEST(Difference, ABatchAsTheJournalHasItHasNone) {
  EXPECT_EQ(found([](JournalStep&, RecordedBatch&) {}), "");
  EXPECT_EQ(found([](JournalStep& told, RecordedBatch& batch) {
              told.groups[1].rewards[0] = batch.step.groups[1].rewards[0] = NAN;
            }),
            "")
      << "a score that is no number is compared by its bits";
}

TEST(Difference, AScoreIsToldWithItsGroupAndBothValues) {
  EXPECT_EQ(found([](JournalStep& told, RecordedBatch&) { told.groups[1].rewards[1] = 0.5f; }),
            "the score of completion 1 of group 301 is 0.5 in the journal, and 1 was trained");
  EXPECT_EQ(found([](JournalStep& told, RecordedBatch&) { told.groups[0].rewards[1] = -0.0f; }),
            "the score of completion 1 of group 300 is -0 in the journal, and 0 was trained");
  EXPECT_EQ(found([](JournalStep& told, RecordedBatch&) { told.groups[2].rewards.pop_back(); }),
            "the journal has 1 scores of group 302, and 2 were trained");
}

TEST(Difference, GroupsAndTheirOrderAreCompared) {
  EXPECT_EQ(found([](JournalStep& told, RecordedBatch&) { told.groups.pop_back(); }),
            "the journal's batch has 2 groups, and 3 were trained");
  EXPECT_EQ(
      found([](JournalStep& told, RecordedBatch&) { std::swap(told.groups[0], told.groups[2]); }),
      "place 0 of the batch has group 302 in the journal, and group 300 was trained there");
}

TEST(Difference, OtherTokensAreTold) {
  EXPECT_EQ(
      found([](JournalStep&, RecordedBatch& batch) { batch.payloads[2][20] ^= 1; }),
      "the tokens of group 302 were trained from other bytes than the journal has the checksum of");
}

}  // namespace
}  // namespace tandem::replay
