// Both forms read a specification into a Spec, and one function lays a value out by it. Width and
// precision are bounded, so that a format cannot ask for a text of any size.
#include "actors/jinja/formatting.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "actors/jinja/printing.h"
#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

constexpr std::int64_t kWidthMax = 10'000, kPrecisionMax = 100;

struct Spec {
  std::string fill = " ";
  char align = 0;  // '<', '>', '^', '=' (behind the sign); 0: as the type has it
  char sign = '-';
  char grouping = 0;  // ',' or '_'
  char type = 0;
  bool alternate = false;
  std::int64_t width = 0, precision = -1;
};

// Reads digits at `at`. Fails above `most`.
std::int64_t read_number(Run& run, std::string_view text, std::size_t& at, std::int64_t most) {
  std::int64_t number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = number * 10 + (text[at++] - '0');
    if (number > most) {
      run.fail("a width or precision of a format is above " + std::to_string(most));
      return 0;
    }
  }
  return number;
}

std::string padded(const Spec& spec, const std::string& sign, const std::string& body, char align) {
  const auto size = static_cast<std::int64_t>(count_characters(sign) + count_characters(body));
  const std::int64_t missing = std::max<std::int64_t>(spec.width - size, 0);
  const auto fill = [&](std::int64_t count) {
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) text += spec.fill;
    return text;
  };
  if (align == '=') return sign + fill(missing) + body;
  const std::int64_t before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  return fill(before) + sign + body + fill(missing - before);
}

std::string grouped(const std::string& digits, char separator, std::size_t by) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % by == 0) out += separator;
    out += digits[i];
  }
  return out;
}

std::string sign_of(bool negative, char sign) {
  if (negative) return "-";
  return sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string in_base(std::uint64_t magnitude, unsigned base, bool capitals) {
  const std::string_view all = capitals ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits += all[magnitude % base];
    magnitude /= base;
  } while (magnitude != 0);
  std::ranges::reverse(digits);
  return digits;
}

std::string int_layout(const Spec& spec, std::int64_t value) {
  const std::uint64_t magnitude = value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                                            : static_cast<std::uint64_t>(value);
  const char type = spec.type;
  const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string digits = in_base(magnitude, base, type == 'X');
  if (spec.precision > std::ssize(digits))
    digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
  if (spec.grouping != 0) digits = grouped(digits, spec.grouping, base == 10 ? 3 : 4);
  std::string sign = sign_of(value < 0, spec.sign);
  if (spec.alternate && base != 10) sign += std::string("0") + type;
  return padded(spec, sign, digits, spec.align != 0 ? spec.align : '>');
}

std::string float_digits(const Spec& spec, double magnitude) {
  const bool percent = spec.type == '%';
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  if (spec.type == 0 && spec.precision < 0) return float_text(magnitude);
  const char letter = percent ? 'f' : spec.type == 0 || spec.type == 'n' ? 'g' : spec.type;
  const std::string form = std::string(spec.alternate ? "%#.*" : "%.*") + letter;
  std::array<char, 512> buffer{};
  std::snprintf(buffer.data(), buffer.size(), form.c_str(), precision,
                percent ? magnitude * 100 : magnitude);
  std::string digits = buffer.data();
  if (spec.type == 0 && digits.find_first_of(".einf") == digits.npos) digits += ".0";
  return percent ? digits + "%" : digits;
}

std::string float_layout(const Spec& spec, double value) {
  std::string digits = float_digits(spec, std::abs(value));
  if (spec.grouping != 0) {
    const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    digits = grouped(digits.substr(0, whole), spec.grouping, 3) + digits.substr(whole);
  }
  return padded(spec, sign_of(std::signbit(value) && !std::isnan(value), spec.sign), digits,
                spec.align != 0 ? spec.align : '>');
}

std::string text_layout(const Spec& spec, std::string_view text) {
  if (spec.precision >= 0)
    text = text.substr(0, byte_of(text, static_cast<std::size_t>(spec.precision)));
  return padded(spec, "", std::string(text),
                spec.align != 0 && spec.align != '=' ? spec.align : '<');
}

bool is_float_type(char type) {
  return type != 0 && std::string_view("eEfFgG%").find(type) != std::string_view::npos;
}

std::string bad_type(Run& run, char type, const Value& value) {
  run.fail(std::string("the format '") + type + "' is not for a value of the type '" +
           type_name(value) + "'");
  return {};
}

// One value of `text % values`, whose type is always given.
std::string percent_value(Run& run, Spec spec, const Value& value) {
  switch (spec.type) {
    case 's':
      return text_layout(spec, text_of(run, value));
    case 'r':
    case 'a':
      return text_layout(spec, repr_of(run, value));
    case 'c':
      if (value.is_string() && value.as_text().characters == 1)
        return text_layout(spec, value.text());
      return bad_type(run, spec.type, value);
    case 'd':
    case 'i':
    case 'u':
      if (value.is(Type::kFloat) && std::abs(value.as_float()) < 9e18)
        return int_layout(spec, static_cast<std::int64_t>(value.as_float()));
      [[fallthrough]];
    case 'o':
    case 'x':
    case 'X':
      if (!value.is_int() && !value.is(Type::kBool)) return bad_type(run, spec.type, value);
      return int_layout(spec, value.as_int());
    default:
      if (!is_float_type(spec.type) || spec.type == '%' || !value.is_number())
        return bad_type(run, spec.type, value);
      return float_layout(spec, value.as_float());
  }
}

class PercentFormat {
 public:
  PercentFormat(Run& run, std::string_view format, const Value& values)
      : run_(run), format_(format), values_(values) {}

  std::string text() {
    std::string out;
    while (at_ < format_.size() && run_.ok()) {
      const std::size_t percent = std::min(format_.find('%', at_), format_.size());
      out += format_.substr(at_, percent - at_);
      at_ = percent + 1;
      if (percent < format_.size() && run_.step()) out += field();
    }
    const bool all = values_.is(Type::kDict) || next_ == count();
    if (run_.ok() && !all) run_.fail("not all arguments converted during string formatting");
    return out;
  }

 private:
  bool is_tuple() const { return values_.is(Type::kSequence) && values_.as_sequence().tuple; }
  std::size_t count() const { return is_tuple() ? values_.as_sequence().items.size() : 1; }

  Value next_value() {
    if (next_ >= count()) return run_.fail("not enough arguments for format string");
    const std::size_t index = next_++;
    return is_tuple() ? values_.as_sequence().items[index] : values_;
  }

  std::string field() {
    Spec spec;
    std::optional<Value> named;
    if (at_ < format_.size() && format_[at_] == '(') {
      const std::size_t end = format_.find(')', at_);
      if (end == format_.npos || !values_.is(Type::kDict))
        return run_.fail("format requires a mapping"), "";
      const std::string_view key = format_.substr(at_ + 1, end - at_ - 1);
      const Value* const value = values_.as_dict().find_text(key);
      if (value == nullptr) return run_.fail("no value named '" + std::string(key) + "'"), "";
      named = *value;
      at_ = end + 1;
    }
    bool zeros = false;
    for (; at_ < format_.size() &&
           std::string_view("-+ 0#").find(format_[at_]) != std::string_view::npos;
         ++at_) {
      const char flag = format_[at_];
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      if (flag == '0') zeros = true;
      if (flag == '#') spec.alternate = true;
    }
    spec.width = read_number(run_, format_, at_, kWidthMax);
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      spec.precision = read_number(run_, format_, at_, kPrecisionMax);
    }
    while (at_ < format_.size() &&
           std::string_view("hlL").find(format_[at_]) != std::string_view::npos)
      ++at_;
    if (at_ >= format_.size()) return run_.fail("incomplete format"), "";
    spec.type = format_[at_++];
    if (spec.type == '%') return "%";
    const bool text = spec.type == 's' || spec.type == 'r' || spec.type == 'a' || spec.type == 'c';
    if (zeros && spec.align == 0 && !text) spec.fill = "0", spec.align = '=';
    if (text && spec.align == 0) spec.align = '>';
    const Value value = named ? *named : next_value();
    return run_.ok() ? percent_value(run_, spec, value) : std::string();
  }

  Run& run_;
  const std::string_view format_;
  const Value& values_;
  std::size_t at_ = 0, next_ = 0;
};

// Reads [[fill]align][sign][#][0][width][grouping][.precision][type].
Spec parse_spec(Run& run, std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const std::size_t second = byte_of(text, 1);
  if (second < text.size() && is_align(text[second])) {
    spec.fill = text.substr(0, second);
    spec.align = text[second];
    at = second + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[at++];
  }
  const auto take = [&](std::string_view any) {
    return at < text.size() && any.find(text[at]) != any.npos ? text[at++] : char{0};
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != 0;
  if (take("0") != 0 && spec.align == 0) spec.fill = "0", spec.align = '=';
  spec.width = read_number(run, text, at, kWidthMax);
  spec.grouping = take(",_");
  if (take(".") != 0) spec.precision = read_number(run, text, at, kPrecisionMax);
  spec.type = take("bcdeEfFgGnosxX%");
  if (run.ok() && at < text.size())
    run.fail("Invalid format specifier '" + std::string(text) + "'");
  return spec;
}

// format(value, spec)
std::string formatted(Run& run, const Value& value, std::string_view text) {
  if (text.empty()) return text_of(run, value);
  const Spec spec = parse_spec(run, text);
  if (!run.ok()) return {};
  if (value.is_string()) {
    if (spec.type != 0 && spec.type != 's') return bad_type(run, spec.type, value);
    return text_layout(spec, value.text());
  }
  if (!value.is_number()) {
    run.fail(std::string("unsupported format string passed to ") + type_name(value) +
             ".__format__");
    return {};
  }
  if (value.is(Type::kFloat) || is_float_type(spec.type)) {
    if (spec.type != 0 && !is_float_type(spec.type) && spec.type != 'n')
      return bad_type(run, spec.type, value);
    return float_layout(spec, value.as_float());
  }
  if (spec.type == 's' || spec.type == 'c' || spec.precision >= 0)
    return bad_type(run, spec.type == 0 ? '.' : spec.type, value);
  return int_layout(spec, value.as_int());
}

class BraceFormat {
 public:
  BraceFormat(Run& run, const Arguments& arguments, const FieldLookup& lookup)
      : run_(run), arguments_(arguments), lookup_(lookup) {}

  std::string text(std::string_view format, int nested) {
    std::string out;
    for (std::size_t at = 0; at < format.size() && run_.step();) {
      const char c = format[at++];
      if (c != '{' && c != '}') {
        out += c;
      } else if (at < format.size() && format[at] == c) {
        out += c;
        ++at;
      } else if (c == '}' || nested > 1) {
        run_.fail("Single '" + std::string(1, c) + "' encountered in format string");
      } else {
        out += field(format, at, nested);
      }
    }
    return out;
  }

 private:
  // A replacement field, whose opening brace is before `at`; moves `at` past its end.
  std::string field(std::string_view format, std::size_t& at, int nested) {
    std::size_t end = at;
    for (int depth = 1; end < format.size(); ++end) {
      depth += (format[end] == '{' ? 1 : 0) - (format[end] == '}' ? 1 : 0);
      if (depth == 0) break;
    }
    if (end >= format.size()) return run_.fail("expected '}' before end of string"), "";
    std::string_view whole = format.substr(at, end - at);
    at = end + 1;
    const std::size_t name_end = std::min(whole.find_first_of("!:"), whole.size());
    Value value = named(whole.substr(0, name_end));
    whole.remove_prefix(name_end);
    if (whole.starts_with('!')) {
      const char form = whole.size() > 1 ? whole[1] : '\0';
      if (form != 's' && form != 'r' && form != 'a')
        return run_.fail("unknown conversion in a format"), "";
      value = run_.string(form == 's' ? text_of(run_, value) : repr_of(run_, value));
      whole.remove_prefix(2);
    }
    std::string spec;
    if (whole.starts_with(':'))
      spec = text(whole.substr(1), nested + 1);
    else if (!whole.empty())
      run_.fail("expected ':' after conversion specifier");
    return run_.ok() ? formatted(run_, value, spec) : std::string();
  }

  Value named(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, first_end));
    name.remove_prefix(first_end);
    while (!name.empty() && run_.ok()) {
      const bool attribute = name.front() == '.';
      const std::size_t end =
          std::min(attribute ? name.find_first_of(".[", 1) : name.find(']'), name.size());
      const std::string_view part = run_.keep(std::string(name.substr(1, end - 1)));
      if (!attribute && end == name.size()) return run_.fail("Missing ']' in format string");
      const auto index = parse_int(part, 10);
      value = attribute ? lookup_.attribute(run_, value, part)
                        : lookup_.item(run_, value, index ? Value(*index) : Value(part));
      name.remove_prefix(end + (attribute ? 0 : 1));
    }
    return value;
  }

  Value argument(std::string_view name) {
    const bool numbered = name.empty() || name.find_first_not_of("0123456789") == name.npos;
    if (numbered) {
      const auto index = name.empty() ? std::optional(next_++) : parse_int(name, 10);
      const Values& values = arguments_.positional;
      if (index && *index < std::ssize(values)) return values[static_cast<std::size_t>(*index)];
      return run_.fail("Replacement index " + std::string(name) +
                       " out of range for positional args tuple");
    }
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    return run_.fail("no value named '" + std::string(name) + "'");
  }

  Run& run_;
  const Arguments& arguments_;
  const FieldLookup& lookup_;
  std::int64_t next_ = 0;
};

}  // namespace

Value percent_format(Run& run, const Value& format, const Value& values) {
  if (format.is_markup()) return run.fail("a format that was marked as safe is not supported");
  return run.string(PercentFormat(run, format.text(), values).text());
}

Value brace_format(Run& run, const Value& format, const Arguments& arguments,
                   const FieldLookup& lookup) {
  if (format.is_markup()) return run.fail("a format that was marked as safe is not supported");
  return run.string(BraceFormat(run, arguments, lookup).text(format.text(), 0));
}

}  // namespace tandem::jinja
