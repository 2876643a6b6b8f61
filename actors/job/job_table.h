// The one table of every key of the job file. It drives parsing, ranges, the printed effective job,
// `tandem explain`, docs/job-file.md and a generated bad-input test per key, so that a key is added
// in one place. A default is not in the table: it is the value that a default JobSpec holds. Rules
// over several keys are in job_rules.h. The rows are in job_keys.cc, actor_keys.cc and
// actors/main/roles.
//
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

#include "actors/job/job_spec.h"

namespace tandem::job {

// A key that chooses one of `names`: read and written as a name, so that the table needs no type
// per enum. `get` and `set` borrow the JobSpec of the field; `set` takes one of `names`.
struct EnumField {
  Names names;
  bool nullable = false;
  std::function<std::optional<std::string_view>()> get;  // nullopt: null
  std::function<void(std::optional<std::string_view>)> set;
};

// A key that is a number, or the word that stands for none.
struct WordOrNumber {
  std::string_view word;
  std::variant<std::optional<std::int64_t>*, std::optional<double>*> number;
};

// A place in a JobSpec, for reading and writing; the alternative is the type of the key. Borrows
// the JobSpec.
using FieldRef =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::filesystem::path*,
                 std::optional<std::int64_t>*, std::optional<double>*, std::optional<std::string>*,
                 std::vector<std::int64_t>*, std::vector<std::string>*,
                 std::vector<std::filesystem::path>*, std::array<double, 2>*,
                 std::optional<std::array<double, 2>>*, std::optional<std::vector<std::string>>*,
                 std::map<std::string, std::string>*, std::map<std::string, double>*,
                 std::optional<std::filesystem::path>*, JsonObject*, NameOrPath*, PlacedName*,
                 std::optional<PlacedName>*, EnumField, WordOrNumber>;

// Whether null is a value of the field. For any other field it means the default.
bool takes_null(const FieldRef& field);
// Copies the value of `from` to `to`, both fields of one key.
void copy_field(const FieldRef& to, const FieldRef& from);

// The values that a number may have; for a list or a map, each of its numbers. `min_open` and
// `max_open` exclude the bound itself.
//
// JT-2  Where `as_float` is set the program computes with the value rounded to a 32-bit float, and
//       the rounded value is in the range as well: 1e-46, which rounds to 0, is not above 0.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;
  bool max_open = false;
  bool as_float = false;

  bool contains(double value) const;
  bool bounded() const;  // at least one bound is finite
};

enum class Presence { kDefaulted, kRequired };

// One row. The views point at string literals.
struct Key {
  std::string_view path;         // "rollout.n"
  FieldRef (*field)(JobSpec&);   // the key's section must be present
  std::string_view description;  // one or two sentences
  Range range{};
  std::string_view unit{};
  Presence presence = Presence::kDefaulted;
  Names aliases{};                      // other full paths that are read as this key
  Names later_values{};                 // refused by name: "not in this version"
  std::optional<double> later_above{};  // greater values are refused the same way
  bool of_part = false;                 // a key of `reward` that a part of it has as well
  bool argv = false;                    // a program and its arguments, some of them paths
};

// A section of the file. Optional sections are present once one of their keys is given.
struct Section {
  std::string_view path;  // "learner.optimizer"
  std::string_view description;
  // Both are null for a section that is always there. Otherwise: makes it present or absent, and
  // says whether it is.
  void (*set_present)(JobSpec&, bool) = nullptr;
  bool (*present)(const JobSpec&) = nullptr;
};

// All rows in table order. They are built once and stay for the whole process.
std::span<const Key> job_keys();
std::span<const Section> job_sections();

// Two sections have subsections with names of the user's. A path below them has another one in the
// table, of the row that it shares with all others of its kind:
//
//   actors.counter.replicas    actors.NAME.replicas, where NAME is kAnyActor
//   reward.parts.format.type   reward.type
inline constexpr const char* kAnyActor = "NAME";
struct TablePath {
  std::string path;         // the key's path in the table
  std::string actor, part;  // the user's name of an actor or of a part of the reward; or empty
  bool named() const { return !actor.empty() || !part.empty(); }
};
TablePath table_path(std::string_view path);
// The way back, from a path of the table to that of the actor or part that `of` names.
std::string users_path(std::string_view path, const TablePath& of);

// The field of a key in `job`. For a key of an actor or of a part of the reward it is a copy, of
// the one with that name: keep() puts it back.
class NamedField {
 public:
  NamedField(JobSpec& job, TablePath of) : job_(job), of_(std::move(of)) {}
  FieldRef field(const Key& key);  // valid until the next call
  void keep();

 private:
  JobSpec& job_;
  const TablePath of_;
  JobSpec entry_;  // has the copy, of an actor under kAnyActor
};

const Key* find_key(std::string_view path);          // by path or alias; nullptr: no such key
const Section* find_section(std::string_view path);  // nullptr: no such section
// "learner.optimizer" of "learner.optimizer.lr"; empty for a top-level key.
std::string_view section_of(std::string_view path);
std::string_view last_part(std::string_view path);  // "lr" of that path

// A JobSpec with every optional section present, for reading defaults.
JobSpec full_default_job();

}  // namespace tandem::job
