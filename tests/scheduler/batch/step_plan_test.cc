// Plans of single steps as examples, and then an engine made of plans alone that runs random work
// within all limits.
#include "scheduler/batch/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/base/rng.h"
#include "scheduler/batch/prefix_cache.h"

namespace tandem::scheduler {
namespace {

constexpr StepLimits kRoomy{
    .tokens_max = 64, .sequences_max = 8, .pages_free = 100, .page_tokens = 16};

SequenceId seq_id(std::uint64_t n) { return {n}; }

Sequence decoding(std::uint64_t id, std::int32_t cached) {
  return {.id = seq_id(id),
          .due = {},
          .arrival = id,
          .tokens_cached = cached,
          .tokens_pending = 1,
          .pages_alone = pages_for(cached, kRoomy.page_tokens)};
}
Sequence prompt(std::uint64_t id, std::int32_t pending) {
  return {.id = seq_id(id), .due = {}, .arrival = id, .tokens_pending = pending};
}
Sequence due(std::int64_t step, Sequence seq) {
  seq.due = StepId{step};
  return seq;
}

TEST(StepPlan, DecodesBeforePromptsAndChunksTheLastPrompt) {
  const Sequence running[] = {decoding(1, 40)};
  const Sequence waiting[] = {prompt(2, 50), prompt(3, 50)};
  const StepPlan plan = plan_step(running, waiting, kRoomy);
  ASSERT_EQ(plan.run.size(), 3u);
  EXPECT_EQ(plan.run[0].id, seq_id(1));
  EXPECT_EQ(plan.run[1].tokens, 50);
  EXPECT_EQ(plan.run[2].tokens, 64 - 1 - 50);
}

TEST(StepPlan, ContinuesAPromptBeforeItStartsAnother) {
  Sequence halfway = decoding(2, 32);
  halfway.tokens_pending = 40;
  const Sequence running[] = {halfway, decoding(3, 16)};
  const Sequence waiting[] = {prompt(1, 50)};
  const StepPlan plan = plan_step(running, waiting, kRoomy);
  ASSERT_EQ(plan.run.size(), 3u);
  EXPECT_EQ(plan.run[0].id, seq_id(3));
  EXPECT_EQ(plan.run[1].tokens, 40);
  EXPECT_EQ(plan.run[2].tokens, 64 - 1 - 40);
}

TEST(StepPlan, TheDueOnesStartFirst) {
  const Sequence waiting[] = {due(9, prompt(1, 40)), due(7, prompt(2, 40))};
  const StepPlan plan = plan_step({}, waiting, kRoomy);
  ASSERT_EQ(plan.run.size(), 2u);
  EXPECT_EQ(plan.run[0].id, seq_id(2));
  EXPECT_EQ(plan.run[1].tokens, 24);
}

TEST(StepPlan, EvictsTheLastDueThenTheYoungestWhenPagesRunOut) {
  const Sequence running[] = {due(9, decoding(1, 16)), due(7, decoding(2, 16)),
                              due(7, decoding(3, 16))};
  StepLimits limits = kRoomy;
  limits.pages_free = 1;
  const StepPlan plan = plan_step(running, {}, limits);
  EXPECT_EQ(plan.evict, std::vector{seq_id(1)});
  ASSERT_EQ(plan.run.size(), 2u);
  EXPECT_EQ(plan.run[1].id, seq_id(3));
}

TEST(StepPlan, StartsNothingInAStepThatEvicted) {
  const Sequence running[] = {decoding(1, 16), decoding(2, 32)};
  const Sequence waiting[] = {prompt(3, 16)};
  StepLimits limits = kRoomy;
  limits.pages_free = 0;
  const StepPlan plan = plan_step(running, waiting, limits);
  EXPECT_EQ(plan.evict, std::vector{seq_id(2)});
  EXPECT_EQ(plan.run.size(), 1u);
}

TEST(StepPlan, NeverLetsAShortPromptOvertake) {  // SP-3
  const Sequence running[] = {decoding(9, 17)};
  const Sequence waiting[] = {prompt(1, 64), prompt(2, 1)};
  StepLimits limits = kRoomy;
  limits.pages_free = 3;
  const StepPlan plan = plan_step(running, waiting, limits);
  ASSERT_EQ(plan.run.size(), 1u);
  EXPECT_EQ(plan.run[0].id, seq_id(9));
}

TEST(StepPlan, AForkPaysForTheCopyOfItsTail) {
  Sequence forked = decoding(1, 20);
  forked.tail_shared = true;
  const StepPlan plan = plan_step({}, {{forked}}, kRoomy);
  ASSERT_EQ(plan.run.size(), 1u);
  EXPECT_EQ(plan.run[0].pages_new, 1);
}

TEST(StepPlan, ForksThatWaitGiveUpTheirPagesFirst) {
  Sequence waits = decoding(1, 20);
  const Sequence running[] = {decoding(2, 16), decoding(3, 17)};
  StepLimits limits = kRoomy;
  limits.pages_free = 0;
  const StepPlan plan = plan_step(running, {{waits}}, limits);
  EXPECT_EQ(plan.evict, std::vector{seq_id(1)});
  EXPECT_EQ(plan.run.size(), 2u);
}

TEST(StepPlan, APromptEvictsOnlyWhenNothingElseWouldMove) {  // SP-2
  Sequence halfway = decoding(1, 16);
  halfway.tokens_pending = 40;
  const Sequence waits = decoding(3, 20);
  StepLimits limits = kRoomy;
  limits.pages_free = 0;
  const StepPlan blocked = plan_step({{halfway}}, {{waits}}, limits);
  EXPECT_EQ(blocked.evict, std::vector{seq_id(3)});
  ASSERT_EQ(blocked.run.size(), 1u);
  EXPECT_EQ(blocked.run[0].tokens, 32);  // as many as two pages hold

  const Sequence running[] = {halfway, decoding(2, 17)};
  const StepPlan moves = plan_step(running, {{waits}}, limits);
  EXPECT_TRUE(moves.evict.empty());
  ASSERT_EQ(moves.run.size(), 1u);
  EXPECT_EQ(moves.run[0].id, seq_id(2));
}

TEST(StepPlan, TheFirstOfAnIdleEngineStartsWithWhatThereIs) {  // SP-2
  StepLimits limits = kRoomy;
  limits.pages_free = 3;
  const StepPlan chunk = plan_step({}, {{prompt(1, 64)}}, limits);
  ASSERT_EQ(chunk.run.size(), 1u);
  EXPECT_EQ(chunk.run[0].tokens, 48);

  limits.pages_free = 0;
  const Sequence waiting[] = {prompt(1, 64), decoding(2, 20)};
  EXPECT_EQ(plan_step({}, waiting, limits).evict, std::vector{seq_id(2)});
}

// A whole engine over real pages: groups of n sequences with random lengths, tight pools. Every
// plan keeps the limits (SP-1), everything ends (SP-2), starts are in order (SP-3).
class EngineModel {
 public:
  explicit EngineModel(std::uint64_t seed)
      : rng_(seed),
        page_tokens_(pick(1, 16)),
        sequences_max_(pick(1, 8)),
        tokens_max_(pick(sequences_max_, 40)),
        pool_(pages_for(kTokensMax, page_tokens_) + 1 + pick(0, 12)),
        cache_(pool_, page_tokens_) {
    for (std::uint64_t group = 1 + rng_.below(5); group > 0; --group) {
      const std::int64_t step = static_cast<std::int64_t>(rng_.below(3));
      const std::int32_t prompt_tokens = pick(1, kTokensMax / 2);
      const std::int32_t siblings = pick(1, 6);
      Item leader{.group = group,
                  .due = StepId{step},
                  .prompt_tokens = prompt_tokens,
                  .length = prompt_tokens + pick(1, kTokensMax / 2),
                  .table = {}};
      leader.pending = prompt_tokens;
      leader.siblings = siblings;
      items_.emplace(++last_, leader);
    }
  }

  void run() {
    for (int step = 0; !items_.empty(); ++step) {
      ASSERT_LT(step, 20000) << "SP-2";
      const StepPlan plan = plan_step(views(true), views(false), limits());
      ASSERT_NO_FATAL_FAILURE(check(plan));
      ASSERT_NO_FATAL_FAILURE(apply(plan));
    }
    EXPECT_EQ(pool_.available(), pool_.total());
  }

 private:
  static constexpr std::int32_t kTokensMax = 60;  // the longest sequence

  struct Item {
    std::uint64_t group = 0;
    StepId due;
    std::int32_t prompt_tokens = 0;
    std::int32_t length = 0;  // at which it ends
    std::int32_t cached = 0;
    std::int32_t pending = 0;
    std::int32_t siblings = 1;  // still to fork, itself included; 1 once forked
    bool running = false;
    PageTable table;
  };

  std::int32_t pick(std::int32_t lo, std::int32_t hi) {
    return lo + static_cast<std::int32_t>(rng_.below(static_cast<std::uint64_t>(hi - lo + 1)));
  }

  StepLimits limits() const {
    return {tokens_max_, sequences_max_, pool_.available(), page_tokens_};
  }

  std::vector<Sequence> views(bool running) const {
    std::vector<Sequence> out;
    for (const auto& [id, item] : items_) {
      if (item.running != running) continue;
      out.push_back({.id = seq_id(id),
                     .due = item.due,
                     .arrival = item.group,
                     .tokens_cached = item.cached,
                     .tokens_pending = item.pending,
                     .pages_alone = pages_alone(pool_, item.table),
                     .tail_shared = tail_shared(pool_, item.table, {item.cached, page_tokens_})});
    }
    return out;
  }

  auto priority(std::uint64_t id) const {
    const Item& item = items_.at(id);
    return std::tuple(item.due, item.group, id);
  }

  void check(const StepPlan& plan) const {
    std::set<std::uint64_t> seen;
    std::int32_t tokens = 0, running = 0;
    for (const auto& [id, item] : items_) running += item.running;
    for (const SequenceId id : plan.evict) {
      ASSERT_TRUE(seen.insert(id.value).second);
      ASSERT_GT(items_.at(id.value).cached, 0);
      running -= items_.at(id.value).running;
    }
    for (const Slice& slice : plan.run) {
      ASSERT_TRUE(seen.insert(slice.id.value).second) << "both runs and is evicted, or runs twice";
      ASSERT_GE(slice.tokens, 1);
      ASSERT_LE(slice.tokens, items_.at(slice.id.value).pending);
      tokens += slice.tokens;
      running += !items_.at(slice.id.value).running;
    }
    ASSERT_LE(tokens, tokens_max_) << "SP-1";
    ASSERT_LE(running, sequences_max_) << "SP-1";
    ASSERT_TRUE(!plan.run.empty() || !plan.evict.empty()) << "SP-2";
    check_order(plan);
  }

  void check_order(const StepPlan& plan) const {
    std::optional<std::uint64_t> first_running, last_started, first_left;
    const auto earlier = [this](const auto& at, std::uint64_t id) {
      return !at || priority(id) < priority(*at);
    };
    std::set<std::uint64_t> started;
    for (const Slice& slice : plan.run)
      if (!items_.at(slice.id.value).running) started.insert(slice.id.value);
    for (const auto& [id, item] : items_) {
      if (item.running && earlier(first_running, id)) first_running = id;
      if (!item.running && !started.contains(id) && earlier(first_left, id)) first_left = id;
      if (started.contains(id) && (!last_started || priority(id) > priority(*last_started)))
        last_started = id;
    }
    if (first_running) {
      ASSERT_EQ(std::ranges::count(plan.evict, seq_id(*first_running)), 0) << "SP-2";
    }
    if (last_started && first_left) {
      ASSERT_LT(priority(*last_started), priority(*first_left)) << "SP-3";
    }
  }

  void apply(const StepPlan& plan) {
    for (const SequenceId id : plan.evict) {
      Item& item = items_.at(id.value);
      item.pending += item.cached;
      item.cached = 0;
      item.running = false;
      release_table(pool_, item.table);
    }
    for (const Slice& slice : plan.run) {
      const std::int32_t before = pool_.available();
      Item& item = items_.at(slice.id.value);
      item.running = true;
      ASSERT_NO_FATAL_FAILURE(compute(item, slice.tokens));
      ASSERT_LE(before - pool_.available(), slice.pages_new) << "SP-1";
      if (item.pending == 0) finish_chunk(slice.id.value);
    }
    pool_.check();
  }

  void compute(Item& item, std::int32_t tokens) {
    unshare_tail(pool_, cache_, item.table, {item.cached, page_tokens_});
    item.cached += tokens;
    item.pending -= tokens;
    while (std::ssize(item.table) < pages_for(item.cached, page_tokens_)) {
      const auto page = cache_.allocate();
      ASSERT_TRUE(page.has_value()) << "SP-1";
      item.table.push_back(*page);
    }
  }

  // The logits of its last token are there: one more is sampled, and a prompt's siblings fork off.
  void finish_chunk(std::uint64_t id) {
    Item& item = items_.at(id);
    item.pending = 1;
    for (; item.siblings > 1; --item.siblings) {
      Item sibling = item;
      sibling.siblings = 1;
      sibling.running = false;
      sibling.length = item.prompt_tokens + pick(1, kTokensMax / 2);
      sibling.table = fork(pool_, item.table);
      items_.emplace(++last_, std::move(sibling));
    }
    if (item.cached < item.length) return;
    release_table(pool_, item.table);
    items_.erase(id);
  }

  Rng rng_;
  std::int32_t page_tokens_, sequences_max_, tokens_max_;
  PagePool pool_;
  PrefixCache cache_;
  std::map<std::uint64_t, Item> items_;
  std::uint64_t last_ = 0;
};

TEST(StepPlanProperty, AnEngineOfItKeepsTheLimitsAndEndsEverything) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    EngineModel(seed).run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tandem::scheduler
