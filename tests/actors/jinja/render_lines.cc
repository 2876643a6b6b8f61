// Renders templates for scripts/chat_template_parity. Each line of stdin is a JSON object with a
// `template` and its `inputs`; the answer is one with `text` and `generations`, or with `error`.
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/jinja/json_value.h"
#include "actors/jinja/template.h"
#include "runtime/base/json.h"

namespace tandem::jinja {
namespace {

std::tm day() {  // 26 July 2024
  std::tm day{};
  day.tm_mday = 26;
  day.tm_mon = 6;
  day.tm_year = 124;
  day.tm_wday = 5;
  day.tm_yday = 207;
  return day;
}

nlohmann::json answer(const std::string& line, std::map<std::string, Result<Template>>& parsed) {
  const auto given = parse_json_value(line);
  if (!given) return {{"error", given.error().message}};
  const std::string& text = given->as_dict().find_text("template")->text();
  const auto [known, is_new] = parsed.try_emplace(text, Template::parse(text, "T"));
  if (!known->second) return {{"error", render(known->second.error())}};
  std::vector<std::pair<std::string, Value>> inputs;
  for (const auto& [name, value] : given->as_dict().find_text("inputs")->as_dict().items())
    inputs.emplace_back(name.text(), value);
  const auto rendered = known->second->render(inputs, day());
  if (!rendered) return {{"error", rendered.error().where + ": " + rendered.error().message}};
  nlohmann::json spans = nlohmann::json::array();
  for (const Span& span : rendered->generations) spans.push_back({span.begin, span.end});
  return {{"text", rendered->text}, {"generations", spans}};
}

}  // namespace
}  // namespace tandem::jinja

int main() {
  std::map<std::string, tandem::Result<tandem::jinja::Template>> parsed;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << tandem::dump_json(tandem::jinja::answer(line, parsed)) << "\n";
  return 0;
}
