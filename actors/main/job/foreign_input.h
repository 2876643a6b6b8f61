// Inputs of other systems, known for what they are: a Hub id where a model directory belongs, and
// binary formats where a data file belongs. Reads the head of a file at most.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace tandem::cli {

// "Qwen/Qwen3-0.6B", if `path` says that relative to `base` and nothing is there; as an error with
// the way to a directory.
std::optional<Error> hub_id_error(const std::filesystem::path& path,
                                  const std::filesystem::path& base, const std::string& where);

// Why `file` cannot be JSON lines: it is parquet, safetensors, an archive or another binary file.
// nullopt where its head may be text, and where it cannot be read.
std::optional<Error> binary_data_error(const std::filesystem::path& file);

}  // namespace tandem::cli
