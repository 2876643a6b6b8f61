// A name in a job file that may be a path.
#pragma once

#include <string>

namespace tandem::job {

// A program, or FILE.py:FUNCTION or MODULE:FUNCTION. A text with a slash, and one that names a file
// or a module beside the job file, is an absolute path after parsing.
struct PlacedName {
  std::string text;
  bool operator==(const PlacedName&) const = default;
};

}  // namespace tandem::job
