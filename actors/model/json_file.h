// JSON files of a model directory: read with a limit, parsed strictly, with the place of an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::actors {

// read_file with a limit, which every file of a model directory but the weights has.
Result<std::string> read_text(const std::filesystem::path& file, std::uint64_t bytes_max);

// A syntax error, and a key that occurs twice in one object, are errors, with line and column in
// `where` as far as known.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& file);
Result<nlohmann::json> read_json(const std::filesystem::path& file, std::uint64_t bytes_max);

}  // namespace tandem::actors
