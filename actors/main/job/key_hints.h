// What an unknown name in a job file was probably meant to be: the nearest of ours, or ours for the
// names of verl, AReaL and OpenRLHF. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tandem::cli {

struct ForeignKey {
  std::string_view system;  // "verl"
  std::string_view name;    // "actor_rollout_ref.rollout.n"
  std::string_view ours;    // "rollout.n", or a sentence where there is no such key
};

std::span<const ForeignKey> foreign_keys();

// Insertions, deletions, substitutions and swaps of neighbours, each 1.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `candidates` if it is near enough to be a typing error.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

// Help for the unknown `path`: "did you mean `rollout.n`?", "verl's … is `rollout.n` here", or how
// to list the keys.
std::string unknown_key_help(std::string_view path);

// The foreign key with exactly this path, or nullptr.
const ForeignKey* find_foreign(std::string_view path);

}  // namespace tandem::cli
