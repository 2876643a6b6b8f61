// A Python script that trains with TRL as a configuration: the arguments of its calls of
// `GRPOConfig` and `GRPOTrainer`, and the data set that its one call of `load_dataset` names. The
// script is read, not run.
//
// PY-1  A value is taken only where it is a literal, or a name to which the script gives a literal
//       once, at the beginning of a line, and nothing else in any form. A list or a map, which may
//       be changed, must have no other use of its name. Any other value is a note with its key.
// PY-2  What else the script does is a note, so that the import never claims to know all of it.
#pragma once

#include <string>
#include <string_view>

#include "actors/translate/foreign_config.h"
#include "runtime/base/result.h"

namespace tandem::translate {

// `origin` is the file's name. Errors: those of python_tokens(); no call of GRPOConfig, or several.
Result<ForeignConfig> read_python(std::string_view script, const std::string& origin);

}  // namespace tandem::translate
