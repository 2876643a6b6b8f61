// Where a job file that is not YAML went wrong. The parser reports the place at which it could not
// go on, which is often a line behind the mistake; this looks at the indentation, the brackets and
// the line before. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tandem::cli {

struct YamlFault {
  int line = 0, column = 0;  // from 0
  std::string note;          // stands at the caret; may be empty
  std::string help;
};

// `line` and `column` are the parser's, from 0, `message` is its own.
YamlFault find_yaml_fault(std::string_view text, int line, int column, std::string_view message);

// The line at fault below the one before it, with a caret and the note:
//    3 |   path: x
//    4 |     init: random
//      |     ^ note
std::string yaml_excerpt(std::string_view text, const YamlFault& fault);

}  // namespace tandem::cli
