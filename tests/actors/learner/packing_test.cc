#include "actors/learner/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/base/rng.h"
#include "tests/actors/learner/learner_builder.h"

namespace tandem::learner {
namespace {

// Follows the rows back from an item: the tokens that its log-probability is conditioned on.
std::vector<std::int32_t> context_of(const MicroBatch& batch, std::int32_t row) {
  for (const kernels::Segment& segment : batch.segments) {
    if (row < segment.begin || row >= segment.begin + segment.len) continue;
    std::vector<std::int32_t> context(
        batch.tokens.begin() + segment.prefix_begin,
        batch.tokens.begin() + segment.prefix_begin + segment.prefix_len);
    context.insert(context.end(), batch.tokens.begin() + segment.begin,
                   batch.tokens.begin() + row + 1);
    return context;
  }
  ADD_FAILURE() << "row " << row << " is in no segment";
  return {};
}

void expect_sound(const MicroBatch& batch, std::int64_t rows_max) {
  EXPECT_LE(std::ssize(batch.tokens), rows_max) << "PK-2";
  EXPECT_LE(std::ssize(batch.items), rows_max) << "PK-2";
  std::int32_t next = 0;
  for (const kernels::Segment& segment : batch.segments) {
    EXPECT_EQ(segment.begin, next) << "segments tile the rows";
    EXPECT_GE(segment.len, 1);
    next = segment.begin + segment.len;
  }
  EXPECT_EQ(next, std::ssize(batch.tokens));
  EXPECT_EQ(batch.sequence_begin.front(), 0);
  EXPECT_EQ(batch.sequence_begin.back(), std::ssize(batch.items));
}

TEST(Packing, SharesTheGroupsPrompt) {
  const std::vector<std::int32_t> prompt = {7, 8, 9}, a = {1, 2, 3}, b = {4};
  const PromptGroup group{prompt, {a, b}, {0, 1}};
  const auto batches = pack(std::span(&group, 1), 100);
  ASSERT_TRUE(batches);
  ASSERT_EQ(batches->size(), 1u);
  const MicroBatch& batch = batches->front();
  EXPECT_EQ(batch.tokens, (std::vector<std::int32_t>{7, 8, 9, 1, 2})) << "no row for a last token";
  ASSERT_EQ(batch.segments.size(), 2u) << "one token has no rows of its own";
  EXPECT_EQ(batch.segments[1].prefix_len, 3);
  std::vector<std::pair<std::int32_t, std::int32_t>> items;
  for (const model::LogprobItem& item : batch.items) items.emplace_back(item.row, item.target);
  EXPECT_EQ(items,
            (std::vector<std::pair<std::int32_t, std::int32_t>>{{2, 1}, {3, 2}, {4, 3}, {2, 4}}));
}

TEST(Packing, EveryTokenIsPredictedOnceFromItsOwnContext_PK1_PK2_PK3) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const TrainBatch batch = testing::random_batch(
        seed, StepId{3}, {.groups = 1 + static_cast<std::int64_t>(rng.below(9)), .n = 5});
    const std::int64_t rows_max = 13 + static_cast<std::int64_t>(rng.below(80));
    const std::vector<bool> live(batch.groups.size(), true);
    const auto groups = share_of(batch, live, 0, 1);
    const auto batches = pack(groups, rows_max);
    ASSERT_TRUE(batches) << batches.error().message;
    std::vector<const TrainTrajectory*> all;
    std::vector<const BatchGroup*> group_of;
    for (const BatchGroup& group : batch.groups)
      for (const TrainTrajectory& t : group.trajectories) {
        all.push_back(&t);
        group_of.push_back(&group);
      }
    std::int32_t next = 0;
    std::map<const BatchGroup*, int> prompts;
    for (const MicroBatch& micro : *batches) {
      expect_sound(micro, rows_max);
      for (std::size_t s = 0; s < micro.sequences.size(); ++s, ++next) {
        ASSERT_EQ(micro.sequences[s], next) << "PK-1: each once, in order";
        const std::size_t at = static_cast<std::size_t>(next);
        if (s == 0 || group_of[at] != group_of[at - 1]) ++prompts[group_of[at]];
        std::vector<std::int32_t> context = group_of[at]->prompt;
        const auto begin = micro.sequence_begin[s], end = micro.sequence_begin[s + 1];
        ASSERT_EQ(end - begin, std::ssize(all[at]->tokens));
        for (std::int32_t m = begin; m < end; ++m) {
          const model::LogprobItem& item = micro.items[static_cast<std::size_t>(m)];
          EXPECT_EQ(context_of(micro, item.row), context);
          EXPECT_EQ(item.target, all[at]->tokens[static_cast<std::size_t>(m - begin)]);
          context.push_back(item.target);
        }
      }
    }
    EXPECT_EQ(next, std::ssize(all));
    for (const auto& [group, count] : prompts) {
      std::int64_t rows = std::ssize(group->prompt), items = 0;
      for (const TrainTrajectory& t : group->trajectories) {
        rows += std::ssize(t.tokens) - 1;
        items += std::ssize(t.tokens);
      }
      if (std::max(rows, items) <= rows_max) {
        EXPECT_EQ(count, 1) << "PK-3";
      }
    }
  }
}

TEST(Packing, RanksShareTheChosenGroupsByTheirPlace_PK4) {
  const TrainBatch batch = testing::random_batch(4, StepId{0}, {.groups = 7, .n = 2});
  const std::vector<bool> chosen = {true, false, true, true, true, false, true};
  const auto firsts = [&](int rank) {
    std::vector<std::int32_t> indices;
    for (const PromptGroup& group : share_of(batch, chosen, rank, 2))
      indices.push_back(group.indices[0]);
    return indices;
  };
  EXPECT_EQ(firsts(0), (std::vector<std::int32_t>{0, 6, 12}));
  EXPECT_EQ(firsts(1), (std::vector<std::int32_t>{4, 8}));
}

TEST(Packing, ASequenceThatNoForwardHoldsIsRefused) {
  const std::vector<std::int32_t> prompt(10, 1), completion(5, 2);
  const PromptGroup group{prompt, {completion}, {0}};
  EXPECT_TRUE(pack(std::span(&group, 1), 14));
  const auto refused = pack(std::span(&group, 1), 13);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(refused.error().message.find("14 tokens"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace tandem::learner
