#include "actors/job/yaml_scalar.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "actors/job/print_job.h"
#include "runtime/base/text.h"

namespace tandem::job {
namespace {

constexpr std::size_t kShownBytesMax = 40;

// A number as in the core schema of YAML 1.2, decimal only. from_chars() alone would also take
// "inf", "nan" and "infinity": a digit must come first.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  // from_chars() does not take a plus sign.
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || (!std::isdigit(static_cast<unsigned char>(digits[0])) &&
                         !(digits[0] == '.' && digits.size() > 1 &&
                           std::isdigit(static_cast<unsigned char>(digits[1])))))
    return {};
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return {};
  if (error == std::errc::result_out_of_range) {
    // A number that is too great for the type is outside every range, so that the range error is
    // shown; a number too small to tell from 0 is 0.
    if constexpr (std::is_floating_point_v<Number>)
      return text.find("e-") == text.npos && text.find("E-") == text.npos ? HUGE_VAL : Number{0};
    else
      return text.starts_with('-') ? std::numeric_limits<Number>::min()
                                   : std::numeric_limits<Number>::max();
  }
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_number<std::int64_t>(text);
}

std::optional<double> parse_double(std::string_view text) { return parse_number<double>(text); }

bool is_plain(const YAML::Node& node) { return node.IsScalar() && node.Tag() == "?"; }

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return {};
}

bool is_special_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" ||
         text == ".NAN";
}

bool looks_like_number(std::string_view text) {
  return parse_double(text).has_value() || is_special_number(text);
}

std::optional<PlainValue> plain_value(const YAML::Node& node) {
  using V = PlainValue;
  if (!node.IsScalar()) return V{V::kJson, "null"};
  if (!is_plain(node)) return {};
  const std::string& text = node.Scalar();
  if (const auto truth = parse_bool(text)) return V{V::kJson, *truth ? "true" : "false"};
  if (is_special_number(text)) return V{V::kNoNumber, ""};
  auto whole = parse_integer(text);
  // An integer that does not fit is a number all the same, of less precision.
  if (whole && (*whole == std::numeric_limits<std::int64_t>::max() ||
                *whole == std::numeric_limits<std::int64_t>::min()))
    whole.reset();
  if (whole) return V{V::kJson, std::to_string(*whole)};
  auto number = parse_double(text);
  if (!number) return {};
  if (!std::isfinite(*number)) return V{V::kNoNumber, ""};
  return V{V::kJson, print_value(FieldRef(&*number))};
}

std::string describe(const YAML::Node& node) {
  if (node.IsSequence()) return "a list";
  if (node.IsMap()) return "a section";
  if (!node.IsScalar()) return "null";
  const std::string text = cut_utf8(node.Scalar(), kShownBytesMax);
  if (is_plain(node) && looks_like_number(node.Scalar())) return "the number " + text;
  if (is_plain(node) && parse_bool(node.Scalar())) return text;
  return "the string `" + text + "`";
}

}  // namespace tandem::job
