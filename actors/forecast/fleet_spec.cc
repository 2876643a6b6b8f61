#include "actors/forecast/fleet_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

namespace tandem::forecast {
namespace {

constexpr const char* kEngineHelp =
    "as in `step=6.2ms,seq=0.15ms`, or with a name before: `A:step=6.2ms,seq=0.15ms`; also "
    "prompt, context, install and fetch";

Error invalid(const std::string& what, const char* help) {
  return {ErrorCode::kInvalid, what, "", help};
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<double> parse_seconds(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},     {"s", 1},
      {"m", 60},    {"h", 3600},  {"d", 24 * 3600}, {"", 1}};
  double number = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault == std::errc{} && std::isfinite(number) && number >= 0)
    for (const auto& [unit, factor] : kUnits)
      if (unit == std::string_view(stop, text.data() + text.size())) return number * factor;
  return invalid("`" + text + "` is no time", "as in 150us, 6.2ms, 1.5s, 2m or 3h");
}

Result<EngineCosts> parse_engine(const std::string& text, EngineCosts given) {
  std::string rest = text;
  if (const std::size_t colon = text.find(':'); colon != text.npos) {
    given.name = text.substr(0, colon);
    rest = text.substr(colon + 1);
  }
  const std::pair<std::string_view, double*> kKeys[] = {{"step", &given.step_s},
                                                        {"seq", &given.sequence_s},
                                                        {"context", &given.context_token_s},
                                                        {"prompt", &given.prompt_token_s},
                                                        {"install", &given.install_s},
                                                        {"fetch", &given.fetch_s}};
  for (const std::string& part : split(rest, ',')) {
    const std::size_t equals = part.find('=');
    const auto key = std::ranges::find(kKeys, std::string_view(part).substr(0, equals),
                                       [](const auto& row) { return row.first; });
    if (equals == part.npos || key == std::end(kKeys))
      return invalid("`" + part + "` is no cost of an engine", kEngineHelp);
    const auto seconds = parse_seconds(part.substr(equals + 1));
    if (!seconds) return seconds.error();
    *key->second = *seconds;
  }
  if (given.step_s + given.sequence_s <= 0)
    return invalid("`" + text + "`: the engine's steps take no time", kEngineHelp);
  return given;
}

Result<std::vector<EngineCosts>> parse_fleet(const std::string& text,
                                             const std::vector<EngineCosts>& engines) {
  std::vector<EngineCosts> fleet;
  for (const std::string& part : split(text, '+')) {
    std::int64_t count = 0;
    const auto [stop, fault] = std::from_chars(part.data(), part.data() + part.size(), count);
    const std::string_view tail(stop, part.data() + part.size());
    if (fault != std::errc{} || count < 1 || (!tail.empty() && tail.front() != 'x'))
      return invalid("`" + part + "` is no part of a fleet", "as in 24xA+40xB, or 64");
    if (count > kFleetMost - static_cast<std::int64_t>(fleet.size()))
      return invalid("`" + text + "` has more than 100000 rollouts", "");
    const std::string name(tail.empty() ? tail : tail.substr(1));
    const auto engine = std::ranges::find(engines, name, &EngineCosts::name);
    if (engine == engines.end())
      return invalid("no engine is called `" + name + "`",
                     "`--engine NAME:step=6.2ms,seq=0.15ms` says what a kind of device costs");
    fleet.insert(fleet.end(), static_cast<std::size_t>(count), *engine);
  }
  return fleet;
}

}  // namespace tandem::forecast
