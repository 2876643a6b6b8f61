// Guesses of the key that an unknown name in a job file was meant to be: the nearest of our names,
// or the one that corresponds to a name of another system; and what there is in place of something
// that this version lacks. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tandem::job {

// A name that another system has for one of our keys.
struct ForeignKey {
  std::string_view system;  // "verl"
  std::string_view name;    // "actor_rollout_ref.rollout.n"
  std::string_view ours;    // "rollout.n", or a sentence where there is no such key
};

// The whole table, for the test that each `ours` exists.
std::span<const ForeignKey> foreign_keys();

// The number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into
// `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `candidates` if it is near enough to be a typing error: one edit for words of up
// to three letters, else two, and a quarter of the length for long ones. Among equally near ones it
// is the first.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

// A thing that other systems have and this version lacks: a section or key of that name, at any
// place.
struct AbsentThing {
  std::string_view name;     // one part of a path: "lora"
  std::string_view instead;  // a sentence: that it is not in this version, and what there is
};
std::span<const AbsentThing> absent_things();

// Help for the unknown `path`: "did you mean `rollout.n`?", "verl's … is `rollout.n` here", what
// there is in place of something that is absent, or how to list the keys.
std::string unknown_key_help(std::string_view path);

// Whether `path` is another system's: exactly in foreign_keys(), or with a part in absent_things().
bool is_foreign(std::string_view path);

}  // namespace tandem::job
