// Prompts that were read when their job was checked, on their way to the job's exchange, so that
// nobody reads the data a second time. Thread-safe.
//
// They live no longer than the job that the shape carries (JobShape::spec). Jobs may wait long, and
// data sets are large: beyond a bound those of the jobs that were accepted first are dropped, and
// the exchanges of these jobs read the data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/controller/controller_state.h"
#include "actors/main/roles/job_prompts.h"
#include "runtime/base/guarded.h"

namespace tandem::app {

class KeptPrompts {
 public:
  // About so many bytes are kept. The prompts of the newest job are kept whatever their size.
  explicit KeptPrompts(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Not null for one caller at a time, until that one lets go of it: whoever checks a job to keep
  // its prompts has them all in memory, and many jobs may be submitted at once.
  std::shared_ptr<void> turn_to_read();

  // Puts another pointer to the same job into `shape`, which keeps the prompts as long as it lives.
  void keep(JobPrompts prompts, controller::JobShape& shape);
  // The job waits from now on: its prompts count, and those of other jobs may be dropped.
  void accept(const controller::JobShape& shape);
  // Absent where the prompts of this job were never kept, were dropped or are taken.
  std::optional<JobPrompts> take(const controller::JobShape& shape);

 private:
  struct Owner {
    std::shared_ptr<const job::JobSpec> job;
    std::uint64_t bytes = 0;
    bool accepted = false;
    std::optional<JobPrompts> prompts;
  };
  using Owners = std::vector<std::weak_ptr<Owner>>;
  static std::shared_ptr<Owner> owner_of(const Owners& owners, const controller::JobShape& shape);

  const std::uint64_t bytes_max_;
  Guarded<std::weak_ptr<void>> reader_;
  Guarded<Owners> owners_;  // those that were accepted, in that order, and others
};

}  // namespace tandem::app
