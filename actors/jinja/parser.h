// A template's tokens as a tree, by the grammar of jinja2/parser.py. Tags that need other templates
// or an extension that transformers has not (block, extends, include, import, autoescape, do) are
// refused by name.
#pragma once

#include <string_view>

#include "actors/jinja/syntax.h"
#include "runtime/base/result.h"

namespace tandem::jinja {

// The error (kInvalid) begins with the line: "line 7: …".
Result<Tree> parse_template(std::string_view text);

}  // namespace tandem::jinja
