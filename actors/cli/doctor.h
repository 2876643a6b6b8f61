// `tandem doctor`: the resources of this machine, and everything about it that would prevent Tandem
// from running well.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/cli/kinds.h"

namespace tandem::cli {

// kBad: Tandem cannot run. kWarning: it runs, with a limit that the help explains.
enum class Health { kOk, kWarning, kBad };

struct Finding {
  std::string subject;  // "cpu", "shared memory"
  Health health = Health::kOk;
  std::string detail;
  std::string help;  // what to do; empty when kOk
};

// Looks at the CPU and the instruction set that kernels use, memory, /dev/shm, the folder `home`
// (made if missing), free disk, the three ports from `port` on, limits, sandboxes, library
// versions, the program that reads parquet, and GPUs. Leaves nothing behind but the folder. An item
// that cannot be examined is a finding, not an error.
std::vector<Finding> examine_machine(const std::filesystem::path& home, int port);

// A table with the help below it, or the findings as JSON or YAML.
std::string render_findings(const std::vector<Finding>& findings, OutputForm form, int width);

// Whether any finding is kBad; the exit code is then 1.
bool any_bad(const std::vector<Finding>& findings);

}  // namespace tandem::cli
