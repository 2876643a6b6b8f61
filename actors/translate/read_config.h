// A file of another framework, and the files that it builds on, as one configuration. The name or
// the first line says what the file is: `.yaml` and `.yml`, `.toml`, `.py` or a line that begins
// with `#!` and names python, `.sh` or any other line that begins with `#!`; any other is read as
// YAML.
//
// RD-1  Of a YAML file the files of `defaults` come first, relative to it; of a script those that
//       its command names, relative to the current directory, to the script's folder or to one of
//       the folders above. A file that is not there is a note, and so never a silent guess.
#pragma once

#include <filesystem>

#include "actors/translate/foreign_config.h"
#include "runtime/base/result.h"

namespace tandem::translate {

inline constexpr std::size_t kFilesMax = 32;  // in all, and within each other

// Errors: the file cannot be read (kFailed), or is not understood (kInvalid, with the place); files
// that build on each other in a circle, and more than kFilesMax of them.
Result<ForeignConfig> read_config(const std::filesystem::path& path);

}  // namespace tandem::translate
