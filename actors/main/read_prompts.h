// Prompts that were read when their job was checked, on their way to the job's exchange, so that
// nobody reads the data a second time.
//
// They live no longer than the job that the shape carries (JobShape::spec), and those of one job
// alone are held: data sets are large, and jobs may wait long. Thread-safe.
#pragma once

#include <memory>
#include <optional>

#include "actors/controller/controller_state.h"
#include "actors/main/roles/job_prompts.h"
#include "runtime/base/guarded.h"

namespace tandem::app {

class ReadPrompts {
 public:
  // Puts another pointer to the same job into `shape`. Drops the prompts of the job before, unless
  // they were taken.
  void keep(JobPrompts prompts, controller::JobShape& shape);
  // Absent where the prompts of this job were never kept, were dropped or are taken.
  std::optional<JobPrompts> take(const controller::JobShape& shape);

 private:
  struct Owner {
    std::shared_ptr<const job::JobSpec> job;
    std::optional<JobPrompts> prompts;
  };
  Guarded<std::weak_ptr<Owner>> last_;
};

}  // namespace tandem::app
