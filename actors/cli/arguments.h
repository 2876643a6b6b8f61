// Words of a command line that mean more than text: objects, replica counts, times and sizes; and
// guesses of what a misspelt word was meant to be. Pure. Errors are kInvalid with help, which makes
// exit code 64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/cli/kinds.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// An object as written; the name may still be a short form (object_names.h).
struct ObjectName {
  Kind kind;
  std::optional<std::string> name;
};

// Parses {"actors"}, {"actors", "NAME"} or {"actors/NAME"}; the singular will do.
Result<ObjectName> parse_object(const std::vector<std::string>& words);

// A role and its replicas; none: the job chooses them itself ("rollout=auto").
using RoleScale = std::pair<std::string, std::optional<std::int64_t>>;
// Parses {"rollout=2", "reward=1"} into roles and replicas, within the bounds of
// scheduler/fleet/placement.h.
Result<std::vector<RoleScale>> parse_scales(const std::vector<std::string>& words);

std::optional<double> parse_duration(std::string_view text);  // "90", "90s", "5m", "2h": seconds
// The seconds of an option's value; nullopt for an empty text.
Result<std::optional<double>> parse_time(const std::string& option, const std::string& text);
std::optional<std::int64_t> parse_bytes(std::string_view text);  // "8GiB", "512MiB", "1000": bytes

std::vector<std::string> kind_names();  // "jobs", …
std::vector<std::string> role_names();  // "rollout", …

Error usage_error(std::string message, std::string help);

// Return what is wrong with the text, or an empty text. Whether there is such a host is not asked.
std::string not_a_host(const std::string& text);      // an address, or characters of a name
std::string not_an_address(const std::string& text);  // of IPv4 or IPv6, without brackets
std::string joined(const std::vector<std::string>& words, const std::string& separator);
// "did you mean `x`?" with the nearest of `names`, or `otherwise` where none is near (key_hints.h).
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names,
                         const std::string& otherwise);

}  // namespace tandem::cli
