// `tandem doctor`: what this machine offers and what would stop Tandem on it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/main/cli/command.h"

namespace tandem::cli {

enum class Health { kOk, kWarning, kBad };

struct Finding {
  std::string subject;  // "cpu", "shared memory"
  Health health = Health::kOk;
  std::string detail;
  std::string help;  // empty when kOk
};

// Looks at CPU features, memory, /dev/shm, `home` (made if missing), free disk, ports and library
// versions. Leaves nothing behind but the folder.
std::vector<Finding> examine_machine(const std::filesystem::path& home, int port);

std::string render_findings(const std::vector<Finding>& findings, OutputForm form, int width);

// True when any finding is kBad: doctor then ends with 1.
bool any_bad(const std::vector<Finding>& findings);

}  // namespace tandem::cli
