// Text for one cell each. Numbers keep three or four digits, since a column has little room; JSON
// output has them whole.
#include "actors/cli/cells.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "actors/cli/table.h"
#include "runtime/base/json.h"

namespace tandem::cli::cells {

using nlohmann::json;

namespace {

constexpr std::int64_t kUnknownTime = -1;

std::string number_text(double value, const char* format) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

std::tm local_time(std::int64_t unix_ms) {
  const auto unix_s = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  ::localtime_r(&unix_s, &parts);
  return parts;
}

std::string formatted(const std::tm& parts, const char* format) {
  std::array<char, 64> buffer;
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), format, &parts)};
}

}  // namespace

const json& at(const json& item, std::initializer_list<const char*> path) {
  // The result is a reference, so that the null must outlive the call.
  static const json kNull;
  const json* value = &item;
  for (const char* name : path) {
    if (!value->is_object()) return kNull;
    const auto found = value->find(name);
    if (found == value->end()) return kNull;
    value = &*found;
  }
  return *value;
}

namespace {

json gpus_that(const json& node, bool are_gone) {
  json some = json::array();
  if (const json& gpus = at(node, {"gpus"}); gpus.is_array())
    for (const json& gpu : gpus)
      if ((at(gpu, {"gone"}) == json(true)) == are_gone) some.push_back(gpu);
  return some;
}

}  // namespace

json gpus_found(const json& node) { return gpus_that(node, false); }
json gpus_gone(const json& node) {
  json held = json::array();
  for (const json& gpu : gpus_that(node, true))
    if (at(gpu, {"leased"}) != json(0.0)) held.push_back(gpu);
  return held;
}

json gpus_leased(const json& node) {
  const json& leased = at(node, {"leased", "gpus"});
  if (!leased.is_number()) return leased;
  double found = leased.get<double>();
  for (const json& gpu : gpus_gone(node))
    if (const json& part = at(gpu, {"leased"}); part.is_number()) found -= part.get<double>();
  return std::round(found * 1000) / 1000;  // shares are of a thousandth (scheduler::Resources)
}

std::string text(const json& value) {
  if (value.is_null()) return kNone;
  if (value.is_string()) return value.get<std::string>().empty() ? kNone : value.get<std::string>();
  // Four significant digits; integers and other values are shown as JSON.
  if (value.is_number_float()) return number_text(value.get<double>(), "%.4g");
  if (value.is_array() && value.empty()) return kNone;
  return dump_json(value);
}

std::string count(const json& value) {
  return value.is_number() ? short_count(value.get<double>()) : kNone;
}

std::string bytes(const json& value) {
  return value.is_number() ? short_bytes(value.get<double>()) : kNone;
}

std::string percent(const json& value) {
  return value.is_number() ? number_text(100 * value.get<double>(), "%.0f%%") : kNone;
}

std::string fixed(const json& value) {
  return value.is_number() ? number_text(value.get<double>(), "%.3f") : kNone;
}

std::string cpu_of(const json& actor) {
  const json& used = at(actor, {"cpu_percent"});
  return used.is_number() ? number_text(used.get<double>(), "%.0f%%") : kNone;
}

std::string of(const json& part, const json& whole) {
  return part.is_null() && whole.is_null() ? kNone : text(part) + "/" + text(whole);
}

std::string steps_of(const json& job) {
  const json& warm = at(job, {"warm_start"});
  return warm.is_object() ? "warm " + of(at(warm, {"step"}), at(warm, {"max_steps"}))
                          : of(at(job, {"step"}), at(job, {"total_steps"}));
}

std::string eta_of(const json& job) {
  const json& warm = at(job, {"warm_start"});
  const json& eta = at(warm.is_object() ? warm : job, {"eta_seconds"});
  return eta.is_number() ? short_age(eta.get<double>()) : kNone;
}

std::string reason_of(const json& item) {
  std::string reason = text(at(item, {"reason"}));
  const std::string message = text(at(item, {"message"}));
  if (message == kNone || message == reason) return reason;
  return reason == kNone ? message : reason + ": " + message;
}

std::int64_t to_unix_ms(const json& time, std::int64_t otherwise) {
  if (time.is_number()) return time.get<std::int64_t>();
  if (!time.is_string()) return otherwise;
  std::tm parts{};
  double seconds = 0;
  const std::string written = time.get<std::string>();
  if (std::sscanf(written.c_str(), "%d-%d-%dT%d:%d:%lf", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &seconds) != 6)
    return otherwise;
  // tm counts years from 1900 and months from 0; timegm() reads the result as UTC.
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<std::int64_t>(::timegm(&parts)) * 1000 +
         static_cast<std::int64_t>(std::llround(seconds * 1000));
}

std::string age_of(const json& time, std::int64_t now_ms) {
  const std::int64_t since = to_unix_ms(time, kUnknownTime);
  return since < 0 ? kNone : short_age(static_cast<double>(now_ms - since) / 1000);
}

std::string age_of_object(const json& item, std::int64_t now_ms) {
  const json& created = at(item, {"created"});
  return age_of(created.is_null() ? at(item, {"since"}) : created, now_ms);
}

std::string clock_time(const json& time, std::int64_t now_ms) {
  const std::int64_t when = to_unix_ms(time, kUnknownTime);
  if (when < 0) return kNone;
  const std::tm parts = local_time(when), today = local_time(now_ms);
  const bool is_today = parts.tm_year == today.tm_year && parts.tm_yday == today.tm_yday;
  return formatted(parts, is_today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S");
}

std::string date_time(const json& time) {
  const std::int64_t when = to_unix_ms(time, kUnknownTime);
  return when < 0 ? kNone : formatted(local_time(when), "%Y-%m-%d %H:%M:%S");
}

std::string full_time(const json& time) {
  const std::int64_t when = to_unix_ms(time, kUnknownTime);
  if (when < 0) return kNone;
  const std::tm parts = local_time(when);
  std::string zone = formatted(parts, "%z");  // "+0100"
  // strftime() writes +0100, and RFC 3339 wants +01:00.
  zone = zone == "+0000" ? "Z" : zone.insert(zone.size() - 2, ":");
  return formatted(parts, "%Y-%m-%dT%H:%M:%S") +
         number_text(static_cast<double>(when % 1000), ".%03.0f") + zone;
}

}  // namespace tandem::cli::cells
