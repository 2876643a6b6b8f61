// The expressions of a template: the other half of the interpreter.
#include <string>
#include <utility>

#include "actors/jinja/builtins.h"
#include "actors/jinja/interpreter.h"
#include "actors/jinja/iteration.h"
#include "actors/jinja/operators.h"
#include "actors/jinja/printing.h"

namespace tandem::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const Run::Level level(run_);
  if (!run_.step()) return {};
  run_.line = expression.line;
  switch (expression.kind) {
    case Expression::Kind::kConstant:
      return expression.constant;
    case Expression::Kind::kName:
    case Expression::Kind::kNamespaced:
      return evaluate_name(expression);
    case Expression::Kind::kTuple:
    case Expression::Kind::kList:
    case Expression::Kind::kOr:
    case Expression::Kind::kAnd:
    case Expression::Kind::kNot:
    case Expression::Kind::kArithmetic:
    case Expression::Kind::kNegative:
    case Expression::Kind::kPositive:
    case Expression::Kind::kAttribute:
    case Expression::Kind::kItem:
      return evaluate_parts(expression);
    case Expression::Kind::kDict:
      return evaluate_dict(expression);
    case Expression::Kind::kCondition:
      return evaluate_condition(expression);
    case Expression::Kind::kCompare:
      return evaluate_comparison(expression);
    case Expression::Kind::kConcat:
      return evaluate_concat(expression);
    case Expression::Kind::kSlice:
      return evaluate_slice(expression);
    case Expression::Kind::kCall: {
      const Value called = evaluate(*expression.parts[0]);
      const Arguments arguments = evaluate_arguments(expression.arguments);
      run_.line = expression.line;
      return run_.ok() ? call(called, arguments) : Value();
    }
    case Expression::Kind::kFilter:
      return evaluate_filter(expression);
    case Expression::Kind::kTest:
      return evaluate_test(expression);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expression& expression) {
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->around)
    if (const Value* const value = frame->find(expression.name_id)) return *value;
  return Undefined{.text = expression.text};
}

Value Interpreter::evaluate_parts(const Expression& expression) {
  using Kind = Expression::Kind;
  const Kind kind = expression.kind;
  if (kind == Kind::kTuple || kind == Kind::kList) {
    Values items;
    for (const auto& part : expression.parts) items.push_back(evaluate(*part));
    if (!run_.ok()) return {};
    return kind == Kind::kTuple ? run_.tuple(std::move(items)) : run_.list(std::move(items));
  }
  Value first = evaluate(*expression.parts[0]);
  if (!run_.ok()) return {};
  run_.line = expression.line;
  if (kind == Kind::kAttribute) return get_attribute(run_, first, expression.text);
  if (kind == Kind::kNot) return !truthy(first);
  if (kind == Kind::kNegative) return negated(run_, first);
  if (kind == Kind::kPositive) return unary_plus(run_, first);
  if (kind == Kind::kOr && truthy(first)) return first;
  if (kind == Kind::kAnd && !truthy(first)) return first;
  Value second = evaluate(*expression.parts[1]);
  if (!run_.ok() || kind == Kind::kOr || kind == Kind::kAnd) return second;
  run_.line = expression.line;
  if (kind == Kind::kItem) return get_item(run_, first, second);
  return arithmetic(run_, expression.arithmetic, first, second);
}

Value Interpreter::evaluate_dict(const Expression& expression) {
  Dict dict;
  for (std::size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    const Value key = evaluate(*expression.parts[i]);
    Value value = evaluate(*expression.parts[i + 1]);
    if (!run_.ok()) return {};
    if (!hashable(key)) return run_.fail(std::string("unhashable type: '") + type_name(key) + "'");
    // A key that is no text is looked for among all before it.
    if (!key.is_string() && !run_.step(dict.size())) return {};
    dict.set(key, std::move(value));
  }
  return run_.dict(std::move(dict));
}

Value Interpreter::evaluate_condition(const Expression& expression) {
  const bool holds = truthy(evaluate(*expression.parts[1]));
  if (!run_.ok()) return {};
  if (holds) return evaluate(*expression.parts[0]);
  if (expression.parts[2]) return evaluate(*expression.parts[2]);
  return run_.undefined("the inline if-expression on line " + std::to_string(expression.line) +
                        " evaluated to false and no else section was defined.");
}

Value Interpreter::evaluate_comparison(const Expression& expression) {
  Value left = evaluate(*expression.parts[0]);
  for (std::size_t i = 0; i < expression.comparisons.size() && run_.ok(); ++i) {
    Value right = evaluate(*expression.parts[i + 1]);
    if (!run_.ok()) return {};
    run_.line = expression.line;
    if (!compares(run_, expression.comparisons[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_concat(const Expression& expression) {
  std::string text;
  for (const auto& part : expression.parts) {
    const Value value = evaluate(*part);
    if (!run_.ok()) return {};
    text += text_of(run_, value);
  }
  return run_.string(std::move(text));
}

Value Interpreter::evaluate_slice(const Expression& expression) {
  const Value object = evaluate(*expression.parts[0]);
  const auto part = [&](std::size_t i) {
    return expression.parts[i] ? evaluate(*expression.parts[i]) : Value();
  };
  const Slice slice{part(1), part(2), part(3)};
  run_.line = expression.line;
  return run_.ok() ? get_slice(run_, object, slice) : Value();
}

Value Interpreter::evaluate_filter(const Expression& expression) {
  const bool of_block = expression.parts[0] == nullptr;
  const Value value =
      of_block ? std::exchange(block_text_, Value()) : evaluate(*expression.parts[0]);
  const Arguments arguments = evaluate_arguments(expression.arguments);
  run_.line = expression.line;
  return run_.ok() ? apply_filter(run_, expression.text, value, arguments) : Value();
}

Value Interpreter::evaluate_test(const Expression& expression) {
  const Value value = evaluate(*expression.parts[0]);
  const Arguments arguments = evaluate_arguments(expression.arguments);
  run_.line = expression.line;
  return run_.ok() && apply_test(run_, expression.text, value, arguments);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& given) {
  Arguments arguments;
  for (const auto& argument : given.positional) arguments.positional.push_back(evaluate(*argument));
  for (const auto& [name, argument] : given.named)
    arguments.named.emplace_back(name, evaluate(*argument));
  if (given.star) {
    const auto items = all_items(run_, evaluate(*given.star));
    if (items)
      arguments.positional.insert(arguments.positional.end(), items->begin(), items->end());
  }
  if (given.star_star) add_star_star(evaluate(*given.star_star), arguments);
  return arguments;
}

void Interpreter::add_star_star(const Value& dict, Arguments& arguments) {
  if (!run_.ok()) return;
  if (!dict.is(Type::kDict)) {
    run_.fail(std::string("argument after ** must be a mapping, not ") + type_name(dict));
    return;
  }
  for (const auto& [key, value] : dict.as_dict().items()) {
    if (!key.is_string()) {
      run_.fail("keywords must be strings");
      return;
    }
    arguments.named.emplace_back(key.text(), value);
  }
}

}  // namespace tandem::jinja
