// The rows of the table in order, each with its value in YAML's flow form. A section's header is
// printed when its first key comes (JT-1). Strings are the delicate part: YAML readers of different
// versions take plain words for different things, and PJ-1 promises that the text reads back as the
// same job.
#include "actors/job/print_job.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/base/json.h"

namespace tandem::job {
namespace {

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
    text +=
        std::string(2 * depth(path), ' ') + std::string(last_part(path)) + ": " + key.value + "\n";
  }
  std::string text, open;
};

bool is_of_actors(const Key& key) { return !table_path(key.path).actor.empty(); }

}  // namespace

std::string print_value(const FieldRef& field) { return std::visit(Print{}, field); }

std::vector<PrintedKey> printed_keys(const JobSpec& job) {
  JobSpec copy = job;  // FieldRef is for writing too
  std::vector<PrintedKey> keys;
  for (const Key& key : job_keys()) {
    // A job of actors alone has no other key than its name.
    const bool used = trains(job) || key.path == "name";
    if (used && !is_of_actors(key) && present(job, section_of(key.path)))
      keys.push_back({std::string(key.path), print_value(key.field(copy))});
  }
  for (const auto& [name, actor] : job.actors)
    for (const Key& key : job_keys())
      if (is_of_actors(key))
        keys.push_back(
            {users_path(key.path, name), print_value(ActorField(copy, name).field(key))});
  return keys;
}

std::string print_job(const JobSpec& job) {
  Printer printer;
  for (const PrintedKey& key : printed_keys(job)) printer.print(key);
  return std::move(printer.text);
}

}  // namespace tandem::job
