// One rendering's budget, its first failure, and the objects with an identity that it makes (JV-2).
//
// A function that fails calls fail() and returns any value; whoever evaluates looks at ok() before
// it goes on, and the first failure is the one that counts. Values that take memory are made here,
// so that nothing grows unseen.
//
//   JR-1  Steps, bytes and nesting are bounded by Limits, and the failure names the limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/jinja/value.h"

namespace tandem::jinja {

// What one rendering may use. Far above what a template of a chat model needs: a conversation of
// 1000 messages takes about a million steps.
struct Limits {
  std::uint64_t steps = 20'000'000;          // evaluated nodes, and items that filters touch
  std::size_t output_bytes = 64u << 20;      // of the text
  std::size_t allocated_bytes = 512u << 20;  // of all strings and lists that are made
  std::size_t nesting = 800;                 // expressions, statements and macros within another
};

// Why a rendering ended, and where.
struct Failure {
  std::string message;
  int line = 0;  // of the template
};

class Run {
 public:
  explicit Run(const Limits& limits, std::optional<std::tm> now);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool ok() const { return !failure_; }
  const std::optional<Failure>& failure() const { return failure_; }
  // Notes the failure, unless there is one already. The value is undefined.
  Value fail(std::string message);
  // For the operations that Jinja tries, and whose failure it takes for "not there".
  void forget_failure() { failure_.reset(); }

  // Counts work; false where the run has failed or has no more steps.
  bool step(std::uint64_t count = 1);
  // Counts memory before it is taken; false likewise.
  bool charge(std::size_t bytes);

  // One more level of recursion, for as long as it lives. ok(): there was room.
  class Level {
   public:
    explicit Level(Run& run);
    ~Level() { --run_.nesting_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Run& run_;
  };

  Value string(std::string text, bool markup = false);
  Value list(Values items);
  Value tuple(Values items);
  Value dict(Dict dict);
  Value iterator(Values items, std::string failure = {});
  Value view(const Value& dict, View::Part part);
  Value undefined(std::string message);

  // Text that lives as long as the run.
  std::string_view keep(std::string text);
  // An object that values refer to, and that lives as long as the run (JV-2).
  template <class T>
  T* keep(std::unique_ptr<T> object) {
    charge(sizeof(T));
    T* const kept = object.get();
    kept_.push_back(std::move(object));
    return kept;
  }

  const std::optional<std::tm>& now() const { return now_; }
  const Limits& limits() const { return limits_; }
  int line = 1;  // of the node that is evaluated

 private:
  const Limits limits_;
  const std::optional<std::tm> now_;
  std::optional<Failure> failure_;
  std::uint64_t steps_ = 0;
  std::size_t bytes_ = 0;
  std::size_t nesting_ = 0;
  std::deque<std::string> texts_;
  std::deque<std::shared_ptr<void>> kept_;
};

// The values that a call gives for the parameters `names`, by position or by name; nullptr: it
// gives none. Fails, and returns nothing, where a value has no parameter or one of the first
// `required` has no value. `who` is named in the failure.
template <std::size_t kCount>
using Bound = std::optional<std::array<const Value*, kCount>>;
bool bind_arguments(Run& run, std::string_view who, const Arguments& arguments,
                    std::span<const std::string_view> names, std::size_t required,
                    std::span<const Value*> values);
template <std::size_t kCount>
Bound<kCount> bind_arguments(Run& run, std::string_view who, const Arguments& arguments,
                             const std::string_view (&names)[kCount], std::size_t required = 0) {
  std::array<const Value*, kCount> values{};
  if (!bind_arguments(run, who, arguments, std::span(names), required, std::span(values)))
    return {};
  return values;
}
// Fails where a call gives any value.
bool bind_no_arguments(Run& run, std::string_view who, const Arguments& arguments);

// The integer of a value, or `otherwise` where it is absent or None. Another type is a failure.
std::int64_t int_or(Run& run, const Value* value, std::int64_t otherwise);
// The text of a value that has to be a string; `otherwise` where it is absent.
std::string_view text_or(Run& run, std::string_view who, const Value* value,
                         std::string_view otherwise);

}  // namespace tandem::jinja
