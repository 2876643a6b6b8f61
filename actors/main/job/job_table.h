// The one table of every key of the job file. Parsing, ranges, the printed effective job, `tandem
// explain`, docs/job-file.md and a generated bad-input test per key are driven by it. A key's
// default is the value that a default JobSpec holds. Rules that concern several keys are in
// job_rules.h.
// JT-1  Keys of one section follow each other; a section's own keys come before its subsections.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "actors/main/job/job_spec.h"

namespace tandem::cli {

struct EnumField {
  Names names;
  bool nullable = false;
  std::function<std::optional<std::size_t>()> get;  // nullopt: null
  std::function<void(std::optional<std::size_t>)> set;
};

// A place in a JobSpec; its alternative is the key's type. Borrows the JobSpec.
using FieldRef = std::variant<bool*, std::int64_t*, double*, std::string*, std::filesystem::path*,
                              std::optional<std::int64_t>*, std::optional<double>*,
                              std::optional<std::string>*, std::vector<std::int64_t>*,
                              std::vector<std::string>*, std::vector<std::filesystem::path>*,
                              std::array<double, 2>*, std::optional<std::vector<std::string>>*,
                              std::map<std::string, std::string>*, EnumField>;

// Of a number, and of each number of a list.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;
  bool max_open = false;

  bool contains(double value) const;
  bool bounded() const;
};

enum class Presence { kDefaulted, kRequired };

struct Key {
  std::string_view path;         // "rollout.n"
  FieldRef (*field)(JobSpec&);   // its section must be present
  std::string_view description;  // one or two sentences
  Range range{};
  std::string_view unit{};
  Presence presence = Presence::kDefaulted;
  Names aliases{};                      // full paths
  Names later_values{};                 // refused by name: "not in this version"
  std::optional<double> later_above{};  // greater values are refused likewise
};

struct Section {
  std::string_view path;  // "learner.optimizer"
  std::string_view description;
  // Null for a section that is always there; otherwise makes it present or absent.
  void (*set_present)(JobSpec&, bool) = nullptr;
  bool (*present)(const JobSpec&) = nullptr;
};

std::span<const Key> job_keys();
std::span<const Section> job_sections();

const Key* find_key(std::string_view path);          // by path or alias
const Section* find_section(std::string_view path);  // nullptr: no such section
// "learner.optimizer" of "learner.optimizer.lr"; empty for a top-level key.
std::string_view section_of(std::string_view path);
std::string_view last_part(std::string_view path);  // "lr" of it

// A JobSpec with every optional section present, for reading defaults.
JobSpec full_default_job();

std::string type_text(const Key& key);   // "integer", "one of grpo, dr_grpo, …", "list of paths"
std::string range_text(const Key& key);  // "1 … 4096", "(0, 1]", ""; with the unit
std::string default_text(const Key& key);  // as YAML, "required" when there is none

}  // namespace tandem::cli
