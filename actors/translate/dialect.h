// A dialect is the configuration of one framework as a value: how it is recognised, what becomes of
// each of its keys, and the framework's own values of keys that are left out. dialects.h has the
// table of them. A new framework is a source of its own and a row there.
//
//   verl_dialect   {.name = "verl", .marks = {"actor_rollout_ref."}, .rules = kRules, …}
//   a rule         {"actor_rollout_ref.rollout.n", "rollout.n"}
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "actors/translate/finding.h"

namespace tandem::translate {

class Draft;  // draft.h

// A value as the job has it. Neither: the job has no value for it, and nothing is lost by that.
struct Converted {
  std::optional<nlohmann::json> value;
  std::string refused = {};  // why the job cannot have it, a sentence; it differs then
};
using Conversion = Converted (*)(const nlohmann::json& value);

// What becomes of a key, or of all keys that begin with what stands before a final `*`. Where
// several rules fit a key, the one with the longest text decides.
struct Rule {
  std::string_view key;
  // The key of the job that gets the value, by `convert` where it is set. A derived rule names the
  // keys that derive() computes from it, for the reader. Empty: the job has none.
  std::string_view ours = {};
  Conversion convert = nullptr;
  bool derived = false;
  // Of a rule without a key of the job: how much that matters, and a sentence. `unless` has values,
  // with `|` between, at which nothing is lost: "false|0"; null is always one.
  Severity severity = Severity::kSame;
  std::string_view text = {};
  std::string_view unless = {};
};

constexpr Rule same(std::string_view key, std::string_view ours, Conversion convert = nullptr) {
  return {.key = key, .ours = ours, .convert = convert};
}
constexpr Rule derived(std::string_view key, std::string_view ours) {
  return {.key = key, .ours = ours, .derived = true};
}
constexpr Rule none(std::string_view key, Severity severity, std::string_view text,
                    std::string_view unless = {}) {
  return {.key = key, .severity = severity, .text = text, .unless = unless};
}

// The value that the framework itself takes where the key is left out, as JSON.
struct ForeignDefault {
  std::string_view key;
  std::string_view value;
};

struct Dialect {
  std::string_view name;   // as in --from: "verl"
  std::string_view title;  // as in sentences: "NeMo-RL"
  // Keys that this framework alone has; with a final dot, a section.
  std::span<const std::string_view> marks;
  // Parts of the names of its training programs, "verl.trainer".
  std::span<const std::string_view> programs;
  std::span<const Rule> rules;
  std::span<const ForeignDefault> defaults;
  // Sets the keys of the job that take more than one of the framework's.
  void (*derive)(Draft& draft);
};

// The rule for `key`; nullptr: the dialect does not know it.
const Rule* find_rule(const Dialect& dialect, std::string_view key);

}  // namespace tandem::translate
