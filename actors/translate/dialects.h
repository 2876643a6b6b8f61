// The table of the frameworks whose configurations are known, and which of them a file is of.
#pragma once

#include <span>
#include <string_view>

#include "actors/translate/dialect.h"
#include "actors/translate/foreign_config.h"
#include "runtime/base/result.h"

namespace tandem::translate {

std::span<const Dialect> dialects();
const Dialect* find_dialect(std::string_view name);  // by its name in --from; nullptr: none

// The dialect whose marks or program the configuration has. An error, kInvalid, names what was
// looked for where none fits, and the keys where several do.
Result<const Dialect*> recognise(const ForeignConfig& config);

}  // namespace tandem::translate
