// A configuration of another framework as it was read: an ordered list of dotted keys with their
// values and places, whatever the syntax of the file was. Nothing is known here of what a key means
// (dialect.h), and nothing is resolved (interpolation.h).
//
// FC-1  A key is there once: a later value takes the place of an earlier one, as in all of the
//       frameworks, and keeps the earlier one's place in the order.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::translate {

inline constexpr std::size_t kFileBytesMax = 1 << 20;  // of each file that is read
inline constexpr std::size_t kValuesMax = 20000;

struct ForeignValue {
  std::string key;       // "actor_rollout_ref.rollout.n"
  nlohmann::json value;  // a scalar, a list, null, or {} for an empty section
  std::string where;     // "run.sh:12"
};

// A part of a file that was not understood: it is told, and nothing is made of it.
struct Note {
  std::string what;      // a sentence without its full stop
  std::string where;     // "run.sh:12"
  std::string key = {};  // the key whose value is missing for it; may be empty
};

class ForeignConfig {
 public:
  explicit ForeignConfig(std::string origin) : origin_(std::move(origin)) {}

  // FC-1. More than kValuesMax values are not kept: full() is true then.
  void set(ForeignValue value);
  // Removes a key and all keys below it.
  void remove(std::string_view key);
  void note(Note note);
  // Adds the values and notes of `other`, which take the place of those that are here.
  void add(const ForeignConfig& other);

  const ForeignValue* find(std::string_view key) const;  // nullptr: not given
  // Whether a key below `section` is given, "ref" of "ref.path".
  bool has_section(std::string_view section) const;
  bool full() const { return full_; }

  const std::vector<ForeignValue>& values() const { return values_; }
  const std::vector<Note>& notes() const { return notes_; }
  const std::string& origin() const { return origin_; }  // the file's name in errors

  // The program that a shell script starts, "verl.trainer.main_ppo"; empty where there is none.
  std::string program;

 private:
  std::string origin_;
  std::vector<ForeignValue> values_;
  std::map<std::string, std::size_t, std::less<>> places_;  // key -> index in values_
  std::vector<Note> notes_;
  bool full_ = false;
};

}  // namespace tandem::translate
