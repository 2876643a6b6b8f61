// A view of a run for another program, beside the run's own files: TensorBoard's (tensorboard.h),
// Weights & Biases' (wandb.h). All of it can be made again from the run's own files.
#pragma once

#include <string_view>

#include "runtime/base/result.h"

namespace tandem::runs {

// Owned by the files of one incarnation of a run. After an error (a full disk, a folder that cannot
// be written) the object must not be used again; a later incarnation writes what is missing.
class Tracker {
 public:
  virtual ~Tracker() = default;
  virtual std::string_view name() const = 0;  // of `trackers` in the job file
  // Takes a line that metrics.jsonl has, and hands it to the operating system.
  virtual Result<void> add(std::string_view metrics_line) = 0;
  // Takes a line of samples.jsonl.
  virtual Result<void> sample(std::string_view /*sample_line*/) { return {}; }
  // The incarnation has ended with this result.json.
  virtual Result<void> end(std::string_view /*result*/) { return {}; }
};

}  // namespace tandem::runs
