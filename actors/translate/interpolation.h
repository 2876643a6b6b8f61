// OmegaConf's references between the values of one configuration: `${actor.path}`, `${.sibling}`,
// `${oc.select:a.b,default}`, `${oc.env:HOME}` and NeMo-RL's `${mul:${a},${b}}`, one in another and
// amid other text. A whole value that is one reference has the type of what it names. Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/translate/foreign_config.h"
#include "runtime/base/result.h"

namespace tandem::translate {

struct Resolved {
  std::map<std::string, nlohmann::json, std::less<>> values;  // by key, without references
  std::vector<Note> unknown;  // references that lead nowhere, or that this reader does not know
};

// The values of `config` without references. A value whose reference is not known is left out of
// the map, with a note. The variable HOME stays as `$HOME`, which a job file takes at the beginning
// of a path. An error, kInvalid with the place, where values refer to each other in a circle.
Result<Resolved> resolve(const ForeignConfig& config);

}  // namespace tandem::translate
