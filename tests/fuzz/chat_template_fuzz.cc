// The chat template of a model that somebody downloaded, and behind a line "--" its variables, a
// JSON object. Checked: a rendering ends within its limits (JX-1), twice gives the same text
// (JX-2), its generations lie inside the text, and an error names the template.
#include "actors/jinja/json_value.h"
#include "actors/jinja/template.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

// Far below the product's, so that an input that loops ends soon.
constexpr jinja::Limits kLimits{
    .steps = 100'000, .output_bytes = 1 << 20, .allocated_bytes = 16 << 20, .nesting = 100};

std::tm day() {
  std::tm day{};
  day.tm_mday = 26;
  day.tm_mon = 6;
  day.tm_year = 124;
  day.tm_wday = 5;
  day.tm_yday = 207;
  return day;
}

}  // namespace

void chat_template(std::string_view input) {
  Pieces pieces(input);
  const auto parsed = jinja::Template::parse(pieces.text(), "T");
  if (!parsed) {
    CHECK(parsed.error().where.starts_with("T"));
    return;
  }
  const auto variables = jinja::parse_json_value(pieces.rest());
  std::vector<std::pair<std::string, jinja::Value>> inputs;
  if (variables && variables->type() == jinja::Type::kDict)
    for (const auto& [name, value] : variables->as_dict().items())
      inputs.emplace_back(name.text(), value);
  const auto first = parsed->render(inputs, day(), kLimits);
  const auto second = parsed->render(inputs, day(), kLimits);
  CHECK(first.has_value() == second.has_value());
  if (!first) {
    CHECK(first.error().where.starts_with("T") && first.error().message == second.error().message);
    return;
  }
  CHECK(first->text == second->text && first->text.size() <= kLimits.output_bytes);
  for (const jinja::Span& span : first->generations)
    CHECK(span.begin <= span.end && span.end <= first->text.size());
}

}  // namespace tandem::fuzz
