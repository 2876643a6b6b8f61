// Whether a file can lie where a user wants it: its directory must be there.
#pragma once

#include <filesystem>

#include "runtime/base/result.h"

namespace tandem {

// The Error names the directory of `path` that is missing; nothing is made. There is no error where
// the directory is there, whether or not a file can be made in it.
Result<void> refuse_missing_directory(const std::filesystem::path& path);

}  // namespace tandem
