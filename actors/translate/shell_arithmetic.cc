#include "actors/translate/shell_arithmetic.h"

#include <cctype>
#include <charconv>

namespace tandem::translate {
namespace {

using MaybeInt = std::optional<std::int64_t>;

constexpr int kParenthesesDeepMax = 50;  // parentheses and signs within each other

class Expression {
 public:
  Expression(std::string_view text, const ArithmeticNames& names) : text_(text), names_(names) {}

  MaybeInt whole() {
    const MaybeInt value = sum();
    skip_blanks();
    return at_ == text_.size() ? value : MaybeInt();
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view sign) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  MaybeInt sum() {
    MaybeInt left = product();
    while (left) {
      const bool plus = take("+");
      if (!plus && !take("-")) break;
      const MaybeInt right = product();
      std::int64_t result = 0;
      if (!right || (plus ? __builtin_add_overflow(*left, *right, &result)
                          : __builtin_sub_overflow(*left, *right, &result)))
        return {};
      left = result;
    }
    return left;
  }

  MaybeInt product() {
    MaybeInt left = power();
    while (left) {
      skip_blanks();
      const char sign = at_ < text_.size() ? text_[at_] : '\0';
      if (sign != '*' && sign != '/' && sign != '%') break;
      ++at_;
      const MaybeInt right = power();
      if (!right) return {};
      std::int64_t result = 0;
      if (sign == '*') {
        if (__builtin_mul_overflow(*left, *right, &result)) return {};
      } else {
        if (*right == 0 || *right == -1) return {};
        result = sign == '/' ? *left / *right : *left % *right;
      }
      left = result;
    }
    return left;
  }

  MaybeInt power() {
    const MaybeInt base = atom();
    if (!base || !take("**")) return base;
    const MaybeInt exponent = power();
    if (!exponent || *exponent < 0 || *exponent > 64) return {};
    std::int64_t result = 1;
    for (std::int64_t i = 0; i < *exponent; ++i)
      if (__builtin_mul_overflow(result, *base, &result)) return {};
    return result;
  }

  MaybeInt atom() {
    if (++depth_ > kParenthesesDeepMax) return {};
    MaybeInt value;
    if (take("(")) {
      value = sum();
      if (!take(")")) value.reset();
    } else if (take("-")) {
      value = atom();
      if (value) value = -*value;
    } else {
      value = operand();
    }
    --depth_;
    return value;
  }

  // A number, or a name with or without its dollar and braces.
  MaybeInt operand() {
    skip_blanks();
    const bool dollar = take("$"), brace = dollar && take("{");
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word.empty() || (brace && !take("}"))) return {};
    if (dollar || !std::isdigit(static_cast<unsigned char>(word[0]))) return names_(word);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return {};
    return number;
  }

  const std::string_view text_;
  const ArithmeticNames& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> arithmetic(std::string_view text, const ArithmeticNames& names) {
  return Expression(text, names).whole();
}

}  // namespace tandem::translate
