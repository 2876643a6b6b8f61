// The rows of the table in order, each with its value in YAML's flow form. A section's header is
// printed when its first key comes (JT-1). Strings are the delicate part: YAML readers of different
// versions take plain words for different things, and PJ-1 promises that the text reads back as the
// same job.
#include "actors/job/print_job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "runtime/base/json.h"

namespace tandem::job {
namespace {

constexpr std::size_t kColumnsMax = 100;  // of a line with a comment

std::string print_double(double value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  // The shortest form of a whole double is without a point; as `1` it would read back as an
  // integer. The letters stand for exponents, inf and nan.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// Words that some reader of YAML 1.1 or 1.2 takes for a value that is not a string; such a string
// is quoted.
bool is_reserved_word(std::string_view text) {
  static constexpr std::string_view kWords[] = {"null", "true", "false", "yes",      "no",  "on",
                                                "off",  "y",    "n",     "~",        "nan", "inf",
                                                ".inf", ".nan", "none",  "undefined"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return std::ranges::find(kWords, lower) != std::end(kWords);
}

// A string stands plain where every reader of YAML sees the same string, so that paths and names
// stay readable; else it gets the quoted form of JSON, which YAML contains.
std::string print_string(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '/' || c == '.' || c == '-';
  };
  const bool starts_plain =
      !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '/');
  if (starts_plain && std::ranges::all_of(text, plain) && !is_reserved_word(text)) return text;
  return dump_json(text);
}

// One overload per alternative of FieldRef; a missing one does not compile.
struct Print {
  std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
  std::string operator()(const std::int64_t* v) const { return std::to_string(*v); }
  std::string operator()(const double* v) const { return print_double(*v); }
  std::string operator()(const std::string* v) const { return print_string(*v); }
  std::string operator()(const std::filesystem::path* v) const { return print_string(*v); }
  std::string operator()(const EnumField& v) const { return std::string(v.get().value_or("null")); }
  std::string operator()(const WordOrNumber& v) const {
    return std::visit(
        [&](const auto* number) { return *number ? (*this)(&**number) : std::string(v.word); },
        v.number);
  }
  template <class T>
  std::string operator()(const std::optional<T>* v) const {
    return *v ? (*this)(&**v) : "null";
  }
  template <class T>
  std::string operator()(const std::vector<T>* v) const {
    return list(*v);
  }
  std::string operator()(const std::array<double, 2>* v) const { return list(*v); }
  std::string operator()(const std::map<std::string, std::string>* v) const {
    std::string text;
    for (const auto& [name, value] : *v)
      text += (text.empty() ? "" : ", ") + print_string(name) + ": " + print_string(value);
    return "{" + text + "}";
  }
  std::string operator()(const std::map<std::string, double>* v) const {
    std::string text;
    for (const auto& [name, value] : *v)
      text += (text.empty() ? "" : ", ") + print_string(name) + ": " + print_double(value);
    return "{" + text + "}";
  }
  std::string operator()(const NameOrPath* v) const { return (*this)(&v->text); }
  std::string operator()(const PlacedName* v) const { return print_string(v->text); }
  std::string operator()(const JsonObject* v) const { return v->text; }  // JSON is YAML

 private:
  template <class List>
  std::string list(const List& items) const {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ", ") + (*this)(&item);
    return "[" + text + "]";
  }
};

bool present(const JobSpec& job, std::string_view section_path) {
  const Section* section = find_section(section_path);
  return !section || !section->present || section->present(job);
}

std::size_t depth(std::string_view path) {
  return static_cast<std::size_t>(std::ranges::count(path, '.'));
}

// The headers of `section` that are not open yet; JT-1 makes this a simple comparison.
std::string open_section(std::string_view section, std::string_view open) {
  if (section.empty() || section == open || open.starts_with(std::string(section) + ".")) return "";
  return open_section(section_of(section), open) + std::string(2 * depth(section), ' ') +
         std::string(last_part(section)) + ":\n";
}

// Prints keys one after the other, and the headers of sections that begin.
struct Printer {
  void print(const PrintedKey& key) {
    const std::string& path = key.path;
    const std::string section(section_of(path));
    text += open_section(section, open);
    open = section;
    const std::string indent(2 * depth(path), ' ');
    const std::string line = indent + std::string(last_part(path)) + ": " + key.value;
    if (key.comment.empty())
      text += line + "\n";
    else if (line.size() + 4 + key.comment.size() <= kColumnsMax)
      text += line + "  # " + key.comment + "\n";
    else
      text += indent + "# " + key.comment + "\n" + line + "\n";
  }
  std::string text, open;
};

// Whether a key of `reward` says how a score is paid, of the sum as of a part.
bool is_payment(std::string_view path) {
  return path == "reward.scale" || path == "reward.bias" || path == "reward.clip" ||
         path == "reward.weight";
}

bool is_of_actors(const Key& key) { return !table_path(key.path).actor.empty(); }

}  // namespace

std::string print_value(const FieldRef& field) { return std::visit(Print{}, field); }

void for_each_field(const JobSpec& job, const TakeField& take) {
  JobSpec copy = job;  // FieldRef is for writing too
  const auto add_named = [&](const TablePath& of, auto belongs) {
    for (const Key& key : job_keys())
      if (belongs(key)) take(users_path(key.path, of), NamedField(copy, of).field(key));
  };
  const auto is_of_part = [](const Key& key) { return key.of_part; };
  bool in_reward = false;
  for (const Key& key : job_keys()) {
    // The parts of a reward come behind its own keys (JT-1).
    if (std::exchange(in_reward, key.path.starts_with("reward.")) && !in_reward && trains(job))
      for (const auto& [name, part] : job.reward.parts) add_named({"", "", name}, is_of_part);
    // A job of actors alone has no other key than its name.
    bool used = trains(job) || key.path == "name";
    // With parts, the keys of a single verifier mean nothing but for the payment of the sum.
    if (key.of_part && !job.reward.parts.empty()) used = used && is_payment(key.path);
    if (used && !is_of_actors(key) && present(job, section_of(key.path)))
      take(std::string(key.path), key.field(copy));
  }
  for (const auto& [name, actor] : job.actors) add_named({"", name, ""}, is_of_actors);
}

std::vector<PrintedKey> printed_keys(const JobSpec& job) {
  std::vector<PrintedKey> keys;
  for_each_field(job, [&](const std::string& path, const FieldRef& field) {
    // Epochs decide the steps; a file with both would have the steps decide.
    if (job.data.total_epochs && path == "learner.total_training_steps") return;
    keys.push_back({path, print_value(field)});
  });
  return keys;
}

std::string print_keys(const std::vector<PrintedKey>& keys) {
  Printer printer;
  for (const PrintedKey& key : keys) printer.print(key);
  return std::move(printer.text);
}

std::string print_job(const JobSpec& job) { return print_keys(printed_keys(job)); }

}  // namespace tandem::job
