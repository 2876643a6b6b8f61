// A job in the making: the framework's values on one side, by their keys, and the keys of the job
// and the findings on the other. The functions of dialects read and write it.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/translate/dialect.h"
#include "actors/translate/finding.h"
#include "actors/translate/foreign_config.h"
#include "actors/translate/interpolation.h"

namespace tandem::translate {

// A key of the job with its value, and whence it comes.
struct JobValue {
  std::string path;  // "learner.optimizer.lr"
  nlohmann::json value;
  std::string comment;      // "actor_rollout_ref.rollout.n"
  bool by_default = false;  // it is the framework's own value, and nobody gave it
};

class Draft {
 public:
  using Keys = std::initializer_list<std::string_view>;

  // `given` has the framework's defaults too, with an empty place, and `resolved` all values
  // without references. Keys that `notes` name are given with a value that is not known. The
  // dialect outlives the draft.
  Draft(ForeignConfig given, Resolved resolved, const std::vector<Note>& notes,
        const Dialect& dialect);

  // The framework's values: those that are given, else its defaults. A null is no value. A text
  // that reads as a number, or as a truth value, is one.
  bool given(std::string_view key) const;  // by the file itself
  const nlohmann::json* value(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<std::int64_t> whole(std::string_view key) const;
  std::int64_t whole(std::string_view key, std::int64_t fallback) const;
  bool truth(std::string_view key) const;                      // false where there is none
  std::string text(std::string_view key) const;                // "" where there is none
  std::vector<std::string> texts(std::string_view key) const;  // of a list, or of one value
  const ForeignConfig& config() const { return given_; }
  const Dialect& dialect() const { return dialect_; }

  // The job's values. A value of the same key is replaced. The comment names those of `keys` that
  // are given; where none is, the value is the framework's default, and it is left out if the value
  // of one of them is not known. Lists and numbers are turned into the type of the job's key; a
  // value that has no such form is told and left out.
  void set(std::string_view ours, nlohmann::json value, Keys keys, std::string_view remark = {});
  void drop(std::string_view ours);
  const JobValue* find(std::string_view ours) const;  // nullptr: the job does not have it yet
  bool is(std::string_view ours, const nlohmann::json& value) const;  // the job has it, as this
  std::vector<JobValue>& job() { return job_; }

  // A finding about those of these keys that are given, with their places; about the first one
  // where none is. Findings of one text are one.
  void tell(Severity severity, Keys keys, std::string_view text);
  void tell(Severity severity, const std::vector<std::string>& keys, std::string_view text);
  std::vector<Finding>& findings() { return findings_; }

 private:
  std::string place_of(std::string_view key) const;  // "run.sh:12"; "" where it is not given

  ForeignConfig given_;
  Resolved resolved_;
  std::set<std::string, std::less<>> unknown_;  // keys whose value is not known
  const Dialect& dialect_;
  std::vector<JobValue> job_;
  std::vector<Finding> findings_;
};

// The forms of a value: nullopt where it has none.
std::optional<double> number_of(const nlohmann::json& value);
std::optional<std::int64_t> whole_of(const nlohmann::json& value);
std::optional<bool> truth_of(const nlohmann::json& value);
std::string text_of(const nlohmann::json& value);
// The value in the type of a key of the job; nullopt: it has no such form.
std::optional<nlohmann::json> fitted(std::string_view ours, const nlohmann::json& value);

}  // namespace tandem::translate
