// The configuration of another framework as a job: the pure function between reading a file
// (read_config.h) and writing one (write_job.h).
//
// IM-1  The job loads: job::parse_job() with Files::kUnchecked takes what write_job() prints. A
//       value that a rule of the job refuses is left out, with a finding.
// IM-2  Nothing is dropped in silence: each key that is given is in the job, or takes part in one
//       of its keys, or is in the findings. Not told are a null, a value that means "off", and what
//       has no effect for the framework either, as the weight of a term that is off.
// IM-3  A key that is left out has the framework's default in the job, unless the job would be the
//       same without it.
#pragma once

#include <string>
#include <vector>

#include "actors/translate/dialect.h"
#include "actors/translate/draft.h"
#include "actors/translate/foreign_config.h"
#include "runtime/base/result.h"

namespace tandem::translate {

struct Translation {
  std::string origin;             // the file's name without its folder
  std::string framework;          // its title: "verl"
  std::vector<JobValue> job;      // in the order of the job file
  std::vector<Finding> findings;  // by severity, in the order of the file within each
};

// Errors, kInvalid with the place: values that refer to each other in a circle.
Result<Translation> translate(const ForeignConfig& config, const Dialect& dialect);

}  // namespace tandem::translate
