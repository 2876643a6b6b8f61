// Filters whose result is a text or a number.
#include "actors/jinja/text_filters.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "actors/jinja/attributes.h"
#include "actors/jinja/formatting.h"
#include "actors/jinja/iteration.h"
#include "actors/jinja/operators.h"
#include "actors/jinja/printing.h"
#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

template <auto kMap>
Value mapped(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "a filter of text", arguments)) return {};
  const std::string text = text_of(run, value);
  return run.step(1 + text.size() / 64) ? run.string(kMap(text), value.is_markup()) : Value();
}

std::string as_it_is(std::string_view text) { return std::string(text); }

Value escape(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "escape", arguments)) return {};
  return value.is_markup() ? value : run.string(escaped(text_of(run, value)), true);
}

Value force_escape(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "forceescape", arguments)) return {};
  return run.string(escaped(text_of(run, value)), true);
}

Value safe(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "safe", arguments)) return {};
  return run.string(text_of(run, value), true);
}

Value trim(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "trim", arguments, {"chars"});
  if (!given) return {};
  std::optional<std::string_view> chars;
  if ((*given)[0] != nullptr && !(*given)[0]->is_none())
    chars = text_or(run, "trim", (*given)[0], "");
  const std::string text = text_of(run, value);
  if (!run.ok() || !run.step(1 + text.size() * (chars ? chars->size() : 1) / 256)) return {};
  return run.string(std::string(strip(text, chars, Side::kBoth)), value.is_markup());
}

Value replace_filter(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "replace", arguments, {"old", "new", "count"}, 2);
  if (!given) return {};
  const std::int64_t count = int_or(run, (*given)[2], -1);
  const std::string text = text_of(run, value), from = text_of(run, *(*given)[0]),
                    to = text_of(run, *(*given)[1]);
  if (!run.ok() || !run.step(1 + text.size() / 64)) return {};
  auto replaced = replace(text, from, to, count, run.limits().allocated_bytes);
  if (!replaced) return run.charge(run.limits().allocated_bytes + 1), Value();
  return run.string(*std::move(replaced));
}

Value join(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "join", arguments, {"d", "attribute"});
  if (!given) return {};
  const auto [separator, attribute] = *given;
  const AttributePath path(run, attribute != nullptr ? *attribute : Value());
  const std::string between = separator != nullptr ? text_of(run, *separator) : "";
  std::string text;
  bool first = true;
  Cursor cursor(run, value);
  while (const auto item = cursor.next()) {
    const std::string part = text_of(run, path.of(run, *item));
    if (!run.charge(between.size() + part.size())) return {};
    if (!first) text += between;
    first = false;
    text += part;
  }
  return run.ok() ? run.string(std::move(text)) : Value();
}

Value indent(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "indent", arguments, {"width", "first", "blank"});
  if (!given) return {};
  const auto [width, first, blank] = *given;
  if (!value.is_string())
    return arithmetic(run, Arithmetic::kAdd, value, "\n");  // which fails, as in Jinja
  std::string by;
  if (width != nullptr && width->is_string()) {
    by = width->text();
  } else {
    const std::int64_t count = std::max<std::int64_t>(int_or(run, width, 4), 0);
    constexpr std::int64_t kIndentMax = 1000;
    if (count > kIndentMax) return run.fail("an indent of more than 1000 spaces");
    by.assign(static_cast<std::size_t>(count), ' ');
  }
  const bool blank_too = blank != nullptr && truthy(*blank);
  std::string out = first != nullptr && truthy(*first) ? by : "";
  bool begun = false;
  const std::string whole = value.text() + "\n";
  for (const std::string_view line : split_lines(whole, false)) {
    if (!run.step() || !run.charge(by.size() + line.size() + 1)) return {};
    if (begun) out += "\n";
    if (begun && (blank_too || !line.empty())) out += by;
    begun = true;
    out += line;
  }
  return run.string(std::move(out), value.is_markup());
}

Value format(Run& run, const Value& value, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty())
    return run.fail("can't handle positional and keyword arguments at the same time");
  const Value text = run.string(text_of(run, value));
  if (!run.ok()) return {};  // then it is no text
  if (arguments.named.empty()) return percent_format(run, text, run.tuple(arguments.positional));
  Dict dict;
  for (const auto& [name, one] : arguments.named) dict.set(run.string(name), one);
  return percent_format(run, text, run.dict(std::move(dict)));
}

Value center(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "center", arguments, {"width"});
  if (!given) return {};
  const Value text = run.string(text_of(run, value));
  const Value method = get_attribute(run, text, "center");
  return run.ok() ? method.as_callable().function(run, text, {{int_or(run, (*given)[0], 80)}, {}})
                  : Value();
}

Value truncate(Run& run, const Value& value, const Arguments& arguments) {
  const auto given =
      bind_arguments(run, "truncate", arguments, {"length", "killwords", "end", "leeway"});
  if (!given) return {};
  const std::int64_t most = int_or(run, (*given)[0], 255), leeway = int_or(run, (*given)[3], 5);
  const std::string end(text_or(run, "truncate", (*given)[2], "..."));
  const std::string_view text = text_or(run, "truncate", &value, "");
  const auto end_size = static_cast<std::int64_t>(count_characters(end));
  if (run.ok() && (most < end_size || leeway < 0))
    run.fail("the length is less than that of the end");
  if (!run.ok()) return {};
  if (static_cast<std::int64_t>(count_characters(text)) <= most + leeway) return value;
  std::string_view kept = text.substr(0, byte_of(text, static_cast<std::size_t>(most - end_size)));
  if ((*given)[1] == nullptr || !truthy(*(*given)[1])) kept = kept.substr(0, kept.rfind(' '));
  return run.string(std::string(kept) + end);
}

Value word_count(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "wordcount", arguments)) return {};
  std::int64_t count = 0;
  bool in_word = false;
  const std::string text = text_of(run, value);
  run.step(1 + text.size() / 64);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const bool word = next_code_point(text, at) == '_' ||
                      all_of(std::string_view(text).substr(here, at - here), Class::kAlnum);
    if (word && !in_word) ++count;
    in_word = word;
  }
  return count;
}

Value to_json(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "tojson", arguments,
                                    {"ensure_ascii", "indent", "separators", "sort_keys"});
  if (!given) return {};
  const auto [ascii, indent_by, separators, sort_keys] = *given;
  JsonStyle style{.ensure_ascii = ascii != nullptr && truthy(*ascii),
                  .sort_keys = sort_keys != nullptr && truthy(*sort_keys)};
  if (indent_by != nullptr && !indent_by->is_none()) {
    style.between_items = ",";
    const std::int64_t spaces = indent_by->is_string() ? 0 : int_or(run, indent_by, 0);
    if (spaces > 1000) return run.fail("an indent of more than 1000 spaces");
    style.indent =
        indent_by->is_string()
            ? indent_by->text()
            : std::string(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0)), ' ');
  }
  if (separators != nullptr && !separators->is_none()) {
    const auto both = all_items(run, *separators);
    if (!both) return {};
    if (both->size() != 2) return run.fail("the separators of tojson are two texts");
    style.between_items = text_or(run, "tojson", both->data(), "");
    style.after_key = text_or(run, "tojson", &(*both)[1], "");
  }
  if (!run.ok()) return {};
  std::string json = json_of(run, value, style);
  return run.ok() ? run.string(std::move(json)) : Value();
}

Value to_int(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "int", arguments, {"default", "base"});
  if (!given) return {};
  const Value otherwise = (*given)[0] != nullptr ? *(*given)[0] : Value(std::int64_t{0});
  const std::int64_t base = int_or(run, (*given)[1], 10);
  if (value.is_undefined()) return run.fail(value.as_undefined().message());
  if (value.is_int() || value.is(Type::kBool)) return value.as_int();
  std::optional<double> number;
  if (value.is_string()) {
    if (const auto whole = parse_int(value.text(), base)) return *whole;
    number = parse_float(value.text());
  } else if (value.is(Type::kFloat)) {
    number = value.as_float();
  }
  if (!number || !std::isfinite(*number)) return otherwise;
  if (std::abs(*number) >= 9.2e18) return run.fail("an integer has more than 64 bits");
  return static_cast<std::int64_t>(*number);
}

Value to_float(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "float", arguments, {"default"});
  if (!given) return {};
  if (value.is_undefined()) return run.fail(value.as_undefined().message());
  if (value.is_number()) return value.as_float();
  if (value.is_string())
    if (const auto number = parse_float(value.text())) return *number;
  return (*given)[0] != nullptr ? *(*given)[0] : Value(0.0);
}

Value absolute(Run& run, const Value& value, const Arguments& arguments) {
  if (!bind_no_arguments(run, "abs", arguments)) return {};
  if (value.is(Type::kFloat)) return std::abs(value.as_float());
  if (!value.is_number()) return negated(run, value);  // which fails
  return value.as_int() < 0 ? negated(run, value) : Value(value.as_int());
}

// Python's round(): to even where the number lies in the middle, by its exact decimal value.
double rounded(double value, std::int64_t digits) {
  if (digits > 300 || !std::isfinite(value)) return value;
  if (digits < -300) return 0 * value;
  if (digits < 0) {
    const double power = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / power) * power;
  }
  char text[700];
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(digits), value);
  return parse_float(text).value_or(value);
}

Value round_filter(Run& run, const Value& value, const Arguments& arguments) {
  const auto given = bind_arguments(run, "round", arguments, {"precision", "method"});
  if (!given) return {};
  const std::int64_t digits = int_or(run, (*given)[0], 0);
  const std::string_view method = text_or(run, "round", (*given)[1], "common");
  if (method != "common" && method != "ceil" && method != "floor")
    return run.fail("method must be common, ceil or floor");
  if (!value.is_number()) return negated(run, value);  // which fails
  if (!run.ok()) return {};
  // Python rounds an int to an int, and Jinja's ceil and floor divide by a power of ten.
  if (method == "common" && !value.is(Type::kFloat) && digits >= 0) return value.as_int();
  if (method == "common") return rounded(value.as_float(), digits);
  const double power =
      std::pow(10.0, static_cast<double>(std::clamp<std::int64_t>(digits, -300, 300)));
  const double scaled = value.as_float() * power;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / power;
}

}  // namespace

std::span<const FilterRow> text_filters() {
  static constexpr FilterRow kRows[] = {
      {"abs", absolute},
      {"capitalize", mapped<capitalize>},
      {"center", center},
      {"e", escape},
      {"escape", escape},
      {"float", to_float},
      {"forceescape", force_escape},
      {"format", format},
      {"indent", indent},
      {"int", to_int},
      {"join", join},
      {"lower", mapped<lower>},
      {"replace", replace_filter},
      {"round", round_filter},
      {"safe", safe},
      {"string", mapped<as_it_is>},
      {"title", mapped<filter_title>},
      {"tojson", to_json},
      {"trim", trim},
      {"truncate", truncate},
      {"upper", mapped<upper>},
      {"wordcount", word_count},
  };
  return kRows;
}

}  // namespace tandem::jinja
