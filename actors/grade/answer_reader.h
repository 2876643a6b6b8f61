// The parser behind read_answer(): recursive descent over the tokens of an answer, with [] for what
// may be missing and {} for what may repeat:
//
//   answer    := relation { separator relation }
//   relation  := union { (= | ≠ | < | > | ≤ | ≥ | ∈) union }
//   union     := item { (∪ | \setminus) item }
//   item      := sum [: sum] [%] [unit] | words
//   sum       := [sign] [currency] product [currency] { sign product }
//   product   := factor { [* | /] factor }
//   factor    := base { ! | ^ exponent | ° }
//   base      := number | name | ( list ) | \frac.. | \sqrt.. | function argument | matrix | …
//
// Every function returns none at the first token that it cannot account for, and at kDepthMax.
// read_answer.cc has the functions from `answer` down to `factor`, read_base.cc those of `base`.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/grade/expression.h"
#include "actors/grade/token.h"

namespace tandem::grade {

using MaybeExpr = std::optional<Expr>;

// Whether `name` is that of a function with an argument, such as sin.
bool is_function_name(std::string_view name);
bool digits_only(std::string_view text);

class AnswerReader {
 public:
  explicit AnswerReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  MaybeExpr answer();

 private:
  const Token& next(std::size_t ahead = 0) const;
  bool sees(std::string_view text, std::size_t ahead = 0) const;
  bool take(std::string_view text);

  // Counts a level of nesting while it exists.
  struct Level {
    explicit Level(int& levels) : depth(levels) { ++depth; }
    ~Level() { --depth; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    int& depth;
  };

  bool separator(std::string& word);
  std::string relation_sign();
  MaybeExpr relation();
  MaybeExpr united();
  MaybeExpr item();
  MaybeExpr item_with_unit();
  MaybeExpr words();

  // units
  void note_unit(std::string_view name);
  void currency();
  bool unit_words(std::string& phrase);
  bool unit_power(std::string& phrase);
  bool unit_fraction(std::string& phrase);
  std::optional<bool> unit_piece(std::string& phrase);
  MaybeExpr unit(Expr value);

  // sums and products
  MaybeExpr sum();
  bool begins_base() const;
  MaybeExpr product_of_factors();
  MaybeExpr mixed_number();
  static bool proper(const Expr& above, const Expr& below);
  static Expr sum_of(const Expr& whole, const Expr& above, const Expr& below);
  MaybeExpr factor();
  void degree(Expr& value);
  MaybeExpr power_of();

  // groups and arguments
  MaybeExpr group();
  MaybeExpr argument();
  std::optional<std::vector<Expr>> items_until(std::initializer_list<std::string_view> closers,
                                               std::string& closer);
  MaybeExpr bracket();
  MaybeExpr set();
  bool begins_builder() const;
  MaybeExpr set_builder();
  MaybeExpr enclosed(std::string_view closer, Op op, const char* brackets);
  static bool has_value_or_sign(const Expr& expr);

  // what a factor begins with
  MaybeExpr base();
  MaybeExpr bars();
  MaybeExpr number_or_other_base();
  static MaybeExpr repeating(const std::string& digits, const std::string& period);
  std::optional<std::string> subscript();
  MaybeExpr name();
  MaybeExpr angle();
  MaybeExpr command();
  MaybeExpr root(const std::string& name);
  MaybeExpr function_of(const std::string& name);
  MaybeExpr open_argument();
  static MaybeExpr applied(std::string name, const Expr& of, const MaybeExpr& exponent,
                           const MaybeExpr& base_of_log);
  MaybeExpr matrix(const std::string& begin);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int bars_ = 0;                // 1 within |…|, where the next bar closes
  int functions_ = 0;           // arguments of functions that are being read
  bool open_argument_ = false;  // the last factor was a function without brackets
  bool bare_function_ = false;  // the last base was a function, and a power follows its brackets
  std::string unit_;            // of the item that is being read, by the signs $ and ° in it
};

}  // namespace tandem::grade
