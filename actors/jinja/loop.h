// The variable `loop` of a for statement: it reads the items, one ahead where it is asked for the
// next or the last one, and knows where it is.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>

#include "actors/jinja/iteration.h"
#include "actors/jinja/value.h"

namespace tandem::jinja {

struct Frame;
struct Statement;

struct Loop {
  // Whether an item passes the loop's condition; empty: all do.
  using Keeps = std::function<bool(const Value& item)>;
  Loop(Run& run, const Value& source, Keeps keeps);

  // Goes on to the next item, and returns it; nothing at the end.
  std::optional<Value> advance(Run& run);
  std::optional<Value> attribute(Run& run, const Value& self, std::string_view name);
  std::int64_t length(Run& run);

  // Where the loop can be called with further items (`recursive`): its statement, the frame around
  // it, and how many loops of it are around this one.
  const Statement* recursive = nullptr;
  Frame* around = nullptr;
  std::int64_t depth0 = 0;
  std::optional<Values> changed;  // the values of the last call of loop.changed()
  std::int64_t index0 = -1;

 private:
  std::optional<Value> pull(Run& run);
  const std::optional<Value>& peek(Run& run);

  Value source_;
  Cursor cursor_;
  Keeps keeps_;
  std::deque<Value> pending_;  // items that length() read
  std::optional<std::int64_t> length_;
  bool peeked_ = false;
  std::optional<Value> after_;
  Value before_, current_;
};

}  // namespace tandem::jinja
