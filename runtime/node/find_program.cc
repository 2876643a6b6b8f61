#include "runtime/node/find_program.h"

#include <unistd.h>

#include <sstream>
#include <system_error>
#include <vector>

namespace tandem::node {

std::optional<std::filesystem::path> find_program(const std::string& name, const char* path) {
  std::vector<std::filesystem::path> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.emplace_back(name);
  } else {
    std::istringstream folders(path ? path : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');)
      candidates.push_back(std::filesystem::path(folder) / name);
  }
  for (const std::filesystem::path& candidate : candidates)
    if (std::error_code ignored; std::filesystem::is_regular_file(candidate, ignored) &&
                                 ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  return std::nullopt;
}

}  // namespace tandem::node
