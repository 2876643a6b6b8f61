// The words of a Python script: names, numbers, texts and signs with their places, without comments
// and white space. Enough to find a call and to read the literals in it; no grammar of Python.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::translate {

struct PythonToken {
  enum class Kind {
    kName,    // a word, keywords among them
    kNumber,  // as it is written
    kText,    // a string literal; `text` is what it stands for
    kOther,   // a string that is no plain literal: f"", b"", an escape by name
    kSign,    // one character
  };
  Kind kind = Kind::kSign;
  std::string text;
  std::size_t begin = 0, end = 0;  // in the script
  int line = 1;
  bool begins_line = false;  // nothing is before it on its line, no space either
};

// Errors, kInvalid with the line: a string literal without an end.
Result<std::vector<PythonToken>> python_tokens(std::string_view script, const std::string& origin);

}  // namespace tandem::translate
