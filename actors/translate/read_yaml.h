// A YAML file as a configuration. Pure: files that it builds on (`defaults`) are values like all
// others here, which read_config.h follows.
#pragma once

#include <string>
#include <string_view>

#include "actors/translate/foreign_config.h"
#include "runtime/base/result.h"

namespace tandem::translate {

// `origin` is the file's name. Errors are those of job::yaml_leaves(), and a document that is no
// map.
Result<ForeignConfig> read_yaml(std::string_view text, const std::string& origin);

}  // namespace tandem::translate
