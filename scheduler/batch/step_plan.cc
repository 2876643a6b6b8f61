// A greedy plan in priority order with three rules: each running sequence decodes one token,
// prompts that have started take the rest of the tokens, then waiting sequences start. Counters of
// free pages and tokens go down as slices are added, so the limits hold by construction (SP-1).
// Only a want of pages evicts, always from the end of the priority order, so the running sequence
// of highest priority keeps its pages and makes progress (SP-2).
#include "scheduler/batch/step_plan.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/check.h"
#include "scheduler/batch/page_pool.h"

namespace tandem::scheduler {
namespace {

// Free pages that starting a sequence must leave for each that runs already: without them it would
// be evicted again a few steps later, and its prompt computed twice.
constexpr std::int32_t kSparePagesPerRunning = 1;

using Order = std::vector<const Sequence*>;

// The id breaks ties, so that a plan does not depend on the order of the input.
Order by_priority(std::span<const Sequence> sequences) {
  Order order;
  for (const Sequence& seq : sequences) order.push_back(&seq);
  std::ranges::sort(
      order, {}, [](const Sequence* seq) { return std::tuple(seq->due, seq->arrival, seq->id); });
  return order;
}

class Planner {
 public:
  Planner(Order running, Order waiting, const StepLimits& limits)
      : limits_(limits),
        running_(std::move(running)),
        waiting_(std::move(waiting)),
        pages_(limits.pages_free),
        tokens_(limits.tokens_max) {
    for (const Sequence* seq : waiting_)
      if (seq->tokens_cached > 0) holders_.push_back(seq);
  }

  StepPlan plan() {
    // `running_` shrinks from its low end as victims leave.
    for (std::size_t i = 0; i < running_.size(); ++i)
      if (running_[i]->tokens_pending == 1) decode(i);
    for (std::size_t i = 0; i < running_.size(); ++i)
      if (running_[i]->tokens_pending > 1) prefill(i);
    // Nothing starts in a step that evicted, or the two would trade places for ever.
    if (plan_.evict.empty()) start_waiting();
    return std::move(plan_);
  }

 private:
  // Pages that `tokens` more tokens need; one more where the shared last page must be copied first.
  std::int32_t pages_to_grow(const Sequence& seq, std::int32_t tokens) const {
    return pages_for(seq.tokens_cached + tokens, limits_.page_tokens) -
           pages_for(seq.tokens_cached, limits_.page_tokens) + (seq.tail_shared ? 1 : 0);
  }

  // The reverse: how many more tokens find room with `pages` free pages.
  std::int32_t tokens_that_fit(const Sequence& seq, std::int32_t pages) const {
    const std::int32_t spare = pages - (seq.tail_shared ? 1 : 0);
    if (spare < 0) return 0;
    const std::int32_t held = pages_for(seq.tokens_cached, limits_.page_tokens);
    return (held + spare) * limits_.page_tokens - seq.tokens_cached;
  }

  // Evicts one sequence below running_[i]; false where there is none. It may free no page, since
  // all of its pages may be shared, so callers repeat.
  bool evict_below(std::size_t i) {
    const Sequence* victim = nullptr;
    if (!holders_.empty()) {
      victim = holders_.back();
      holders_.pop_back();
    } else if (running_.size() > i + 1) {
      victim = running_.back();
      running_.pop_back();
    } else {
      return false;
    }
    pages_ += victim->pages_alone;
    plan_.evict.push_back(victim->id);
    return true;
  }

  void run(const Sequence& seq, std::int32_t tokens) {
    const std::int32_t pages = pages_to_grow(seq, tokens);
    pages_ -= pages;
    tokens_ -= tokens;
    plan_.run.push_back({seq.id, tokens, pages});
  }

  void decode(std::size_t i) {
    const Sequence& seq = *running_[i];
    while (pages_ < pages_to_grow(seq, 1))
      if (!evict_below(i)) return;
    run(seq, 1);
  }

  // A prompt takes the pages that are free. It evicts only when no sequence would run otherwise.
  void prefill(std::size_t i) {
    const Sequence& seq = *running_[i];
    if (tokens_ == 0) return;
    while (plan_.run.empty() && tokens_that_fit(seq, pages_) == 0)
      if (!evict_below(i)) return;
    const std::int32_t tokens =
        std::min({seq.tokens_pending, tokens_, tokens_that_fit(seq, pages_)});
    if (tokens > 0) run(seq, tokens);
  }

  void start_waiting() {
    auto slots = limits_.sequences_max - static_cast<std::int32_t>(running_.size());
    auto spare = kSparePagesPerRunning * static_cast<std::int32_t>(running_.size());
    for (const Sequence* seq : waiting_) {
      // SP-3: where the first that waits cannot start, none behind it does.
      if (tokens_ == 0 || slots == 0) return;
      const std::int32_t tokens = std::min(seq->tokens_pending, tokens_);
      const bool alone = running_.empty() && plan_.run.empty();
      if (pages_to_grow(*seq, tokens) + spare > pages_) {
        if (alone) start_alone(*seq);
        return;
      }
      run(*seq, tokens);
      --slots;
      spare += kSparePagesPerRunning;
    }
  }

  // No sequence runs, and the first that waits lacks the pages for its chunk. It starts with a
  // smaller chunk, or else others that wait give up the pages that they hold, for the next step.
  void start_alone(const Sequence& seq) {
    const std::int32_t tokens =
        std::min({seq.tokens_pending, tokens_, tokens_that_fit(seq, pages_)});
    if (tokens > 0) return run(seq, tokens);
    for (; !holders_.empty() && holders_.back() != &seq; holders_.pop_back())
      plan_.evict.push_back(holders_.back()->id);
  }

  const StepLimits& limits_;
  Order running_;
  Order waiting_;
  Order holders_;  // the part of waiting_ that holds pages, by priority
  std::int32_t pages_;
  std::int32_t tokens_;
  StepPlan plan_;
};

}  // namespace

StepPlan plan_step(std::span<const Sequence> running, std::span<const Sequence> waiting,
                   const StepLimits& limits) {
  CHECK(limits.tokens_max > 0 && limits.sequences_max > 0 && limits.page_tokens > 0);
  CHECK(std::ssize(running) <= limits.sequences_max && std::ssize(running) <= limits.tokens_max);
  for (const std::span<const Sequence> part : {running, waiting})
    for (const Sequence& seq : part) CHECK(seq.tokens_pending >= 1 && seq.tokens_cached >= 0);
  StepPlan plan = Planner(by_priority(running), by_priority(waiting), limits).plan();
  const bool unfinished = !running.empty() || !waiting.empty();
  CHECK((!unfinished || !plan.run.empty() || !plan.evict.empty()) && "SP-2");
  return plan;
}

}  // namespace tandem::scheduler
