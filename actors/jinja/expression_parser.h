// The part of the parser that reads expressions, and what both parts share: the tokens, the names,
// and the first error, after which there are no more tokens.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/jinja/lexer.h"
#include "actors/jinja/syntax.h"
#include "runtime/base/result.h"

namespace tandem::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  bool ok() const { return !error_; }
  const std::optional<Error>& error() const { return error_; }
  void fail(const std::string& message);

  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool at_operator(std::string_view which) const;
  bool at_name(std::string_view which) const;
  bool skip_operator(std::string_view which);
  bool skip_name(std::string_view which);
  void expect_operator(std::string_view which);
  void expect(TokenType type);
  std::string expect_name();

  NameId name_id(std::string_view name);
  std::vector<std::string> names() && { return std::move(names_); }

  // Names that mean something in the body of a macro or a loop. A parser of statements clears this
  // before a body and looks at it behind.
  struct Used {
    bool caller = false, kwargs = false, varargs = false, loop = false;
  };
  Used used;

  ExpressionPointer expression(bool with_condition = true);
  // Several expressions between commas are a tuple. `end` is a name at which the tuple ends.
  ExpressionPointer tuple(bool with_condition = true, std::string_view end = {});
  // What a `set` or `for` assigns to: a name, several, or with `attributes` namespace.attribute.
  ExpressionPointer target(std::string_view end, bool attributes);
  ExpressionPointer name_target();
  // A chain of filters behind `value`, which is null for the text of a block. With `inline_first`
  // the first filter has no bar before it.
  ExpressionPointer filters(ExpressionPointer value, bool inline_first);

  // One more level of recursion, for as long as it lives. A block takes more of the stack than an
  // expression, and has more weight.
  class Level {
   public:
    explicit Level(ExpressionParser& parser, int weight = 1);
    ~Level() { parser_.nesting_ -= weight_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
    const int weight_;
  };

 private:
  using Kind = Expression::Kind;
  using Draft = std::unique_ptr<Expression>;
  using Parse = ExpressionPointer (ExpressionParser::*)();

  Draft draft(Kind kind) const;
  ExpressionPointer done(Draft draft);
  ExpressionPointer binary(Kind kind, ExpressionPointer left, ExpressionPointer right, int line);
  ExpressionPointer constant(Value value);

  ExpressionPointer condition();
  ExpressionPointer either();
  ExpressionPointer both();
  ExpressionPointer negation();
  ExpressionPointer comparison();
  ExpressionPointer sum();
  ExpressionPointer concat();
  ExpressionPointer product();
  ExpressionPointer power();
  ExpressionPointer unary(bool with_filters);
  ExpressionPointer primary(bool attributes);
  ExpressionPointer name(bool attributes);
  ExpressionPointer text();
  ExpressionPointer list();
  ExpressionPointer dict();
  ExpressionPointer postfix(ExpressionPointer value);
  ExpressionPointer filtered(ExpressionPointer value);
  ExpressionPointer subscript(ExpressionPointer value);
  ExpressionPointer bracketed(ExpressionPointer value);
  ExpressionPointer call(ExpressionPointer called);
  ExpressionPointer test(ExpressionPointer value);
  ExpressionPointer tuple_of(bool with_condition, bool simple, bool parenthesised, bool attributes,
                             std::string_view end);
  CallArguments call_arguments();
  std::optional<Comparison> comparison_operator();
  std::optional<Arithmetic> arithmetic_operator(std::initializer_list<Arithmetic> among);
  std::string dotted_name();
  bool at_tuple_end(std::string_view end) const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::optional<Error> error_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> name_ids_;
};

}  // namespace tandem::jinja
