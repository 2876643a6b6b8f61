// Executes statements, and macros. Expressions are in evaluation.cc, which is of the same class.
//
// A function returns as soon as the run has failed; Flow says whether a loop is left or goes on. A
// frame lies in a Scope on the stack of C++, and moves to the run where a macro refers to it.
#include "actors/jinja/interpreter.h"

#include <algorithm>
#include <utility>

#include "actors/jinja/functions.h"
#include "actors/jinja/iteration.h"
#include "actors/jinja/loop.h"
#include "actors/jinja/printing.h"

namespace tandem::jinja {
namespace {

std::optional<NameId> id_of(const Tree& tree, std::string_view name) {
  const auto found = std::ranges::find(tree.names, name);
  if (found == tree.names.end()) return {};
  return static_cast<NameId>(found - tree.names.begin());
}

}  // namespace

const Value* Frame::find(NameId name) const {
  for (const auto& [id, value] : variables)
    if (id == name) return &value;
  return nullptr;
}

void Frame::set(NameId name, Value value) {
  for (auto& [id, present] : variables)
    if (id == name) {
      present = std::move(value);
      return;
    }
  variables.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(Run& run, const Tree& tree)
    : run_(run),
      tree_(tree),
      loop_name_(id_of(tree, "loop")),
      caller_name_(id_of(tree, "caller")),
      kwargs_name_(id_of(tree, "kwargs")),
      varargs_name_(id_of(tree, "varargs")) {}

void Interpreter::render(std::span<const std::pair<std::string, Value>> inputs) {
  const Scope outer(*this, nullptr);
  for (std::size_t id = 0; id < tree_.names.size(); ++id) {
    const auto given =
        std::ranges::find(inputs, tree_.names[id], [](auto& one) { return one.first; });
    const Value value = given != inputs.end() ? given->second : find_function(tree_.names[id]);
    if (given != inputs.end() || !value.is_undefined()) frame_->set(static_cast<NameId>(id), value);
  }
  const Scope top(*this, frame_);
  execute(tree_.body);
}

void Interpreter::write(std::string_view text) {
  if (!run_.charge(text.size())) return;
  if (out_->size() + text.size() > run_.limits().output_bytes) {
    run_.fail("the text is longer than " + std::to_string(run_.limits().output_bytes >> 10) +
              " KiB");
    return;
  }
  *out_ += text;
}

// The frames that a macro or a loop refers to from now on.
void Interpreter::capture_frames() {
  for (Frame* frame = frame_; frame != nullptr && !frame->captured; frame = frame->around)
    frame->captured = true;
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const auto& statement : body) {
    const Flow flow = execute(*statement);
    if (flow != Flow::kOn || !run_.ok()) return flow;
  }
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  const Run::Level level(run_);
  run_.line = statement.line;
  if (!run_.step()) return Flow::kOn;
  switch (statement.kind) {
    case Statement::Kind::kData:
      write(statement.text);
      break;
    case Statement::Kind::kOutput:
      for (const auto& expression : statement.expressions) {
        const Value value = evaluate(*expression);
        if (!run_.ok()) break;
        if (value.is_string())
          write(value.text());
        else
          write(text_of(run_, value));
      }
      break;
    case Statement::Kind::kIf:
      return execute_if(statement);
    case Statement::Kind::kFor:
      return execute_for(statement);
    case Statement::Kind::kSet:
      assign(*statement.targets[0], evaluate(*statement.expressions[0]));
      break;
    case Statement::Kind::kSetBlock:
      return execute_set_block(statement);
    case Statement::Kind::kWith:
      return execute_with(statement);
    case Statement::Kind::kMacro:
      capture_frames();
      frame_->set(statement.name_id,
                  run_.keep(std::make_unique<MacroObject>(MacroObject{&statement, frame_})));
      break;
    case Statement::Kind::kCallBlock:
      execute_call_block(statement);
      break;
    case Statement::Kind::kFilter:
      return execute_filter(statement);
    case Statement::Kind::kGeneration:
      execute_generation(statement);
      break;
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement) {
  const std::size_t conditions = statement.expressions.size();
  for (std::size_t i = 0; i < conditions; ++i) {
    const bool holds = truthy(evaluate(*statement.expressions[i]));
    if (!run_.ok()) return Flow::kOn;
    if (holds) return execute(statement.bodies[i]);
  }
  return statement.bodies.size() > conditions ? execute(statement.bodies[conditions]) : Flow::kOn;
}

Interpreter::Flow Interpreter::execute_for(const Statement& statement) {
  const Value items = evaluate(*statement.expressions[0]);
  if (!run_.ok()) return Flow::kOn;
  return loop_over(statement, items, frame_, 0);
}

Interpreter::Flow Interpreter::loop_over(const Statement& statement, const Value& items,
                                         Frame* around, std::int64_t depth0) {
  const Expression* const condition = statement.expressions[1].get();
  const Expression& target = *statement.targets[0];
  Loop::Keeps keeps;
  if (condition != nullptr)
    keeps = [this, around, condition, &target](const Value& item) {
      const Scope scope(*this, around);
      assign(target, item);
      return run_.ok() && truthy(evaluate(*condition));
    };
  auto made = std::make_unique<Loop>(run_, items, std::move(keeps));
  made->around = around;
  made->depth0 = depth0;
  if (statement.recursive) made->recursive = &statement;
  // A template can keep `loop`, and ask it for more items when the scopes around it are gone.
  if (statement.uses_loop && (condition != nullptr || statement.recursive)) capture_frames();
  Loop* const loop = statement.uses_loop ? run_.keep(std::move(made)) : made.get();
  bool any = false;
  {
    Scope scope(*this, around);
    while (const auto item = loop->advance(run_)) {
      if (any) scope.renew();
      any = true;
      if (statement.uses_loop) frame_->set(*loop_name_, loop);
      assign(target, *item);
      if (!run_.ok() || execute(statement.bodies[0]) == Flow::kBreak || !run_.ok()) break;
    }
  }
  if (any || !run_.ok() || statement.bodies.size() < 2) return Flow::kOn;
  const Scope scope(*this, around);
  return execute(statement.bodies[1]);
}

Interpreter::Flow Interpreter::execute_set_block(const Statement& statement) {
  Value value;
  Flow flow = Flow::kOn;
  {
    const Scope scope(*this, frame_);
    Capture capture(*this);
    flow = execute(statement.bodies[0]);
    value = capture.take();
    if (flow != Flow::kOn || !run_.ok()) return flow;
    if (statement.expressions[0]) {
      block_text_ = std::move(value);
      value = evaluate(*statement.expressions[0]);
    }
  }
  assign(*statement.targets[0], value);
  return flow;
}

Interpreter::Flow Interpreter::execute_with(const Statement& statement) {
  Values values;
  for (const auto& expression : statement.expressions) values.push_back(evaluate(*expression));
  const Scope scope(*this, frame_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(*statement.targets[i], values[i]);
  return execute(statement.bodies[0]);
}

Interpreter::Flow Interpreter::execute_filter(const Statement& statement) {
  const Scope scope(*this, frame_);
  Capture capture(*this);
  const Flow flow = execute(statement.bodies[0]);
  block_text_ = capture.take();
  if (flow != Flow::kOn || !run_.ok()) return flow;
  const Value value = evaluate(*statement.expressions[0]);
  if (run_.ok()) write(text_of(run_, value));
  return flow;
}

void Interpreter::execute_call_block(const Statement& statement) {
  const Expression& call_expression = *statement.expressions[0];
  const Value called = evaluate(*call_expression.parts[0]);
  Arguments arguments = evaluate_arguments(call_expression.arguments);
  if (!run_.ok()) return;
  capture_frames();
  arguments.named.emplace_back(
      "caller", run_.keep(std::make_unique<MacroObject>(MacroObject{&statement, frame_})));
  const Value value = call(called, arguments);
  if (run_.ok()) write(text_of(run_, value));
}

void Interpreter::execute_generation(const Statement& statement) {
  const Scope scope(*this, frame_);
  Capture capture(*this);
  execute(statement.bodies[0]);
  const Value value = capture.take();
  if (!run_.ok()) return;
  generations_.push_back({text_.size(), text_.size() + value.text().size()});
  write(value.text());
}

void Interpreter::assign(const Expression& target, const Value& value) {
  if (!run_.ok()) return;
  if (target.kind == Expression::Kind::kName) return frame_->set(target.name_id, value);
  if (target.kind == Expression::Kind::kNamespaced) {
    const Value space = evaluate_name(target);
    if (!space.is(Type::kNamespace)) {
      run_.fail("cannot assign attribute on non-namespace object");
    } else if (target.attribute.starts_with('_')) {
      run_.fail("an attribute of a namespace may not begin with an underscore, as '" +
                target.attribute + "' does");
    } else if (run_.charge(sizeof(Value))) {
      space.as_namespace().set(target.attribute, value);
    }
    return;
  }
  const auto items = all_items(run_, value);
  if (!items) return;
  if (items->size() != target.parts.size()) {
    run_.fail(std::string(items->size() < target.parts.size() ? "not enough" : "too many") +
              " values to unpack (expected " + std::to_string(target.parts.size()) + ", got " +
              std::to_string(items->size()) + ")");
    return;
  }
  for (std::size_t i = 0; i < items->size(); ++i) assign(*target.parts[i], (*items)[i]);
}

Value Interpreter::call(const Value& called, const Arguments& arguments) {
  const Run::Level level(run_);
  if (!run_.step()) return {};
  if (called.is(Type::kCallable))
    return called.as_callable().function(run_, called.as_callable().self, arguments);
  if (called.is(Type::kMacro)) return call_macro(called.as_macro(), arguments);
  if (called.is_undefined()) return run_.fail(called.as_undefined().message());
  if (!called.is(Type::kLoop))
    return run_.fail(std::string("'") + type_name(called) + "' object is not callable");
  const Loop& loop = called.as_loop();
  if (loop.recursive == nullptr)
    return run_.fail("The loop must have the 'recursive' marker to be called recursively.");
  const auto given = bind_arguments(run_, "loop", arguments, {"iterable"}, 1);
  if (!given) return {};
  Capture capture(*this);
  loop_over(*loop.recursive, *(*given)[0], loop.around, loop.depth0 + 1);
  return capture.take();
}

Value Interpreter::call_macro(const MacroObject& macro, const Arguments& arguments) {
  const Scope scope(*this, macro.around);
  if (!bind_parameters(macro.statement->signature, arguments)) return {};
  Capture capture(*this);
  execute(macro.statement->bodies[0]);
  return capture.take();
}

// Fills the parameters in their order, so that a default can use those before it.
bool Interpreter::bind_parameters(const Signature& signature, const Arguments& arguments) {
  const auto& parameters = signature.parameters;
  auto named = arguments.named;
  const auto take = [&](std::string_view name) -> std::optional<Value> {
    const auto found = std::ranges::find(named, name, [](auto& one) { return one.first; });
    if (found == named.end()) return {};
    Value value = found->second;
    named.erase(found);
    return value;
  };
  bool own_caller = false;
  std::vector<std::optional<Value>> values;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    own_caller = own_caller || parameters[i].name == "caller";
    values.push_back(i < arguments.positional.size() ? std::optional(arguments.positional[i])
                                                     : take(parameters[i].name));
  }
  const std::string who = "macro '" + signature.name + "'";
  if (signature.uses_caller && !own_caller) {
    const auto caller = take("caller");
    frame_->set(*caller_name_, caller ? *caller : run_.undefined("No caller defined"));
  }
  if (signature.uses_kwargs) {
    Dict rest;
    for (auto& [key, value] : named) rest.set(run_.string(key), value);
    frame_->set(*kwargs_name_, run_.dict(std::move(rest)));
  } else if (!named.empty()) {
    run_.fail(who + " takes no keyword argument '" + named.front().first + "'");
  }
  const std::size_t taken = std::min(parameters.size(), arguments.positional.size());
  if (signature.uses_varargs)
    frame_->set(*varargs_name_,
                run_.tuple({arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken),
                            arguments.positional.end()}));
  else if (arguments.positional.size() > parameters.size())
    run_.fail(who + " takes not more than " + std::to_string(parameters.size()) + " argument(s)");
  for (std::size_t i = 0; i < parameters.size() && run_.ok(); ++i) {
    const Parameter& parameter = parameters[i];
    Value value = values[i] ? *values[i]
                  : parameter.otherwise
                      ? evaluate(*parameter.otherwise)
                      : run_.undefined("parameter '" + parameter.name + "' was not provided");
    frame_->set(parameter.name_id, std::move(value));
  }
  return run_.ok();
}

}  // namespace tandem::jinja
