#include "actors/learner/warm_start.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/rng.h"

namespace tandem::learner {

OptimizerConfig warm_start_optimizer(const WarmStartConfig& config) {
  return {.lr = config.lr,
          .lr_scheduler_type = LrSchedule::kConstant,
          .lr_warmup_steps = config.lr_warmup_steps,
          .betas = config.betas,
          .weight_decay = config.weight_decay,
          .grad_clip = config.grad_clip};
}

std::vector<PromptGroup> groups_of_rank(std::span<const WarmStartRecord* const> records, int rank,
                                        int ranks) {
  std::vector<PromptGroup> groups;
  for (auto i = static_cast<std::size_t>(rank); i < records.size();
       i += static_cast<std::size_t>(ranks))
    groups.push_back(
        {records[i]->prompt, {records[i]->completion}, {static_cast<std::int32_t>(i)}});
  return groups;
}

WarmStartData::WarmStartData(std::vector<WarmStartRecord> records, std::uint64_t seed)
    : records_(std::move(records)), seed_(derive_seed(seed, "warm_start")) {
  // The records are ordered by a hash of the prompt, so that equal prompts are neighbours and the
  // first tenth is a random one.
  std::vector<std::pair<std::uint64_t, const WarmStartRecord*>> keyed;
  for (const WarmStartRecord& record : records_) {
    CHECK(!record.prompt.empty() && !record.completion.empty());
    keyed.emplace_back(derive_seed(seed_, {checksum64(std::as_bytes(std::span(record.prompt)))}),
                       &record);
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::size_t held = keyed.size() < 2 ? 0 : std::max<std::size_t>(keyed.size() / 10, 1);
  // WS-1: moves the border behind the last record with the same prompt.
  while (held > 0 && held < keyed.size() && keyed[held].first == keyed[held - 1].first) ++held;
  if (held == keyed.size()) held = 0;  // one prompt only: nothing can be held out
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    if (i >= held) train_.push_back(keyed[i].second);
    if ((i < held || held == 0) && held_out_.size() < kHeldOutEvaluatedMax)
      held_out_.push_back(keyed[i].second);
  }
}

void WarmStartData::shuffle_for(std::int64_t epoch) {
  if (epoch_ == epoch) return;
  epoch_ = epoch;
  order_ = train_;
  Rng rng(derive_seed(seed_, {static_cast<std::uint64_t>(epoch)}));
  shuffle(std::span(order_), rng);
}

std::vector<const WarmStartRecord*> WarmStartData::batch(std::int64_t index,
                                                         std::int64_t batch_size) {
  CHECK(!train_.empty());
  const std::int64_t size = std::ssize(train_);
  std::vector<const WarmStartRecord*> records;
  // Epochs follow each other without a gap, so the order depends on the index alone (WS-2).
  for (std::int64_t i = index * batch_size; i < (index + 1) * batch_size; ++i) {
    shuffle_for(i / size);
    records.push_back(order_[static_cast<std::size_t>(i % size)]);
  }
  return records;
}

}  // namespace tandem::learner
