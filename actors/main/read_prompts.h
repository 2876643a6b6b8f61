// Prompts that were read when their job was checked, on their way to the job's exchange, so that
// nobody reads the data a second time. Thread-safe.
//
// They live no longer than the job that the shape carries (JobShape::spec). Jobs may wait long, and
// data sets are large: beyond a bound the oldest are dropped, and their exchanges read the data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/controller/controller_state.h"
#include "actors/main/roles/job_prompts.h"
#include "runtime/base/guarded.h"

namespace tandem::app {

class ReadPrompts {
 public:
  // The newest are kept whatever their size.
  explicit ReadPrompts(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Puts another pointer to the same job into `shape`.
  void keep(JobPrompts prompts, controller::JobShape& shape);
  // Absent where the prompts of this job were never kept, were dropped or are taken.
  std::optional<JobPrompts> take(const controller::JobShape& shape);

 private:
  struct Owner {
    std::shared_ptr<const job::JobSpec> job;
    std::uint64_t bytes = 0;
    std::optional<JobPrompts> prompts;
  };
  const std::uint64_t bytes_max_;
  Guarded<std::vector<std::weak_ptr<Owner>>> kept_;  // the oldest first
};

}  // namespace tandem::app
