// A chat template: a Jinja program, as transformers' apply_chat_template compiles and runs it. A
// text is parsed once, and rendered with variables any number of times. Other folders need this
// header, and json_value.h for the variables.
//
// The language is that of Jinja 3.1 with transformers' settings (trim_blocks, lstrip_blocks, break
// and continue, {% generation %}, its own tojson, raise_exception, strftime_now) in its sandbox.
// Missing are other templates (include, import, extends, block), `do`, autoescape, and the filters
// pprint, random, urlize, urlencode, xmlattr, wordwrap, striptags and filesizeformat. Integers have
// 64 bits. A value that prints as an address in memory in Python (a function) is an error.
//
//   JX-1  A rendering ends, whatever the template: steps, memory, nesting and output have limits,
//         and the error names the one that was passed, with the template's line.
//   JX-2  The same template, inputs and date give the same text: there is no clock, no randomness
//         and no file within.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/jinja/interpreter.h"
#include "actors/jinja/run.h"
#include "actors/jinja/value.h"
#include "runtime/base/result.h"

namespace tandem::jinja {

struct Rendered {
  std::string text;
  // The {% generation %} blocks, which hold what the assistant said. Within a macro or a captured
  // block they begin where the text ended before it, as in transformers.
  std::vector<Span> generations;
};

// Immutable; its const members may be called from several threads at once.
class Template {
 public:
  // `where` names the text in errors: "chat_template.jinja:7". kInvalid: the text is no template.
  static Result<Template> parse(std::string_view text, std::string where);

  using Inputs = std::span<const std::pair<std::string, Value>>;
  // `now` is what strftime_now() formats. kInvalid: the template raised, or a limit was passed.
  Result<Rendered> render(Inputs inputs, const std::optional<std::tm>& now,
                          const Limits& limits = {}) const;

  // The texts that the template can print as they are: what stands between its tags, and its string
  // constants.
  std::vector<std::string_view> texts() const;
  // Whether the template reads a variable of this name.
  bool reads(std::string_view name) const;

 private:
  Template(Tree tree, std::string where);

  std::shared_ptr<const Tree> tree_;
  std::string where_;
};

}  // namespace tandem::jinja
