#include "actors/cli/sweep.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "actors/cli/arguments.h"
#include "actors/job/job_table.h"
#include "actors/job/resume.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kNameBytesMax = 128;  // of `tracking.run_name`

// "1,2,[3, 4]" -> "1", "2", "[3, 4]".
std::vector<std::string> values_of(std::string_view list) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : list) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (c == ',' && depth == 0 && quote == 0)
      values.emplace_back();
    else
      values.back() += c;
  }
  return values;
}

struct Axis {
  std::string key;
  std::vector<std::string> values;
};

Result<Axis> axis_of(const std::string& option) {
  const std::size_t equals = option.find('=');
  Axis axis{.key = option.substr(0, equals)};
  if (equals != std::string::npos) axis.values = values_of(option.substr(equals + 1));
  const bool empty = std::ranges::any_of(axis.values, [](const auto& v) { return v.empty(); });
  if (axis.key.empty() || axis.values.empty() || empty)
    return usage_error("`--sweep " + option + "` has no key or an empty value",
                       "as in --sweep seed=1,2,3");
  return axis;
}

std::string_view key_of(std::string_view option) { return option.substr(0, option.find('=')); }

// Whether no value of the key has a comma.
bool has_no_commas(std::string_view path) {
  const job::Key* key = job::find_key(job::table_path(path).path);
  if (!key) return false;
  job::JobSpec job = job::full_default_job();
  return std::visit(
      []<class T>(const T&) {
        using std::is_same_v, std::optional;
        return is_same_v<T, bool*> || is_same_v<T, std::int64_t*> || is_same_v<T, double*> ||
               is_same_v<T, optional<std::int64_t>*> || is_same_v<T, optional<double>*> ||
               is_same_v<T, job::EnumField> || is_same_v<T, job::WordOrNumber>;
      },
      key->field(job));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool are_digits(std::string_view text) { return std::ranges::all_of(text, is_digit); }

// Whether the values may be parts of one number, "1,000,000" or "0,001".
bool may_be_one_number(const std::vector<std::string>& values) {
  const std::span<const std::string> rest = std::span(values).subspan(1);
  const auto is_fraction = [](const std::string& value) {
    return value.size() > 1 && value[0] == '0' && is_digit(value[1]);
  };
  const auto is_thousand = [](const std::string& value) {
    return value.size() == 3 && are_digits(value);
  };
  std::string_view first = values.front();
  if (first.starts_with('-') || first.starts_with('+')) first.remove_prefix(1);
  const bool short_first = !first.empty() && first.size() <= 3 && are_digits(first);
  return std::ranges::any_of(rest, is_fraction) ||
         (short_first && std::ranges::all_of(rest, is_thousand));
}

bool is_sweep(std::string_view set) {
  const std::size_t equals = set.find('=');
  if (equals == set.npos || !has_no_commas(key_of(set))) return false;
  const std::vector<std::string> values = values_of(set.substr(equals + 1));
  return values.size() > 1 && !may_be_one_number(values);
}

}  // namespace

Settings with_sweeps_found(Settings given) {
  Settings found{.sets = {}, .sweeps = std::move(given.sweeps)};
  for (auto set = given.sets.begin(); set != given.sets.end(); ++set) {
    const bool replaced = std::any_of(std::next(set), given.sets.end(), [&](const auto& later) {
      return key_of(later) == key_of(*set);
    });
    (!replaced && is_sweep(*set) ? found.sweeps : found.sets).push_back(*set);
  }
  return found;
}

Result<std::vector<SweepPoint>> sweep_points(const std::vector<std::string>& options) {
  std::vector<SweepPoint> points(1);
  std::set<std::string> keys;
  for (const std::string& option : options) {
    const auto axis = axis_of(option);
    if (!axis) return axis.error();
    if (!keys.insert(axis->key).second)
      return usage_error("`--sweep " + axis->key + "` comes twice", "give all values in one");
    if (points.size() * axis->values.size() > kSweepRunsMax)
      return usage_error("the sweep has more than " + std::to_string(kSweepRunsMax) + " runs",
                         "give fewer values");
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points)
      for (const std::string& value : axis->values) {
        longer.push_back(point);
        longer.back().push_back(axis->key + "=" + value);
      }
    points = std::move(longer);
  }
  return points;
}

std::string sweep_time(std::int64_t unix_ms) {
  const std::time_t time = unix_ms / 1000;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts));
}

void label_sweep_run(job::JobSpec& job, const SweepPoint& point, const std::string& time) {
  if (point.empty()) return;
  if (!job.tracking.group) job.tracking.group = job.name + "-sweep-" + time;
  if (job.tracking.run_name) return;
  std::string name = job.name;
  for (const std::string& set : point) name += " " + set;
  std::ranges::replace(name, ',', ';');  // a name has no commas
  if (name.size() <= kNameBytesMax) job.tracking.run_name = std::move(name);
}

Result<std::vector<job::LoadedJob>> load_sweep(const std::optional<std::filesystem::path>& job,
                                               const std::optional<std::filesystem::path>& run,
                                               const Settings& given, const std::string& time) {
  const auto points = sweep_points(given.sweeps);
  if (!points) return points.error();
  std::vector<job::LoadedJob> jobs;
  for (const SweepPoint& point : *points) {
    std::vector<std::string> all = given.sets;
    all.insert(all.end(), point.begin(), point.end());
    auto loaded = job::load_job_of(job, run, all);
    if (!loaded) return loaded.error();
    label_sweep_run(loaded->spec, point, time);
    jobs.push_back(std::move(*loaded));
  }
  return jobs;
}

}  // namespace tandem::cli
