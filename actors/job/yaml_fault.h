// Finds where a job file that is not YAML went wrong. The parser reports the place at which it
// could not continue, which is often a line behind the mistake; this looks at the indentation, the
// brackets and the line before. A guess for the error message, which never decides whether a file
// is accepted. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tandem::job {

struct YamlFault {
  int line = 0, column = 0;  // from 0
  std::string note;          // stands at the caret; may be empty
  std::string help;
};

// `line` and `column`, from 0, and `message` are the parser's. Returns their place where no better
// one is found.
YamlFault find_yaml_fault(std::string_view text, int line, int column, std::string_view message);

// The line at fault below the one before it, with a caret and the note:
//    3 |   path: x
//    4 |     init: random
//      |     ^ note
std::string yaml_excerpt(std::string_view text, const YamlFault& fault);

}  // namespace tandem::job
