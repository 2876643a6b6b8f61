// Rewrites a regular expression of a tokenizer.json, which the `tokenizers` library runs with
// Oniguruma (Ruby's syntax, UTF-8), as one that PCRE2 matches in the same places.
//
// The part of the language is covered in which both engines agree or in which the difference can be
// written out: characters, classes of characters, ranges and \p{…}, \s, \d, groups, (?i:…) over
// ASCII, alternatives, look-ahead, look-behind, `$`, and the quantifiers that both read alike.
// Every other construct is refused by name: it could give other tokens without any error.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::model {

// Returns the pattern for PCRE2 with PCRE2_UTF and PCRE2_UCP. The error (kFailed) names the
// construct that has no equal, and `where`, the file.
Result<std::string> pcre2_pattern(std::string_view regex, const std::string& where);

// A pattern for PCRE2 that matches exactly `text`.
std::string pcre2_literal(std::string_view text);

}  // namespace tandem::model
