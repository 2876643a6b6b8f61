// Names that belong to other systems, recognised so that the error can say what to do: a Hub id
// where a folder or a file belongs. Downloads nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::job {

// An error with the way to a directory, where `path`, relative to `base`, has the form of a Hub id
// ("Qwen/Qwen3-0.6B") and neither it nor its parent folder exists. `where` is the place of the key
// in the job file.
std::optional<Error> hub_id_error(const std::filesystem::path& path,
                                  const std::filesystem::path& base, const std::string& where);

// The same for a folder that is not there, where the line of the job file that names it has the id
// in a comment, as `tandem import` writes it: `path: models/qwen  # model_name_or_path: Qwen/qwen`.
// The id is the word of the comment that ends in the folder's name.
std::optional<Error> noted_hub_id_error(const std::filesystem::path& path, std::string_view line);

}  // namespace tandem::job
