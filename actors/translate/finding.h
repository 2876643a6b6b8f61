// What an import could not bring over, or brings over otherwise, with how much it matters.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/enum_names.h"

namespace tandem::translate {

// In the order in which findings are told.
enum class Severity {
  kDiffers,  // the imported job learns something else
  kUnknown,  // nobody can say here whether it does: the key or the value is not known
  kToDo,     // the job is the same, and a person has to do something before it runs
  kSame,     // nothing that is learned depends on it: layouts of GPUs, logs, names
};
constexpr auto enum_names(Severity) {
  using enum Severity;
  return enum_name_rows<Severity>(
      {{kDiffers, "differs"}, {kUnknown, "unknown"}, {kToDo, "to do"}, {kSame, "no effect"}});
}

struct Finding {
  Severity severity = Severity::kSame;
  std::string text;               // a sentence without its full stop
  std::vector<std::string> keys;  // of the framework, each with its place: "a.b (run.sh:12)"
};

// Whether a job with these findings learns what the other framework's run learned, as far as is
// known: no finding differs or is unknown.
bool learns_the_same(const std::vector<Finding>& findings);

}  // namespace tandem::translate
