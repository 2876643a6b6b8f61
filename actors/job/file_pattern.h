// Files by a pattern, as a shell and the package datasets have it: `*`, `?` and `[a-z]` within a
// name, and `**` as a name of its own for any number of folders. A leading dot is matched by a dot
// alone, so that hidden files are left out.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::job {

inline constexpr std::size_t kDataFilesMax = 10'000;           // that one pattern may match
inline constexpr std::size_t kEntriesLookedAtMax = 1'000'000;  // files and folders
inline constexpr std::size_t kFoldersDeepMax = 32;

bool is_pattern(std::string_view text);

// The files below `folder` that match, in the order of their paths' bytes, so that it is the same
// on every machine; folders are left out. Empty where nothing matches. kInvalid above the bounds.
Result<std::vector<std::filesystem::path>> files_matching(const std::filesystem::path& folder,
                                                          const std::filesystem::path& pattern);

}  // namespace tandem::job
