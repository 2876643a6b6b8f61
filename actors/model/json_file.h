// Reads the JSON files of a model directory: with a limit of size, parsed strictly, and with the
// place of an error. Errors have the file, and where known line and column, in `where`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::model {

// `file` names the text in errors. Errors: wrong syntax, a key that occurs twice in one object (of
// which nlohmann::json alone would silently keep the last), and JSON that is over the limits of
// runtime/base/json.h.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& file);
Result<nlohmann::json> read_json(const std::filesystem::path& file, std::uint64_t bytes_max);

}  // namespace tandem::model
