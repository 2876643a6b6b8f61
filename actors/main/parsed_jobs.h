// The jobs that were submitted to this process, parsed, by the text that they are kept as
// (print_job.h). The exchange of a job needs the parsed job when it opens, long after the
// controller has passed on the text alone; so that text is not parsed a second time. Any thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "actors/job/job_spec.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"

namespace tandem::app {

class ParsedJobs {
 public:
  static constexpr std::size_t kJobsMax = 64;  // one more forgets the oldest

  // Remembers `job` and returns the text by which it is found again: print_job(job).
  std::string keep(job::JobSpec job);
  // The job with that text. A text that is not remembered is parsed, as parse_kept_job() does.
  Result<std::shared_ptr<const job::JobSpec>> of(const std::string& yaml,
                                                 const std::string& run_dir);

 private:
  using Kept = std::pair<std::string, std::shared_ptr<const job::JobSpec>>;
  Guarded<std::deque<Kept>> jobs_;  // the oldest first
};

}  // namespace tandem::app
