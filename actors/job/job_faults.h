// The faults of one job, gathered in the order of its text: those of the file by line and column,
// then those of each --set. One answer tells as many as an Error holds and counts the others, so
// that memory is bounded whatever a file contains. Not here: which faults there are (load_job.cc,
// job_rules.h, job_files.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::job {

// Where a key or a value stands.
struct SourcePosition {
  std::size_t source = 0;      // 0: the job file; N: the Nth --set
  int line = -1, column = -1;  // from 0; -1: the source as a whole
  std::string text = {};       // as users read it: "job.yaml:3:5", "--set rollout.n=8"
};

class JobFaults {
 public:
  // Faults at one place are in the order in which they were added.
  void add(const SourcePosition& at, std::string message, std::string help);
  bool empty() const { return kept_.empty(); }
  // Whether a fault at this place would be told and not only counted, for help that takes long.
  bool would_tell(const SourcePosition& at) const;
  // All faults as one error. There must be one (CHECKed).
  Error error(ErrorCode code) const;

 private:
  struct Fault {
    SourcePosition at;
    std::string message, help;
  };
  std::vector<Fault> kept_;  // in order, at most kErrorsToldMax
  std::uint32_t left_out_ = 0;
};

}  // namespace tandem::job
