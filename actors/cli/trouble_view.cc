// A block per trouble: who, when, what, and the last lines of the program's stderr with the path of
// its log. A block per alert.
#include "actors/cli/trouble_view.h"

#include "actors/cli/table.h"
#include "runtime/base/text.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

std::string word_of(const json& item, const char* name) {
  const json value = item.is_object() ? item.value(name, json()) : json();
  return value.is_string() ? value.get<std::string>() : "";
}

double number_of(const json& item, const char* name) {
  const json value = item.is_object() ? item.value(name, json()) : json();
  return value.is_number() ? value.get<double>() : 0;
}

std::string trouble_block(const json& trouble) {
  std::string text = word_of(trouble, "who") + ", " + age(number_of(trouble, "since_s")) +
                     " ago: " + word_of(trouble, "what");
  if (number_of(trouble, "attempt") > 0)
    text += " (attempt " + short_count(number_of(trouble, "attempt")) + " of " +
            short_count(number_of(trouble, "attempts")) + ")";
  if (number_of(trouble, "count") > 1)
    text += "; troubles so far: " + short_count(number_of(trouble, "count"));
  text += "\n";
  const json tail = trouble.is_object() ? trouble.value("stderr", json()) : json();
  if (tail.is_array() && !tail.empty()) text += "  its stderr ends:\n";
  if (tail.is_array())
    for (const json& line : tail)
      if (line.is_string()) text += "    " + line.get<std::string>() + "\n";
  if (const std::string log = word_of(trouble, "log"); !log.empty()) text += "  log: " + log + "\n";
  return text;
}

std::string alert_block(const json& alert) {
  return visible(word_of(alert, "severity") + " " + word_of(alert, "name") + " for " +
                     age(number_of(alert, "since_s")) + ": " + word_of(alert, "message"),
                 Lines::kOne) +
         "\n  " + visible(word_of(alert, "advice"), Lines::kOne) + "\n";
}

// The blocks of all entries of item[`name`].
std::string blocks_of(const json& item, const char* name, std::string (*block)(const json&)) {
  const json entries = item.is_object() ? item.value(name, json()) : json();
  std::string text;
  if (entries.is_array())
    for (const json& entry : entries) text += block(entry);
  return text;
}

}  // namespace

std::string trouble_lines(const json& item) { return blocks_of(item, "troubles", trouble_block); }

std::string alert_lines(const json& item) { return blocks_of(item, "alerts", alert_block); }

}  // namespace tandem::cli
