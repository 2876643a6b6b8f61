// Parsers of single words. Each takes the whole word or none of it: "5m30" is no time and "8GB" no
// size, and the help shows the form.
#include "actors/cli/arguments.h"

#include <algorithm>
#include <charconv>

#include "actors/job/key_hints.h"
#include "actors/messages/roles.h"
#include "runtime/link/endpoint.h"
#include "scheduler/fleet/placement.h"

namespace tandem::cli {

std::vector<std::string> kind_names() {
  return {spellings<Kind>().begin(), spellings<Kind>().end()};
}

std::vector<std::string> role_names() {
  std::vector<std::string> names;
  for (const messages::Role& role : messages::kTrainingRoles)
    names.emplace_back(messages::name(role));
  return names;
}

Error usage_error(std::string message, std::string help) {
  return {ErrorCode::kInvalid, std::move(message), "", std::move(help)};
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names,
                         const std::string& otherwise) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto near = job::nearest(word, views);
  return near ? "did you mean `" + std::string(*near) + "`?" : otherwise;
}

// Without a unit seconds are meant. The bound keeps later arithmetic in range; `!(value >= 0)`
// refuses NaN.
std::optional<double> parse_duration(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || !(value >= 0) || value > 1e9) return {};
  if (unit.empty() || unit == "s") return value;
  if (unit == "m") return value * 60;
  if (unit == "h") return value * 3600;
  return {};
}

Result<std::optional<double>> parse_time(const std::string& option, const std::string& text) {
  if (text.empty()) return std::optional<double>();
  const auto seconds = parse_duration(text);
  if (!seconds)
    return usage_error("`" + option + " " + text + "` is not a time", "as in 90, 90s or 5m");
  return seconds;
}

// Sizes have the units that the program prints, powers of 1024. `!(value > 0)` refuses NaN.
std::optional<std::int64_t> parse_bytes(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0) || value > 1e15) return {};
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : kUnits)
    if (unit == name) return static_cast<std::int64_t>(value * factor);
  return {};
}

Result<ObjectName> parse_object(const std::vector<std::string>& words) {
  std::string kind = words.empty() ? "" : words[0];
  std::optional<std::string> name;
  if (const std::size_t slash = kind.find('/'); slash != std::string::npos) {
    name = kind.substr(slash + 1);
    kind.resize(slash);
  }
  if (words.size() == 2 && name)
    return usage_error("two names: `" + *name + "` and `" + words[1] + "`",
                       "write `" + kind + " NAME` or `" + kind + "/NAME`");
  if (words.size() == 2) name = words[1];
  if (name && name->empty()) return usage_error("the name after `" + kind + "/` is empty", "");
  // The singular of every kind is its plural without the s.
  for (const std::string& plural : {kind, kind + "s"})
    if (const auto known = spelt<Kind>(plural)) return ObjectName{*known, name};
  return usage_error("unknown kind `" + kind + "`",
                     did_you_mean(kind, kind_names(), "one of " + joined(kind_names(), ", ")));
}

Result<std::vector<RoleScale>> parse_scales(const std::vector<std::string>& words) {
  const std::vector<std::string> roles_known = role_names();
  std::vector<RoleScale> roles;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string role = word.substr(0, equals);
    const std::string count = equals == std::string::npos ? "" : word.substr(equals + 1);
    const bool automatic = count == "auto";
    if (!automatic &&
        (count.empty() || !std::ranges::all_of(count, [](char c) { return c >= '0' && c <= '9'; })))
      return usage_error("`" + word + "` is not ROLE=N", "as in `tandem scale JOB rollout=2`");
    // A role that is none of training's may be one that the job brings: the controller knows.
    const bool known = std::ranges::find(roles_known, role) != roles_known.end();
    if (!known && !messages::check_role_name(role))
      return usage_error("unknown role `" + role + "`",
                         did_you_mean(role, roles_known,
                                      "one of " + joined(roles_known, ", ") +
                                          ", or a role of the job's section `actors:`"));
    if (automatic) {
      roles.emplace_back(role, std::nullopt);
      continue;
    }
    const auto replicas = scheduler::replicas_of(
        role, count, known ? scheduler::kTrainingReplicas : scheduler::kProgramReplicas);
    if (!replicas) return replicas.error();
    roles.emplace_back(role, *replicas);
  }
  return roles;
}

std::string not_a_host(const std::string& text) {
  return link::is_host(text) ? "" : "`" + text + "` is neither an address nor a host's name";
}

std::string not_an_address(const std::string& text) {
  return link::is_address(text)
             ? ""
             : "`" + text + "` is no address of IPv4 or IPv6, as in 10.0.0.1 or fd00::1";
}

}  // namespace tandem::cli
