// Look-ups are linear: there are fewer than 200 rows, and a job file is read once.
#include "actors/job/job_table.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

namespace tandem::job {

namespace {

// The bounds are rounded with the value: 1e-6 is in [1e-6, 100] although its float is below 1e-6.
template <class T>
bool within(const Range& range, T value) {
  const T min = static_cast<T>(range.min), max = static_cast<T>(range.max);
  return (range.min_open ? value > min : value >= min) &&
         (range.max_open ? value < max : value <= max);
}

template <class T>
bool is_optional(const std::optional<T>*) {
  return true;
}
template <class T>
bool is_optional(const T*) {
  return false;
}

}  // namespace

bool takes_null(const FieldRef& field) {
  return std::visit(
      [](const auto& place) {
        using Place = std::decay_t<decltype(place)>;
        if constexpr (std::is_same_v<Place, EnumField>)
          return place.nullable;
        else if constexpr (std::is_same_v<Place, WordOrNumber>)
          return false;
        else
          return is_optional(place);
      },
      field);
}

void copy_field(const FieldRef& to, const FieldRef& from) {
  std::visit(
      [&from](const auto& place) {
        using Place = std::decay_t<decltype(place)>;
        const Place& value = std::get<Place>(from);
        if constexpr (std::is_same_v<Place, EnumField>)
          place.set(value.get());
        else if constexpr (std::is_same_v<Place, WordOrNumber>)
          std::visit(
              [&value](auto* number) { *number = *std::get<decltype(number)>(value.number); },
              place.number);
        else
          *place = *value;
      },
      to);
}

bool Range::contains(double value) const {
  if (!within(*this, value)) return false;
  if (!as_float) return true;
  return std::abs(value) <= double{std::numeric_limits<float>::max()} &&
         within(*this, static_cast<float>(value));
}

bool Range::bounded() const { return std::isfinite(min) || std::isfinite(max); }

const Key* find_key(std::string_view path) {
  for (const Key& key : job_keys())
    if (key.path == path || std::ranges::find(key.aliases, path) != key.aliases.end()) return &key;
  return nullptr;
}

const Section* find_section(std::string_view path) {
  for (const Section& section : job_sections())
    if (section.path == path) return &section;
  return nullptr;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::string_view section_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

// Fields of optional sections can be referred to only while these are present.
JobSpec full_default_job() {
  JobSpec job;
  for (const Section& section : job_sections())
    if (section.set_present) section.set_present(job, true);
  return job;
}

namespace {

constexpr std::string_view kActors = "actors.", kParts = "reward.parts.", kOfReward = "reward";

// "counter" of "counter.replicas", and ".replicas"; the latter is empty where a name is all.
std::pair<std::string, std::string> cut_name(std::string_view rest) {
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  return {std::string(rest.substr(0, dot)), std::string(rest.substr(dot))};
}

}  // namespace

TablePath table_path(std::string_view path) {
  if (path.starts_with(kActors)) {
    const auto [name, rest] = cut_name(path.substr(kActors.size()));
    return {std::string(kActors) + kAnyActor + rest, name, ""};
  }
  if (path.starts_with(kParts)) {
    const auto [name, rest] = cut_name(path.substr(kParts.size()));
    return {std::string(kOfReward) + rest, "", name};
  }
  return {std::string(path), "", ""};
}

std::string users_path(std::string_view path, const TablePath& of) {
  const std::string any_actor = std::string(kActors) + kAnyActor;
  if (!of.actor.empty() && path.starts_with(any_actor))
    return std::string(kActors) + of.actor + std::string(path.substr(any_actor.size()));
  if (!of.part.empty() && path.starts_with(kOfReward))
    return std::string(kParts) + of.part + std::string(path.substr(kOfReward.size()));
  return std::string(path);
}

FieldRef NamedField::field(const Key& key) {
  if (!of_.named()) return key.field(job_);
  if (of_.part.empty())
    entry_.actors[kAnyActor] = job_.actors[of_.actor];
  else
    static_cast<RewardPartSpec&>(entry_.reward) = job_.reward.parts[of_.part];
  return key.field(entry_);
}

void NamedField::keep() {
  if (!of_.actor.empty()) job_.actors[of_.actor] = entry_.actors[kAnyActor];
  if (!of_.part.empty()) job_.reward.parts[of_.part] = entry_.reward;
}

}  // namespace tandem::job
