// A method for each level of precedence, from the loosest to the tightest, as in jinja2/parser.py.
#include "actors/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

// About 250 pairs of parentheses, each of which is four levels.
constexpr int kNestingMax = 1000;

constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};  // of Arithmetic

std::string described(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
      return "text";
    case TokenType::kBlockBegin:
      return "`{%`";
    case TokenType::kBlockEnd:
      return "`%}`";
    case TokenType::kVariableBegin:
      return "`{{`";
    case TokenType::kVariableEnd:
      return "`}}`";
    case TokenType::kString:
      return "a string";
    case TokenType::kName:
    case TokenType::kInteger:
    case TokenType::kFloat:
    case TokenType::kOperator:
      return "`" + token.text + "`";
    case TokenType::kEnd:
      return "the end of the template";
  }
  return "";
}

}  // namespace

void ExpressionParser::fail(const std::string& message) {
  if (!error_) error_ = syntax_error(current().line, message);
  at_ = tokens_.size() - 1;
}

Token ExpressionParser::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::at_operator(std::string_view which) const {
  return current().type == TokenType::kOperator && current().text == which;
}

bool ExpressionParser::at_name(std::string_view which) const {
  return current().type == TokenType::kName && current().text == which;
}

bool ExpressionParser::skip_operator(std::string_view which) {
  if (!at_operator(which)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_name(std::string_view which) {
  if (!at_name(which)) return false;
  take();
  return true;
}

void ExpressionParser::expect_operator(std::string_view which) {
  if (!skip_operator(which))
    fail("expected `" + std::string(which) + "`, found " + described(current()));
}

void ExpressionParser::expect(TokenType type) {
  if (current().type != type)
    return fail("expected " + described(Token{type, 0, {}}) + ", found " + described(current()));
  take();
}

std::string ExpressionParser::expect_name() {
  if (current().type != TokenType::kName) fail("expected a name, found " + described(current()));
  return ok() ? take().text : std::string();
}

NameId ExpressionParser::name_id(std::string_view name) {
  const auto [found, is_new] =
      name_ids_.try_emplace(std::string(name), static_cast<NameId>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return found->second;
}

ExpressionParser::Level::Level(ExpressionParser& parser, int weight)
    : parser_(parser), weight_(weight) {
  parser_.nesting_ += weight;
  if (parser_.nesting_ > kNestingMax) parser_.fail("the template is nested too deep");
}

ExpressionParser::Draft ExpressionParser::draft(Kind kind) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = current().line;
  return made;
}

// JP-1
ExpressionPointer ExpressionParser::done(Draft draft) {
  int deepest = 0;
  const auto look = [&](const ExpressionPointer& part) {
    if (part) deepest = std::max(deepest, part->depth);
  };
  for (const auto& part : draft->parts) look(part);
  for (const auto& argument : draft->arguments.positional) look(argument);
  for (const auto& [key, argument] : draft->arguments.named) look(argument);
  look(draft->arguments.star);
  look(draft->arguments.star_star);
  draft->depth = deepest + 1;
  if (draft->depth > kTreeDepthMax)
    fail("an expression has more than " + std::to_string(kTreeDepthMax) + " operators in a chain");
  return draft;
}

ExpressionPointer ExpressionParser::binary(Kind kind, ExpressionPointer left,
                                           ExpressionPointer right, int line) {
  Draft made = draft(kind);
  made->line = line;
  made->parts.push_back(std::move(left));
  made->parts.push_back(std::move(right));
  return done(std::move(made));
}

ExpressionPointer ExpressionParser::constant(Value value) {
  Draft made = draft(Kind::kConstant);
  made->constant = std::move(value);
  return made;
}

ExpressionPointer ExpressionParser::expression(bool with_condition) {
  return with_condition ? condition() : either();
}

ExpressionPointer ExpressionParser::condition() {
  const Level level(*this);
  ExpressionPointer value = either();
  while (ok() && at_name("if")) {
    Draft made = draft(Kind::kCondition);
    take();
    ExpressionPointer test = either();
    ExpressionPointer otherwise = skip_name("else") ? condition() : nullptr;
    made->parts.push_back(std::move(value));
    made->parts.push_back(std::move(test));
    made->parts.push_back(std::move(otherwise));
    value = done(std::move(made));
  }
  return value;
}

ExpressionPointer ExpressionParser::either() {
  ExpressionPointer left = both();
  while (ok() && at_name("or")) {
    const int line = take().line;
    left = binary(Kind::kOr, std::move(left), both(), line);
  }
  return left;
}

ExpressionPointer ExpressionParser::both() {
  ExpressionPointer left = negation();
  while (ok() && at_name("and")) {
    const int line = take().line;
    left = binary(Kind::kAnd, std::move(left), negation(), line);
  }
  return left;
}

ExpressionPointer ExpressionParser::negation() {
  const Level level(*this);
  if (!ok() || !at_name("not")) return comparison();
  Draft made = draft(Kind::kNot);
  take();
  made->parts.push_back(negation());
  return done(std::move(made));
}

std::optional<Comparison> ExpressionParser::comparison_operator() {
  constexpr std::pair<std::string_view, Comparison> kRows[] = {
      {"==", Comparison::kEq}, {"!=", Comparison::kNe}, {"<", Comparison::kLt},
      {"<=", Comparison::kLe}, {">", Comparison::kGt},  {">=", Comparison::kGe}};
  for (const auto& [symbol, operation] : kRows)
    if (skip_operator(symbol)) return operation;
  if (skip_name("in")) return Comparison::kIn;
  if (!at_name("not") || following().type != TokenType::kName || following().text != "in")
    return {};
  take();
  take();
  return Comparison::kNotIn;
}

ExpressionPointer ExpressionParser::comparison() {
  Draft made = draft(Kind::kCompare);
  made->parts.push_back(sum());
  while (const auto operation = ok() ? comparison_operator() : std::nullopt) {
    made->comparisons.push_back(*operation);
    made->parts.push_back(sum());
  }
  if (made->comparisons.empty()) return std::move(made->parts.front());
  return done(std::move(made));
}

std::optional<Arithmetic> ExpressionParser::arithmetic_operator(
    std::initializer_list<Arithmetic> among) {
  for (const Arithmetic operation : among)
    if (at_operator(kSymbols[static_cast<std::size_t>(operation)])) return operation;
  return {};
}

ExpressionPointer ExpressionParser::sum() {
  ExpressionPointer left = concat();
  while (const auto operation = arithmetic_operator({Arithmetic::kAdd, Arithmetic::kSub})) {
    Draft made = draft(Kind::kArithmetic);
    take();
    made->arithmetic = *operation;
    made->parts.push_back(std::move(left));
    made->parts.push_back(concat());
    left = done(std::move(made));
  }
  return left;
}

ExpressionPointer ExpressionParser::concat() {
  Draft made = draft(Kind::kConcat);
  made->parts.push_back(product());
  while (ok() && skip_operator("~")) made->parts.push_back(product());
  if (made->parts.size() == 1) return std::move(made->parts.front());
  return done(std::move(made));
}

ExpressionPointer ExpressionParser::product() {
  ExpressionPointer left = power();
  while (const auto operation = arithmetic_operator(
             {Arithmetic::kMul, Arithmetic::kDiv, Arithmetic::kFloorDiv, Arithmetic::kMod})) {
    Draft made = draft(Kind::kArithmetic);
    take();
    made->arithmetic = *operation;
    made->parts.push_back(std::move(left));
    made->parts.push_back(power());
    left = done(std::move(made));
  }
  return left;
}

ExpressionPointer ExpressionParser::power() {
  ExpressionPointer left = unary(true);
  while (const auto operation = arithmetic_operator({Arithmetic::kPow})) {
    Draft made = draft(Kind::kArithmetic);
    take();
    made->arithmetic = *operation;
    made->parts.push_back(std::move(left));
    made->parts.push_back(unary(true));
    left = done(std::move(made));
  }
  return left;
}

ExpressionPointer ExpressionParser::unary(bool with_filters) {
  const Level level(*this);
  ExpressionPointer value;
  if (at_operator("-") || at_operator("+")) {
    Draft made = draft(at_operator("-") ? Kind::kNegative : Kind::kPositive);
    take();
    made->parts.push_back(unary(false));
    value = done(std::move(made));
  } else {
    value = primary(false);
  }
  value = postfix(std::move(value));
  return with_filters ? filtered(std::move(value)) : std::move(value);
}

ExpressionPointer ExpressionParser::primary(bool attributes) {
  const Level level(*this);
  const Token& token = current();
  switch (token.type) {
    case TokenType::kName:
      return name(attributes);
    case TokenType::kString:
      return text();
    case TokenType::kInteger:
      return constant(*parse_int(take().text, 10));
    case TokenType::kFloat:
      return constant(parse_float(take().text).value_or(0));
    default:
      break;
  }
  if (at_operator("[")) return list();
  if (at_operator("{")) return dict();
  if (!skip_operator("(")) {
    fail("unexpected " + described(token));
    return nullptr;
  }
  ExpressionPointer inner = tuple_of(true, false, true, false, {});
  expect_operator(")");
  return inner;
}

ExpressionPointer ExpressionParser::name(bool attributes) {
  Draft made = draft(Kind::kName);
  const std::string word = take().text;
  if (word == "true" || word == "True") return constant(true);
  if (word == "false" || word == "False") return constant(false);
  if (word == "none" || word == "None") return constant(Value());
  used.caller = used.caller || word == "caller";
  used.kwargs = used.kwargs || word == "kwargs";
  used.varargs = used.varargs || word == "varargs";
  used.loop = used.loop || word == "loop";
  made->name_id = name_id(word);
  made->text = word;
  if (attributes && skip_operator(".")) {
    made->kind = Kind::kNamespaced;
    made->attribute = expect_name();
  }
  return made;
}

ExpressionPointer ExpressionParser::text() {
  std::string whole = take().text;
  while (current().type == TokenType::kString) whole += take().text;
  return constant(std::move(whole));
}

ExpressionPointer ExpressionParser::list() {
  Draft made = draft(Kind::kList);
  take();
  while (ok() && !at_operator("]")) {
    if (!made->parts.empty()) expect_operator(",");
    if (at_operator("]")) break;
    made->parts.push_back(expression());
  }
  expect_operator("]");
  return done(std::move(made));
}

ExpressionPointer ExpressionParser::dict() {
  Draft made = draft(Kind::kDict);
  take();
  while (ok() && !at_operator("}")) {
    if (!made->parts.empty()) expect_operator(",");
    if (at_operator("}")) break;
    made->parts.push_back(expression());
    expect_operator(":");
    made->parts.push_back(expression());
  }
  expect_operator("}");
  return done(std::move(made));
}

bool ExpressionParser::at_tuple_end(std::string_view end) const {
  const TokenType type = current().type;
  return type == TokenType::kVariableEnd || type == TokenType::kBlockEnd || at_operator(")") ||
         (!end.empty() && at_name(end));
}

ExpressionPointer ExpressionParser::tuple_of(bool with_condition, bool simple, bool parenthesised,
                                             bool attributes, std::string_view end) {
  Draft made = draft(Kind::kTuple);
  bool several = false;
  while (ok()) {
    if (!made->parts.empty()) expect_operator(",");
    if (at_tuple_end(end)) break;
    made->parts.push_back(simple ? primary(attributes) : expression(with_condition));
    if (!at_operator(",")) break;
    several = true;
  }
  if (!several && !made->parts.empty()) return std::move(made->parts.front());
  if (!several && !parenthesised) fail("expected an expression, found " + described(current()));
  return done(std::move(made));
}

ExpressionPointer ExpressionParser::tuple(bool with_condition, std::string_view end) {
  return tuple_of(with_condition, false, false, false, end);
}

ExpressionPointer ExpressionParser::target(std::string_view end, bool attributes) {
  ExpressionPointer made = tuple_of(true, true, false, attributes, end);
  const auto assignable = [](const auto& self, const Expression& one) -> bool {
    if (one.kind == Kind::kName || one.kind == Kind::kNamespaced) return true;
    return one.kind == Kind::kTuple && std::ranges::all_of(one.parts, [&](const auto& part) {
             return part && self(self, *part);
           });
  };
  if (ok() && !assignable(assignable, *made)) fail("this cannot be assigned to");
  return made;
}

ExpressionPointer ExpressionParser::name_target() {
  ExpressionPointer made = current().type == TokenType::kName ? name(false) : nullptr;
  if (ok() && (!made || made->kind != Kind::kName))
    fail("expected a name, found " + described(current()));
  return made;
}

ExpressionPointer ExpressionParser::postfix(ExpressionPointer value) {
  while (ok()) {
    if (at_operator(".") || at_operator("["))
      value = subscript(std::move(value));
    else if (at_operator("("))
      value = call(std::move(value));
    else
      break;
  }
  return value;
}

ExpressionPointer ExpressionParser::filtered(ExpressionPointer value) {
  while (ok()) {
    if (at_operator("|"))
      value = filters(std::move(value), false);
    else if (at_name("is"))
      value = test(std::move(value));
    else if (at_operator("("))
      value = call(std::move(value));
    else
      break;
  }
  return value;
}

ExpressionPointer ExpressionParser::subscript(ExpressionPointer value) {
  if (at_operator("[")) return bracketed(std::move(value));
  Draft made = draft(Kind::kAttribute);
  take();
  made->parts.push_back(std::move(value));
  if (current().type == TokenType::kName) {
    made->text = take().text;
  } else if (current().type == TokenType::kInteger) {
    made->kind = Kind::kItem;
    made->parts.push_back(constant(*parse_int(take().text, 10)));
  } else {
    fail("expected a name or number behind `.`, found " + described(current()));
  }
  return done(std::move(made));
}

ExpressionPointer ExpressionParser::bracketed(ExpressionPointer value) {
  Draft made = draft(Kind::kItem);
  take();
  made->parts.push_back(std::move(value));
  const auto part = [&] {
    const bool absent = at_operator(":") || at_operator("]") || at_operator(",");
    made->parts.push_back(absent ? nullptr : expression());
  };
  part();
  if (skip_operator(":")) {
    made->kind = Kind::kSlice;
    part();
    if (skip_operator(":"))
      part();
    else
      made->parts.push_back(nullptr);
  } else if (ok() && !made->parts.back()) {
    fail("expected an index, found " + described(current()));
  } else if (at_operator(",")) {  // d[1, 2] is d[(1, 2)]
    Draft key = draft(Kind::kTuple);
    key->parts.push_back(std::move(made->parts.back()));
    while (ok() && skip_operator(",")) key->parts.push_back(expression());
    made->parts.back() = done(std::move(key));
  }
  expect_operator("]");
  return done(std::move(made));
}

CallArguments ExpressionParser::call_arguments() {
  CallArguments made;
  take();
  bool first = true;
  while (ok() && !at_operator(")")) {
    if (!first) expect_operator(",");
    if (at_operator(")")) break;
    first = false;
    bool sound = true;
    if (at_operator("*")) {
      sound = !made.star && !made.star_star;
      take();
      made.star = expression();
    } else if (at_operator("**")) {
      sound = !made.star_star;
      take();
      made.star_star = expression();
    } else if (current().type == TokenType::kName && following().type == TokenType::kOperator &&
               following().text == "=") {
      sound = !made.star_star;
      std::string key = take().text;
      take();
      made.named.emplace_back(std::move(key), expression());
    } else {
      sound = !made.star && !made.star_star && made.named.empty();
      made.positional.push_back(expression());
    }
    if (!sound) fail("the arguments of a call are in a wrong order");
  }
  expect_operator(")");
  return made;
}

ExpressionPointer ExpressionParser::call(ExpressionPointer called) {
  Draft made = draft(Kind::kCall);
  made->parts.push_back(std::move(called));
  made->arguments = call_arguments();
  return done(std::move(made));
}

std::string ExpressionParser::dotted_name() {
  std::string whole = expect_name();
  while (ok() && skip_operator(".")) whole += "." + expect_name();
  return whole;
}

ExpressionPointer ExpressionParser::filters(ExpressionPointer value, bool inline_first) {
  while (ok() && (inline_first || at_operator("|"))) {
    if (!inline_first) take();
    inline_first = false;
    Draft made = draft(Kind::kFilter);
    made->text = dotted_name();
    made->parts.push_back(std::move(value));
    if (at_operator("(")) made->arguments = call_arguments();
    value = done(std::move(made));
  }
  return value;
}

ExpressionPointer ExpressionParser::test(ExpressionPointer value) {
  Draft made = draft(Kind::kTest);
  take();
  const bool negated = skip_name("not");
  made->text = dotted_name();
  made->parts.push_back(std::move(value));
  const TokenType type = current().type;
  if (at_operator("(")) {
    made->arguments = call_arguments();
  } else if ((type == TokenType::kName || type == TokenType::kString ||
              type == TokenType::kInteger || type == TokenType::kFloat || at_operator("[") ||
              at_operator("{")) &&
             !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail("tests cannot be chained with `is`");
    made->arguments.positional.push_back(postfix(primary(false)));
  }
  ExpressionPointer tested = done(std::move(made));
  if (!negated) return tested;
  Draft made_not = draft(Kind::kNot);
  made_not->parts.push_back(std::move(tested));
  return done(std::move(made_not));
}

}  // namespace tandem::jinja
