// Walks a template's tree and writes its text. Scopes are Jinja's: a loop, a macro and a block of
// captured text have variables of their own, an `if` has none, and a `set` writes into the
// innermost scope alone.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/jinja/run.h"
#include "actors/jinja/syntax.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

// The variables of one scope. `captured`: a macro refers to it, which may outlive the scope; it is
// then kept to the end of the run.
struct Frame {
  Frame* around = nullptr;
  bool captured = false;
  std::vector<std::pair<NameId, Value>> variables = {};

  const Value* find(NameId name) const;
  void set(NameId name, Value value);
};

// A macro, or the body of a call block, with the frame in which it was defined.
struct MacroObject {
  const Statement* statement = nullptr;
  Frame* around = nullptr;
};

// A part of the text, in bytes: [begin, end).
struct Span {
  std::size_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

class Interpreter {
 public:
  Interpreter(Run& run, const Tree& tree);

  // Writes the template's text, with `inputs` as its variables. After a failure it is a part.
  void render(std::span<const std::pair<std::string, Value>> inputs);
  const std::string& text() const { return text_; }
  const std::vector<Span>& generations() const { return generations_; }

 private:
  enum class Flow : std::uint8_t { kOn, kBreak, kContinue };
  class Scope;
  class Capture;

  void write(std::string_view text);
  void capture_frames();

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow execute_if(const Statement& statement);
  Flow execute_for(const Statement& statement);
  Flow loop_over(const Statement& statement, const Value& items, Frame* around,
                 std::int64_t depth0);
  Flow execute_set_block(const Statement& statement);
  Flow execute_with(const Statement& statement);
  Flow execute_filter(const Statement& statement);
  void execute_call_block(const Statement& statement);
  void execute_generation(const Statement& statement);
  void assign(const Expression& target, const Value& value);

  Value evaluate(const Expression& expression);
  Value evaluate_name(const Expression& expression);
  Value evaluate_parts(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_condition(const Expression& expression);
  Value evaluate_comparison(const Expression& expression);
  Value evaluate_concat(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_filter(const Expression& expression);
  Value evaluate_test(const Expression& expression);
  Arguments evaluate_arguments(const CallArguments& given);
  void add_star_star(const Value& dict, Arguments& arguments);

  Value call(const Value& called, const Arguments& arguments);
  Value call_macro(const MacroObject& macro, const Arguments& arguments);
  bool bind_parameters(const Signature& signature, const Arguments& arguments);

  Run& run_;
  const Tree& tree_;
  std::string text_;           // of the whole template
  std::string* out_ = &text_;  // where output goes: text_, or what a macro or a block captures
  Frame* frame_ = nullptr;
  Value block_text_;  // what the filters of a block begin with
  std::optional<NameId> loop_name_, caller_name_, kwargs_name_, varargs_name_;
  std::vector<Span> generations_;
};

// A frame within `around`, which is the present one as long as the scope lives.
class Interpreter::Scope {
 public:
  Scope(Interpreter& interpreter, Frame* around)
      : interpreter_(interpreter), before_(interpreter.frame_), around_(around) {
    open();
  }
  ~Scope() {
    close();
    interpreter_.frame_ = before_;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // The frame is empty again.
  void renew() {
    if (!frame_->captured) return frame_->variables.clear();
    close();
    open();
  }

 private:
  void open() {
    frame_ = std::make_unique<Frame>(Frame{.around = around_});
    interpreter_.frame_ = frame_.get();
  }
  void close() {
    if (frame_->captured) interpreter_.run_.keep(std::move(frame_));
  }

  Interpreter& interpreter_;
  Frame* const before_;
  Frame* const around_;
  std::unique_ptr<Frame> frame_;
};

// Output goes into a text of its own as long as this lives, or until take().
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), before_(std::exchange(interpreter.out_, &text_)) {}
  ~Capture() { interpreter_.out_ = before_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Value take() {
    interpreter_.out_ = before_;
    return interpreter_.run_.string(std::move(text_));
  }

 private:
  Interpreter& interpreter_;
  std::string text_;
  std::string* const before_;
};

}  // namespace tandem::jinja
