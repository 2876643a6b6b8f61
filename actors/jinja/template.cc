#include "actors/jinja/template.h"

#include <algorithm>
#include <utility>

#include "actors/jinja/parser.h"

namespace tandem::jinja {
namespace {

void add_texts(const Body& body, std::vector<std::string_view>& texts);

void add_texts(const Expression* expression, std::vector<std::string_view>& texts) {
  if (expression == nullptr) return;
  if (expression->kind == Expression::Kind::kConstant && expression->constant.is_string())
    texts.push_back(expression->constant.text());
  for (const auto& part : expression->parts) add_texts(part.get(), texts);
  for (const auto& argument : expression->arguments.positional) add_texts(argument.get(), texts);
  for (const auto& [name, argument] : expression->arguments.named) add_texts(argument.get(), texts);
}

void add_texts(const Body& body, std::vector<std::string_view>& texts) {
  for (const auto& statement : body) {
    if (statement->kind == Statement::Kind::kData) texts.push_back(statement->text);
    for (const auto& expression : statement->expressions) add_texts(expression.get(), texts);
    for (const auto& parameter : statement->signature.parameters)
      add_texts(parameter.otherwise.get(), texts);
    for (const Body& inner : statement->bodies) add_texts(inner, texts);
  }
}

// "line 7: message" becomes the error "message" at "FILE:7".
Error placed(const Error& error, const std::string& where) {
  const std::size_t digits = std::string_view("line ").size(), end = error.message.find(": ");
  return {.code = error.code,
          .message = error.message.substr(end + 2),
          .where = where + ":" + error.message.substr(digits, end - digits)};
}

}  // namespace

Template::Template(Tree tree, std::string where)
    : tree_(std::make_shared<const Tree>(std::move(tree))), where_(std::move(where)) {}

Result<Template> Template::parse(std::string_view text, std::string where) {
  auto tree = parse_template(text);
  if (!tree) return placed(tree.error(), where);
  return Template(*std::move(tree), std::move(where));
}

Result<Rendered> Template::render(Inputs inputs, const std::optional<std::tm>& now,
                                  const Limits& limits) const {
  Run run(limits, now);
  Interpreter interpreter(run, *tree_);
  interpreter.render(inputs);
  if (const auto& failure = run.failure())
    return Error{.code = ErrorCode::kInvalid,
                 .message = failure->message,
                 .where = where_ + ":" + std::to_string(failure->line)};
  return Rendered{interpreter.text(), interpreter.generations()};
}

std::vector<std::string_view> Template::texts() const {
  std::vector<std::string_view> texts;
  add_texts(tree_->body, texts);
  return texts;
}

bool Template::reads(std::string_view name) const {
  return std::ranges::count(tree_->names, name) > 0;
}

}  // namespace tandem::jinja
