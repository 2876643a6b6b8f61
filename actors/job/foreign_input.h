// Names that belong to other systems, recognised so that the error can say what to do: a Hub id
// where a folder or a file belongs. Downloads nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace tandem::job {

// An error with the way to a directory, where `path`, relative to `base`, has the form of a Hub id
// ("Qwen/Qwen3-0.6B") and neither it nor its parent folder exists. `where` is the place of the key
// in the job file.
std::optional<Error> hub_id_error(const std::filesystem::path& path,
                                  const std::filesystem::path& base, const std::string& where);

}  // namespace tandem::job
