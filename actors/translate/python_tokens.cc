#include "actors/translate/python_tokens.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace tandem::translate {
namespace {

using TokenKind = PythonToken::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Bytes of characters outside ASCII are letters in Python, as far as they matter here.
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) ||
         static_cast<unsigned char>(c) >= 0x80;
}

void add_code_point(std::uint32_t point, std::string& out) {
  const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      add(0xe0 | point >> 12);
    } else {
      add(0xf0 | point >> 18);
      add(0x80 | (point >> 12 & 0x3f));
    }
    add(0x80 | (point >> 6 & 0x3f));
  }
  add(0x80 | (point & 0x3f));
}

class PythonScanner {
 public:
  PythonScanner(std::string_view script, const std::string& origin)
      : script_(script), origin_(origin) {}

  Result<std::vector<PythonToken>> tokens() {
    while (skip_space()) {
      const std::size_t begin = at_;
      const bool first = begin == 0 || script_[begin - 1] == '\n';
      PythonToken token;
      token.begin = begin;
      token.line = line_;
      token.begins_line = first;
      if (auto read = next(token); !read) return read.error();
      token.end = at_;
      tokens_.push_back(std::move(token));
    }
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < script_.size() ? script_[at_ + ahead] : '\0';
  }

  // False at the end of the script.
  bool skip_space() {
    for (; at_ < script_.size(); ++at_) {
      const char c = script_[at_];
      if (c == '#') at_ = std::min(script_.find('\n', at_), script_.size());
      if (at_ == script_.size()) return false;
      if (script_[at_] == '\n') ++line_;
      const bool space = std::string_view(" \t\r\n\f").find(script_[at_]) != std::string_view::npos;
      if (!space && !(c == '\\' && (peek(1) == '\n' || peek(1) == '\r'))) return true;
    }
    return false;
  }

  Result<void> next(PythonToken& token) {
    std::size_t prefix = 0;
    while (prefix < 3 && std::string_view("rRbBuUfFtT").find(peek(prefix)) != std::string::npos)
      ++prefix;
    if (peek(prefix) == '"' || peek(prefix) == '\'') return string(token, prefix);
    if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) {
      token.kind = TokenKind::kNumber;
      while (is_word(peek()) || peek() == '.' || (is_exponent_sign() && is_digit(peek(1)))) ++at_;
    } else if (is_word(peek())) {
      token.kind = TokenKind::kName;
      while (is_word(peek())) ++at_;
    } else {
      ++at_;
    }
    token.text = script_.substr(token.begin, at_ - token.begin);
    return {};
  }

  bool is_exponent_sign() const {
    return (peek() == '-' || peek() == '+') && (script_[at_ - 1] == 'e' || script_[at_ - 1] == 'E');
  }

  Result<void> string(PythonToken& token, std::size_t prefix) {
    bool raw = false;
    token.kind = TokenKind::kText;
    for (; prefix > 0; --prefix, ++at_) {
      raw = raw || peek() == 'r' || peek() == 'R';
      if (std::string_view("rRuU").find(peek()) == std::string::npos)
        token.kind = TokenKind::kOther;
    }
    const char quote = peek();
    const std::size_t quotes = peek(1) == quote && peek(2) == quote ? 3 : 1;
    const std::string end(quotes, quote);
    for (at_ += quotes; !script_.substr(at_).starts_with(end);) {
      if (at_ >= script_.size() || (peek() == '\n' && quotes == 1))
        return Error{ErrorCode::kInvalid, "a string has no end",
                     origin_ + ":" + std::to_string(token.line), "is the script whole?"};
      if (peek() == '\n') ++line_;
      if (peek() != '\\')
        token.text += script_[at_++];
      else if (raw)
        take_raw(token.text);
      else
        take_escape(token);
    }
    at_ += quotes;
    return {};
  }

  // A backslash of a raw string stays, and so does a quote behind it.
  void take_raw(std::string& text) {
    text += script_[at_++];
    if (at_ == script_.size()) return;
    if (peek() == '\n') ++line_;
    text += script_[at_++];
  }

  void take_escape(PythonToken& token) {
    constexpr std::string_view kPlain = "\\'\"abfnrtv", kMeant = "\\'\"\a\b\f\n\r\t\v";
    const char c = peek(1);
    at_ += std::min<std::size_t>(2, script_.size() - at_);
    if (const auto plain = kPlain.find(c); c != '\0' && plain != std::string_view::npos)
      token.text += kMeant[plain];
    else if (c == '\n')
      ++line_;  // the line goes on
    else if (c == 'x' || c == 'u' || c == 'U')
      take_code(c == 'x' ? 2 : c == 'u' ? 4 : 8, token);
    else if (is_digit(c) || c == 'N')
      token.kind = TokenKind::kOther;
    else
      token.text += std::string("\\") + c;
  }

  void take_code(std::size_t digits, PythonToken& token) {
    std::uint32_t point = 0;
    const std::string_view hex = script_.substr(at_, digits);
    const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), point, 16);
    const bool whole = hex.size() == digits && read.ptr == hex.data() + hex.size();
    if (!whole || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
      token.kind = TokenKind::kOther;
      return;
    }
    at_ += digits;
    add_code_point(point, token.text);
  }

  std::string_view script_;
  const std::string& origin_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<PythonToken> tokens_;
};

}  // namespace

Result<std::vector<PythonToken>> python_tokens(std::string_view script, const std::string& origin) {
  return PythonScanner(script, origin).tokens();
}

}  // namespace tandem::translate
