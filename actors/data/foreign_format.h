// Files that hold no records in a form that Tandem reads, recognised by their first bytes so that
// the error can say what the file is, and how to convert it.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::data {

// How many first bytes of a file, or of what is packed in it, say which format it has.
inline constexpr std::size_t kHeadBytes = 4096;

// Why a file that begins with `head` cannot be a data file: it is an Arrow file, an archive, a
// program, tensors, text in UTF-16 or anything else with zero bytes; with a command that converts
// it, where one is known. nullopt where the head may be one of the formats of open_records.h.
std::optional<Error> foreign_format(std::string_view head, const std::filesystem::path& file);

}  // namespace tandem::data
