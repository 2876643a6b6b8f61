#include "actors/translate/draft.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/job/job_table.h"
#include "actors/job/yaml_leaves.h"
#include "runtime/base/json.h"

namespace tandem::translate {
namespace {

using nlohmann::json;

constexpr std::size_t kKeysToldMax = 60;  // of one finding

json list_of(const json& value) { return value.is_array() ? value : json::array({value}); }

// Turns a value into the type of a field; nullopt: it has no such form.
struct Fit {
  using Fitted = std::optional<json>;
  const json& value;

  template <class T>
  static Fitted of(const std::optional<T>& found) {
    return found ? Fitted(*found) : Fitted();
  }
  Fitted text() const { return value.is_structured() ? Fitted() : Fitted(text_of(value)); }
  template <class Item>
  Fitted list() const {
    json items = json::array();
    for (const json& one : list_of(value)) {
      const Fitted item = Fit{one}(static_cast<Item*>(nullptr));
      if (!item) return {};
      items.push_back(*item);
    }
    return items;
  }

  Fitted operator()(const bool*) const { return of(truth_of(value)); }
  Fitted operator()(const std::int64_t*) const { return of(whole_of(value)); }
  Fitted operator()(const double*) const { return of(number_of(value)); }
  Fitted operator()(const std::string*) const { return text(); }
  Fitted operator()(const std::filesystem::path*) const { return text(); }
  Fitted operator()(const job::NameOrPath*) const { return text(); }
  Fitted operator()(const job::PlacedName*) const { return text(); }
  Fitted operator()(const job::EnumField&) const { return text(); }
  Fitted operator()(const job::WordOrNumber&) const { return value; }
  Fitted operator()(const job::JsonObject*) const { return map(); }
  Fitted operator()(const std::map<std::string, std::string>*) const { return map(); }
  Fitted operator()(const std::map<std::string, double>*) const { return map(); }
  Fitted operator()(const std::array<double, 2>*) const { return list<double>(); }
  template <class T>
  Fitted operator()(const std::optional<T>*) const {
    return value.is_null() ? Fitted(value) : (*this)(static_cast<T*>(nullptr));
  }
  template <class T>
  Fitted operator()(const std::vector<T>*) const {
    return list<T>();
  }

 private:
  Fitted map() const { return value.is_object() ? Fitted(value) : Fitted(); }
};

// "run.sh:12" of "/some/folder/run.sh:12".
std::string short_place(const std::string& where) {
  const std::size_t slash = where.rfind('/');
  return slash == std::string::npos ? where : where.substr(slash + 1);
}

}  // namespace

std::optional<double> number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return {};
  const auto read = job::yaml_value_of(value.get<std::string>());
  return read && read->is_number() ? std::optional(read->get<double>()) : std::nullopt;
}

std::optional<std::int64_t> whole_of(const json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  const auto number = number_of(value);
  constexpr double kMost = 9e15;  // exact as a double
  if (!number || std::abs(*number) > kMost || std::trunc(*number) != *number) return {};
  return static_cast<std::int64_t>(*number);
}

std::optional<bool> truth_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  std::string text = text_of(value);
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  // The words of YAML 1.1, by which the readers of these frameworks go.
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  return {};
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

std::optional<json> fitted(std::string_view ours, const json& value) {
  const job::Key* const key = job::find_key(job::table_path(ours).path);
  if (!key) return value;
  job::JobSpec spec = job::full_default_job();
  return std::visit(Fit{value}, job::NamedField(spec, job::table_path(ours)).field(*key));
}

Draft::Draft(ForeignConfig given, Resolved resolved, const std::vector<Note>& notes,
             const Dialect& dialect)
    : given_(std::move(given)), resolved_(std::move(resolved)), dialect_(dialect) {
  for (const Note& note : notes)
    if (!note.key.empty()) unknown_.insert(note.key);
}

bool Draft::given(std::string_view key) const { return !place_of(key).empty() && value(key); }

const json* Draft::value(std::string_view key) const {
  const auto at = resolved_.values.find(key);
  return at == resolved_.values.end() || at->second.is_null() ? nullptr : &at->second;
}

std::optional<double> Draft::number(std::string_view key) const {
  const json* const found = value(key);
  return found ? number_of(*found) : std::nullopt;
}

std::optional<std::int64_t> Draft::whole(std::string_view key) const {
  const json* const found = value(key);
  return found ? whole_of(*found) : std::nullopt;
}

std::int64_t Draft::whole(std::string_view key, std::int64_t fallback) const {
  return whole(key).value_or(fallback);
}

bool Draft::truth(std::string_view key) const {
  const json* const found = value(key);
  return found && truth_of(*found).value_or(false);
}

std::string Draft::text(std::string_view key) const {
  const json* const found = value(key);
  return found ? text_of(*found) : "";
}

std::vector<std::string> Draft::texts(std::string_view key) const {
  std::vector<std::string> all;
  if (const json* const found = value(key))
    for (const json& one : list_of(*found)) all.push_back(text_of(one));
  return all;
}

std::string Draft::place_of(std::string_view key) const {
  const ForeignValue* const found = given_.find(key);
  return found ? short_place(found->where) : "";
}

void Draft::set(std::string_view ours, json value, Keys keys, std::string_view remark) {
  std::string comment;
  bool by_default = keys.size() > 0;
  for (const std::string_view key : keys)
    if (given(key)) {
      comment += (comment.empty() ? "" : ", ") + std::string(key);
      by_default = false;
    }
  const auto unknown = [this](std::string_view key) { return unknown_.contains(key); };
  if (by_default && std::ranges::any_of(keys, unknown)) return drop(ours);
  if (by_default) comment = std::string(dialect_.title) + "'s default";
  if (!remark.empty()) comment += (comment.empty() ? "" : ": ") + std::string(remark);
  auto form = fitted(ours, value);
  if (!form)
    return tell(Severity::kDiffers, keys,
                "`" + text_of(value) + "` is no value of `" + std::string(ours) + "`");
  drop(ours);
  job_.push_back({std::string(ours), *std::move(form), std::move(comment), by_default});
}

void Draft::drop(std::string_view ours) {
  std::erase_if(job_, [ours](const JobValue& value) { return value.path == ours; });
}

const JobValue* Draft::find(std::string_view ours) const {
  const auto at = std::ranges::find(job_, ours, &JobValue::path);
  return at == job_.end() ? nullptr : &*at;
}

bool Draft::is(std::string_view ours, const json& value) const {
  const JobValue* const found = find(ours);
  return found && found->value == value;
}

void Draft::tell(Severity severity, Keys keys, std::string_view text) {
  std::vector<std::string> named;
  for (const std::string_view key : keys)
    if (given(key)) named.emplace_back(key);
  if (named.empty() && keys.size() > 0) named.emplace_back(*keys.begin());
  tell(severity, named, text);
}

void Draft::tell(Severity severity, const std::vector<std::string>& keys, std::string_view text) {
  auto at = std::ranges::find_if(findings_, [&](const Finding& finding) {
    return finding.severity == severity && finding.text == text;
  });
  if (at == findings_.end())
    at = findings_.insert(findings_.end(), {severity, std::string(text), {}});
  for (const std::string& key : keys) {
    const std::string place = place_of(key);
    const std::string shown = place.empty() ? key : key + " (" + place + ")";
    if (std::ranges::find(at->keys, shown) != at->keys.end()) continue;
    if (at->keys.size() < kKeysToldMax) at->keys.push_back(shown);
  }
}

}  // namespace tandem::translate
