// The keys of a job that bound how much work its rollouts have at once, and which of them to raise
// where a trainer waits for samples although the rollouts' engines could generate more. Pure; the
// figure is a first estimate, since a larger batch also makes each step of an engine longer.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/enum_names.h"
#include "scheduler/fleet/sizing.h"
#include "scheduler/fleet/trainer_wait.h"

namespace tandem::scheduler {

struct WorkLimits {
  std::int64_t sequences_max = 0;           // rollout.max_num_seqs; 0: the limits are not known
  std::optional<std::int64_t> held_max;     // async.max_concurrent_rollouts
  std::int64_t completions_per_prompt = 1;  // rollout.n
  std::int64_t prompts_per_step = 1;        // data.train_batch_size
  std::int64_t lookahead = 0, max_staleness = 0;  // of section `async`
  bool operator==(const WorkLimits&) const = default;
};

enum class WorkLimit { kSequences, kHeld, kLookahead, kStaleness };
constexpr auto enum_names(WorkLimit) {  // the keys
  using enum WorkLimit;
  return enum_name_rows<WorkLimit>({{kSequences, "rollout.max_num_seqs"},
                                    {kHeld, "async.max_concurrent_rollouts"},
                                    {kLookahead, "async.lookahead"},
                                    {kStaleness, "async.max_staleness"}});
}

struct LimitRaise {
  WorkLimit limit = WorkLimit::kSequences;
  std::int64_t now = 0, raised = 0;
  bool operator==(const LimitRaise&) const = default;
};

// The limit on the sequences that a rollout has at once: what its engine decodes, or what it holds
// where that is not more.
LimitRaise sequence_limit(const WorkLimits& limits);
// It is raised for rollouts that are to generate `times` as fast, up to all sequences that the
// staleness bound lets so many rollouts have. nullopt: they may all be at work already.
struct MoreWork {
  double times = 1;
  std::int64_t rollouts = 1;
  double headroom = kSizingHeadroom;
};
std::optional<LimitRaise> more_sequences(const WorkLimits& limits, const MoreWork& wanted);

// The limit that makes the trainer wait so: that of sequences for kSamples, that of groups ahead of
// the trainer for kLast, none for another wait.
std::optional<LimitRaise> limit_behind(TrainerWait wait, const WorkLimits& limits,
                                       const MoreWork& wanted);

}  // namespace tandem::scheduler
