// Whether training has destroyed the policy, by the figures of its steps. A collapse has two signs
// at once, each of which alone is ordinary:
//
//   entropy   is less than a quarter, or more than four times, of what it was at the start: the
//             policy says one thing only, or anything at all. One that learns becomes surer too.
//   reward    has fallen by more than three standard errors. Rewards of prompts differ, so that the
//             error is counted as if each group were one sample.
//
// "At the start" and "now" are means over kCollapseWindow steps: the first ones that were seen, and
// the newest ones. They do not overlap. Steps whose figures are not finite are left out. Knows no
// journal: a run that is resumed is compared with its first steps after that.
//
//   CW-1  A collapse is told once. It can be told again after entropy has been within a factor of
//         two of the start.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace tandem::scheduler {

inline constexpr std::size_t kCollapseWindow = 4;  // steps
inline constexpr double kCollapseEntropyFactor = 4;
inline constexpr double kCollapseErrors = 3;  // standard errors of the reward's mean

// The figures of a committed step.
struct StepSigns {
  std::int64_t step = 0;
  std::int64_t groups = 0;                 // groups of the step's batch
  double reward_mean = 0, reward_std = 0;  // over the batch's trajectories
  double entropy = 0, ppo_kl = 0;          // nats
};

struct Collapse {
  std::int64_t step = 0;  // the newest one
  StepSigns start, now;   // means over their windows
};

class CollapseWatch {
 public:
  // Takes the steps in order. Returns the collapse when it is first seen.
  std::optional<Collapse> take(const StepSigns& step);

 private:
  std::deque<StepSigns> first_, newest_;  // at most kCollapseWindow each
  bool told_ = false;
};

// "step 12: entropy is 0.27 nats after 2.2 at the start and the mean reward 0.01 after 0.28, …"
std::string text(const Collapse& collapse);

}  // namespace tandem::scheduler
