// A template's text as tokens, by the rules of jinja2/lexer.py (Jinja 3.1) with transformers'
// settings: trim_blocks and lstrip_blocks are on, and one newline at the end is dropped. Comments,
// white space in tags and the marks of white-space control are gone from the tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::jinja {

enum class TokenType : std::uint8_t {
  kData,           // text between tags
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kName,
  kString,    // text is the value, without quotes and escapes
  kInteger,   // text is its decimal digits
  kFloat,     // text is what std::from_chars reads
  kOperator,  // text is the operator
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::string text;
};

// Ends with a kEnd. An error (kInvalid) is a message that begins with "line 7: ".
Result<std::vector<Token>> tokenize(std::string_view template_text);
// The error of a template's text at a line.
Error syntax_error(int line, const std::string& message);

}  // namespace tandem::jinja
