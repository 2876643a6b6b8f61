// Where a program is, as a shell finds it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tandem::node {

// The executable file that `name` means: a path, where it has a slash; else the first one of that
// name in the folders of `path`, a list as in the variable PATH. A null `path` stands for
// "/usr/bin:/bin".
std::optional<std::filesystem::path> find_program(const std::string& name, const char* path);

}  // namespace tandem::node
