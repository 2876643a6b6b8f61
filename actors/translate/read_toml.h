// A TOML file as a configuration. Pure.
#pragma once

#include <string>
#include <string_view>

#include "actors/translate/foreign_config.h"
#include "runtime/base/result.h"

namespace tandem::translate {

// Tables become dotted keys, and an array, of tables too, is one value. Dates are texts. `origin`
// is the file's name in errors, which are kInvalid with line and column: no TOML, and nested more
// than kNestingMax deep.
Result<ForeignConfig> read_toml(std::string_view text, const std::string& origin);

}  // namespace tandem::translate
