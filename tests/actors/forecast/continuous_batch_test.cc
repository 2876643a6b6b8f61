#include "actors/forecast/continuous_batch.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/base/rng.h"

namespace tandem::forecast {
namespace {

// Random sequences that come amid others: each leaves after as many steps as it has tokens.
TEST(ContinuousBatch, CB1ASequenceLeavesAfterItsTokens) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    ContinuousBatch batch;
    struct Expected {
      std::int64_t begun = 0, tokens = 0;
    };
    std::map<std::uint64_t, Expected> running;
    std::int64_t steps = 0;
    std::uint64_t next = 0;
    for (int round = 0; round < 300; ++round) {
      while (running.empty() || rng.below(2) == 0) {
        const auto tokens = static_cast<std::int64_t>(1 + rng.below(40));
        batch.add(next, tokens);
        running[next++] = {steps, tokens};
      }
      const std::int64_t most = batch.steps_to_next_end();
      const auto by = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most) + 1));
      const auto left = batch.decode(by);
      steps += by;
      for (const std::uint64_t request : left) {
        ASSERT_TRUE(running.contains(request));
        EXPECT_EQ(steps - running[request].begun, running[request].tokens);
        running.erase(request);
      }
      std::int64_t tokens = 0;
      for (const auto& [request, expected] : running) {
        EXPECT_LT(steps - expected.begun, expected.tokens);
        tokens += steps - expected.begun;
      }
      EXPECT_EQ(batch.running(), std::ssize(running));
      EXPECT_EQ(batch.tokens(), tokens);
    }
  }
}

TEST(ContinuousBatch, ARemovedRequestLeavesWithAllItsSequences) {
  ContinuousBatch batch;
  batch.add(1, 5);
  batch.add(1, 9);
  batch.add(2, 7);
  EXPECT_TRUE(batch.decode(3).empty());
  batch.remove(1);
  EXPECT_EQ(batch.running(), 1);
  EXPECT_EQ(batch.tokens(), 3);
  EXPECT_EQ(batch.steps_to_next_end(), 4);
  EXPECT_EQ(batch.decode(4), std::vector<std::uint64_t>{2});
  EXPECT_EQ(batch.tokens(), 0);
}

}  // namespace
}  // namespace tandem::forecast
