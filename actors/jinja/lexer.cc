// Jinja's lexer is a table of regular expressions; here each rule is a function that reads at one
// place. The text between two tags is trimmed by the marks of both: `-` takes all white space,
// a block's end takes the newline behind it, and a block that begins a line takes the spaces in
// front of it.
#include "actors/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

// Longer operators before their beginnings.
constexpr auto kOperators = std::to_array<std::string_view>(
    {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
     "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"});

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

// "\r\n" and "\r" are newlines as well; one at the end is dropped.
std::string with_newlines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i] == '\r' ? '\n' : text[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string text) : text_(std::move(text)) {}

  Result<std::vector<Token>> tokens() {
    while (at_ < text_.size() && !error_) read_data();
    if (error_) return *error_;
    add(TokenType::kEnd, {});
    return std::move(tokens_);
  }

 private:
  void fail(const std::string& message) {
    if (!error_) error_ = syntax_error(line_, message);
  }
  void add(TokenType type, std::string text) { tokens_.push_back({type, line_, std::move(text)}); }
  bool at(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }
  // Goes on to `end`, and counts the lines.
  void move_to(std::size_t end) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    line_starting_ = end > 0 && end > at_ ? text_[end - 1] == '\n' : line_starting_;
    at_ = end;
  }
  std::size_t after_spaces(std::size_t from) const {
    while (from < text_.size()) {
      std::size_t next = from;
      if (!is_space(next_code_point(text_, next))) return from;
      from = next;
    }
    return from;
  }

  // The end of a tag that is closed by `close`: with "-" and the white space behind it, with "+",
  // or with the newline behind it where `trims`. Nothing where no such end is at `from`.
  std::optional<std::size_t> tag_end(std::size_t from, std::string_view close, bool trims,
                                     bool takes_plus) const {
    const char sign = from < text_.size() ? text_[from] : '\0';
    const bool marked = sign == '-' || (sign == '+' && takes_plus);
    const std::size_t begin = from + (marked ? 1 : 0);
    if (text_.compare(begin, close.size(), close) != 0) return {};
    const std::size_t end = begin + close.size();
    if (sign == '-') return after_spaces(end);
    return trims && !marked && end < text_.size() && text_[end] == '\n' ? end + 1 : end;
  }

  // Adds the text from at_ to `end`, trimmed by the sign of the tag that begins there.
  void add_data(std::size_t end, char sign, bool lstrip) {
    std::string_view data = std::string_view(text_).substr(at_, end - at_);
    if (sign == '-') {
      data = strip(data, {}, Side::kRight);
    } else if (sign != '+' && lstrip) {
      const std::size_t line = data.rfind('\n') + 1;  // 0 where there is none
      if ((line > 0 || line_starting_) && strip(data.substr(line), {}, Side::kBoth).empty())
        data = data.substr(0, line);
    }
    if (!data.empty()) add(TokenType::kData, std::string(data));
    move_to(end);
  }

  char sign_at(std::size_t place) const {
    const char sign = place < text_.size() ? text_[place] : '\0';
    return sign == '-' || sign == '+' ? sign : '\0';
  }

  void read_data() {
    std::size_t open = text_.find('{', at_);
    while (open != text_.npos &&
           std::string_view("{%#").find(text_[std::min(open + 1, text_.size() - 1)]) ==
               std::string_view::npos)
      open = text_.find('{', open + 1);
    if (open == text_.npos || open + 1 >= text_.size()) return add_data(text_.size(), '+', false);
    const char kind = text_[open + 1], sign = sign_at(open + 2);
    const std::size_t inside = open + 2 + (sign != '\0' ? 1 : 0);
    const auto raw = kind == '%' ? raw_begin(inside) : std::nullopt;
    add_data(open, sign, kind != '{');
    if (raw) {
      move_to(*raw);
      return read_raw();
    }
    if (kind == '#') {
      move_to(inside);
      return read_comment();
    }
    add(kind == '%' ? TokenType::kBlockBegin : TokenType::kVariableBegin, {});
    move_to(inside);
    read_tag(kind == '%');
  }

  // The place behind "{% raw %}", whose inside begins at `from`.
  std::optional<std::size_t> raw_begin(std::size_t from) const {
    const std::size_t word = after_spaces(from);
    if (text_.compare(word, 3, "raw") != 0) return {};
    return tag_end(after_spaces(word + 3), "%}", false, false);
  }

  void read_raw() {
    for (std::size_t open = text_.find("{%", at_); open != text_.npos;
         open = text_.find("{%", open + 2)) {
      const char sign = sign_at(open + 2);
      const std::size_t word = after_spaces(open + 2 + (sign != '\0' ? 1 : 0));
      if (text_.compare(word, 6, "endraw") != 0) continue;
      const auto end = tag_end(after_spaces(word + 6), "%}", true, true);
      if (!end) continue;
      add_data(open, sign, true);
      return move_to(*end);
    }
    fail("Missing end of raw directive");
  }

  void read_comment() {
    const std::size_t close = text_.find("#}", at_);
    if (close == text_.npos) return fail("Missing end of comment tag");
    const bool marked = close > at_ && (text_[close - 1] == '-' || text_[close - 1] == '+');
    move_to(*tag_end(marked ? close - 1 : close, "#}", true, true));
  }

  void read_tag(bool block) {
    while (!error_) {
      const bool open = braces_.empty();
      if (const auto end = tag_end(at_, block ? "%}" : "}}", block, block); end && open) {
        add(block ? TokenType::kBlockEnd : TokenType::kVariableEnd, {});
        return move_to(*end);
      }
      if (at_ >= text_.size()) return;  // the parser says what is missing
      const std::size_t spaces = after_spaces(at_);
      if (spaces > at_)
        move_to(spaces);
      else
        read_token();
    }
  }

  void read_token() {
    const char c = text_[at_];
    if (is_digit(c)) return read_number();
    if (begins_name(c)) return read_name();
    if (c == '"' || c == '\'') return read_string();
    for (const std::string_view known : kOperators)
      if (at(known)) return read_operator(known);
    fail("unexpected char " + python_repr(text_.substr(at_, 1)));
  }

  void read_name() {
    std::size_t end = at_;
    while (end < text_.size() && (begins_name(text_[end]) || is_digit(text_[end]))) ++end;
    add(TokenType::kName, text_.substr(at_, end - at_));
    move_to(end);
  }

  // Digits with single underscores between them, from `from`.
  std::size_t digits_end(std::size_t from) const {
    std::size_t end = from;
    while (end < text_.size() &&
           (is_digit(text_[end]) || (text_[end] == '_' && end > from && end + 1 < text_.size() &&
                                     is_digit(text_[end + 1]))))
      ++end;
    return end;
  }

  void read_number() {
    const std::size_t whole = digits_end(at_);
    std::size_t end = whole;
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';
    const auto digit_at = [&](std::size_t place) {
      return place < text_.size() && is_digit(text_[place]);
    };
    if (!after_dot && end < text_.size() && text_[end] == '.' && digit_at(end + 1))
      end = digits_end(end + 1);
    if (!after_dot && end < text_.size() && (text_[end] | 0x20) == 'e') {
      const std::size_t sign =
          end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-') ? 1 : 0;
      if (digit_at(end + 1 + sign)) end = digits_end(end + 1 + sign);
    }
    if (end > whole) {
      std::string digits = text_.substr(at_, end - at_);
      std::erase(digits, '_');
      add(TokenType::kFloat, std::move(digits));
      return move_to(end);
    }
    read_integer(whole);
  }

  void read_integer(std::size_t whole) {
    std::size_t end = whole;
    const char letter = at_ + 1 < text_.size() ? static_cast<char>(text_[at_ + 1] | 0x20) : '\0';
    if (text_[at_] == '0' && (letter == 'x' || letter == 'o' || letter == 'b')) {
      end = at_ + 2;
      while (end < text_.size() && (is_digit(text_[end]) || begins_name(text_[end]))) ++end;
    } else if (text_[at_] == '0') {  // "007" is three numbers for Jinja: zeros, and what follows
      end = std::min(text_.find_first_not_of("0_", at_), text_.size());
    }
    const auto value = parse_int(std::string_view(text_).substr(at_, end - at_), 0);
    if (!value) return fail("an integer that is malformed, or has more than 64 bits");
    add(TokenType::kInteger, std::to_string(*value));
    move_to(end);
  }

  void read_operator(std::string_view known) {
    const char c = known[0];
    if (c == '(' || c == '[' || c == '{') braces_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (braces_.empty()) return fail("unexpected '" + std::string(known) + "'");
      if (braces_.back() != c)
        return fail("unexpected '" + std::string(known) + "', expected '" + braces_.back() + "'");
      braces_.pop_back();
    }
    add(TokenType::kOperator, std::string(known));
    move_to(at_ + known.size());
  }

  void read_string() {
    const char quote = text_[at_];
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return fail("a string that does not end");
    auto value = unescaped(std::string_view(text_).substr(at_ + 1, end - at_ - 1));
    if (value) add(TokenType::kString, *std::move(value));
    move_to(end + 1);
  }

  std::optional<char32_t> hex(std::string_view body, std::size_t from, std::size_t digits) {
    const auto value =
        from + digits <= body.size() ? parse_hex(body.substr(from, digits)) : std::nullopt;
    if (!value || *value > 0x10ffff || (*value >= 0xd800 && *value < 0xe000)) {
      fail("an escape in a string that is no character");
      return {};
    }
    return value;
  }
  static std::optional<char32_t> parse_hex(std::string_view digits) {
    char32_t value = 0;
    for (const char c : digits) {
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(static_cast<char>(is_digit(c) ? c : c | 0x20));
      if (digit == std::string_view::npos) return {};
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }

  // Python's escapes; an unknown one keeps its backslash.
  std::optional<std::string> unescaped(std::string_view body) {
    std::string out;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i] != '\\' || i + 1 >= body.size()) {
        out += body[i];
        continue;
      }
      const char c = body[++i];
      constexpr std::string_view kLetters = "ntrabfv\\'\"\n", kValues = "\n\t\r\a\b\f\v\\'\"";
      if (const std::size_t plain = kLetters.find(c); plain != kLetters.npos) {
        if (c != '\n') out += kValues[plain];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        const auto code = hex(body, i + 1, digits);
        if (!code) return {};
        append_code_point(out, *code);
        i += digits;
      } else if (c >= '0' && c <= '7') {
        char32_t code = 0;
        std::size_t end = i;
        for (; end < std::min(i + 3, body.size()) && body[end] >= '0' && body[end] <= '7'; ++end)
          code = code * 8 + static_cast<char32_t>(body[end] - '0');
        append_code_point(out, code);
        i = end - 1;
      } else if (c == 'N') {
        fail("escapes by a character's name (\\N{…}) are not supported");
        return {};
      } else {
        out.append(1, '\\').append(1, c);
      }
    }
    return out;
  }

  const std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // what was read last ends with a newline
  std::string braces_;         // the closing ones of those that are open
  std::vector<Token> tokens_;
  std::optional<Error> error_;
};

}  // namespace

Error syntax_error(int line, const std::string& message) {
  return {.code = ErrorCode::kInvalid, .message = "line " + std::to_string(line) + ": " + message};
}

Result<std::vector<Token>> tokenize(std::string_view template_text) {
  return Lexer(with_newlines(template_text)).tokens();
}

}  // namespace tandem::jinja
