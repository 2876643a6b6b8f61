// How a verb declares its options and arguments: once, for the parser, the help, docs/cli.md and
// completion. The values are fields of the verb, which outlives its Options; fields that the
// command line does not name keep their defaults. Users of this header do not see CLI11.
//
//   options.add("JOB", job, "The job").required();
//   options.add("--tail", tail, "Only the last N lines, of each actor").value("N").between(0, 99);
//
// A value that CLI11 or a restriction below refuses is a usage error that names the option.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/enum_names.h"
#include "runtime/base/result.h"

namespace tandem::cli {

struct OptionSlot;  // verb_parser.h
struct VerbParser;

// An option or an argument that is declared. Each function adds one property to it.
class Option {
 public:
  explicit Option(OptionSlot& slot) : slot_(&slot) {}

  Option& value(const std::string& text);  // what the help shows behind its name: "N", "TIME"
  Option& required();
  Option& words(int least, int most);     // the argument takes so many words
  Option& one_each();                     // a list: each mention of the option takes one value
  Option& as_written();                   // a list whose values may look like "[1,2]" themselves
  Option& excludes(const Option& other);  // both together are an error
  template <class Number>                 // int, std::int64_t or double
  Option& between(Number least, Number most);
  // While the line is parsed, `fault_of` returns the fault of a value, or an empty text.
  Option& refuse_by(std::string (*fault_of)(const std::string& value));
  Option& choices(std::vector<std::string> words);  // completion offers these
  // Completion asks for these NAMES (complete_command.h). Without it the value text or the
  // argument's name decides: JOB means jobs and runs, MODEL_DIR means checkpoints, …
  Option& offers(const char* names);

 private:
  OptionSlot* slot_;  // owned by the parser
};

class Options {
 public:
  explicit Options(VerbParser& parser) : parser_(parser) {}

  // Declares the option "-o,--output" or, without dashes, the argument "JOB". T is int,
  // std::int64_t, double, std::string, one of the latter three as an optional, or a list of texts.
  template <class T>
  Option add(const std::string& names, T& value, const std::string& description);
  Option add(const std::string& names, std::filesystem::path& value,
             const std::string& description);
  // An empty path counts as none.
  Option add(const std::string& names, std::optional<std::filesystem::path>& value,
             const std::string& description);
  void flag(const std::string& names, bool& value, const std::string& description);
  // A flag that neither the help nor docs/cli.md shows.
  void hidden_flag(const std::string& names, bool& value, const std::string& description);
  // An option that only Tandem itself gives, likewise.
  void hidden_path(const std::string& names, std::optional<std::filesystem::path>& value);

  // A value that has one of the names of an enum (enum_names.h).
  template <class Enum>
  Option one_of(const std::string& names, Enum& value, std::initializer_list<Enum> allowed,
                const std::string& description) {
    std::vector<std::string> words;
    for (const Enum one : allowed) words.emplace_back(spelling(one));
    return add_choice(
        names, std::move(words), [&value](const std::string& word) { value = *spelt<Enum>(word); },
        description);
  }

  // A value that means more than CLI11 knows. Where the option is given, `take` gets its text, or
  // its words, after the whole line has been parsed, as a check.
  Option read(const std::string& names, std::function<Result<void>(const std::string&)> take,
              const std::string& description);
  Option read_words(const std::string& names,
                    std::function<Result<void>(const std::vector<std::string>&)> take,
                    const std::string& description);

  // Checks run after the whole line has been parsed, unless it asks for the help or the version.
  // They and the functions of read() run in the order of their declarations; the first error is
  // that of the command line.
  void check(std::function<Result<void>()> check);

 private:
  // `take` gets a value while the line is parsed, after the restrictions have let it pass.
  Option add_word(const std::string& names, std::function<void(const std::string&)> take,
                  const std::string& description);
  // The same with a restriction to `words`.
  Option add_choice(const std::string& names, std::vector<std::string> words,
                    std::function<void(const std::string&)> take, const std::string& description);

  VerbParser& parser_;
};

}  // namespace tandem::cli
