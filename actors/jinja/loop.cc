#include "actors/jinja/loop.h"

#include <utility>

#include "actors/jinja/run.h"

namespace tandem::jinja {
namespace {

Value cycle(Run& run, const Value& self, const Arguments& arguments) {
  const Values& items = arguments.positional;
  if (items.empty()) return run.fail("no items for cycling given");
  return items[static_cast<std::size_t>(self.as_loop().index0) % items.size()];
}

Value changed(Run& run, const Value& self, const Arguments& arguments) {
  Loop& loop = self.as_loop();
  const Values& values = arguments.positional;
  run.step(extent_of(std::span(values)).items);
  if (loop.changed && std::ranges::equal(*loop.changed, values, equal)) return false;
  loop.changed = values;
  return true;
}

}  // namespace

Loop::Loop(Run& run, const Value& source, Keeps keeps)
    : source_(source), cursor_(run, source), keeps_(std::move(keeps)) {}

std::optional<Value> Loop::pull(Run& run) {
  if (!pending_.empty()) {
    Value item = std::move(pending_.front());
    pending_.pop_front();
    return item;
  }
  while (auto item = cursor_.next()) {
    if (!keeps_ || keeps_(*item)) return run.ok() ? item : std::nullopt;
    if (!run.ok()) break;
  }
  return {};
}

const std::optional<Value>& Loop::peek(Run& run) {
  if (!peeked_) after_ = pull(run);
  peeked_ = true;
  return after_;
}

std::optional<Value> Loop::advance(Run& run) {
  std::optional<Value> item = peek(run);
  peeked_ = false;
  if (!item) return {};
  ++index0;
  before_ = std::exchange(current_, *item);
  return item;
}

std::int64_t Loop::length(Run& run) {
  if (length_) return *length_;
  length_ = keeps_ ? std::nullopt : jinja::length(source_);
  if (length_) return *length_;
  std::deque<Value> rest;
  while (auto item = pull(run)) {
    if (!run.charge(sizeof(Value))) break;
    rest.push_back(*std::move(item));
  }
  pending_ = std::move(rest);
  const bool ahead = peeked_ && after_;
  length_ = std::ssize(pending_) + index0 + 1 + (ahead ? 1 : 0);
  return *length_;
}

std::optional<Value> Loop::attribute(Run& run, const Value& self, std::string_view name) {
  const auto method = [&](std::string_view known, Callable::Function function) {
    return Value(std::make_shared<const Callable>(Callable{known, function, self}));
  };
  if (name == "index") return Value(index0 + 1);
  if (name == "index0") return Value(index0);
  if (name == "first") return Value(index0 == 0);
  if (name == "last") return Value(!peek(run).has_value());
  if (name == "length") return Value(length(run));
  if (name == "revindex") return Value(length(run) - index0);
  if (name == "revindex0") return Value(length(run) - index0 - 1);
  if (name == "previtem") return index0 == 0 ? run.undefined("there is no previous item") : before_;
  if (name == "nextitem") {
    const auto& next = peek(run);
    return next ? *next : run.undefined("there is no next item");
  }
  if (name == "depth") return Value(depth0 + 1);
  if (name == "depth0") return Value(depth0);
  if (name == "cycle") return method("cycle", cycle);
  if (name == "changed") return method("changed", jinja::changed);
  return {};
}

}  // namespace tandem::jinja
