// Options are CLI11's, declared by its own functions. CLI11 prints an option's text in its usage
// line, and its type where that is empty: options without a value text therefore have the text
// " ", which grammar_docs.cc removes.
#include "actors/cli/options.h"

#include <memory>
#include <utility>

#include "actors/cli/verb_parser.h"

namespace tandem::cli {
namespace {

constexpr const char* kNoValueText = " ";

OptionSlot& slot_of(VerbParser& parser, CLI::Option* option) {
  option->option_text(kNoValueText);
  return parser.options.emplace_back(OptionSlot{.option = option, .choices = {}, .offers = {}});
}

// An option whose value, a text or a list of them, is kept until the checks run.
template <class T>
Option keep_until_checked(VerbParser& parser, const std::string& names,
                          std::function<Result<void>(const T&)> take,
                          const std::string& description) {
  const auto given = std::make_shared<std::optional<T>>();
  parser.checks.emplace_back(
      [given, take = std::move(take)] { return *given ? take(**given) : Result<void>(); });
  return Option(
      slot_of(parser, parser.app->add_option_function<T>(
                          names, [given](const T& value) { *given = value; }, description)));
}

}  // namespace

Option& Option::value(const std::string& text) {
  slot_->option->option_text(text);
  return *this;
}

Option& Option::required() {
  slot_->option->required();
  return *this;
}

Option& Option::words(int least, int most) {
  slot_->option->expected(least, most);
  return *this;
}

Option& Option::one_each() {
  slot_->option->allow_extra_args(false);
  return *this;
}

Option& Option::as_written() {
  slot_->option->transform([](std::string word) {
    if (word.ends_with(kTakenAsWritten)) word.pop_back();
    return word;
  });
  return *this;
}

Option& Option::excludes(const Option& other) {
  slot_->option->excludes(other.slot_->option);
  return *this;
}

template <class Number>
Option& Option::between(Number least, Number most) {
  slot_->option->check(CLI::Range(least, most));
  return *this;
}
template Option& Option::between(int, int);
template Option& Option::between(std::int64_t, std::int64_t);
template Option& Option::between(double, double);

Option& Option::refuse_by(std::string (*fault_of)(const std::string& value)) {
  slot_->option->check(fault_of);
  return *this;
}

Option& Option::choices(std::vector<std::string> words) {
  slot_->choices = std::move(words);
  return *this;
}

Option& Option::offers(const char* names) {
  slot_->offers = names;
  return *this;
}

template <class T>
Option Options::add(const std::string& names, T& value, const std::string& description) {
  return Option(slot_of(parser_, parser_.app->add_option(names, value, description)));
}
template Option Options::add(const std::string&, int&, const std::string&);
template Option Options::add(const std::string&, std::int64_t&, const std::string&);
template Option Options::add(const std::string&, double&, const std::string&);
template Option Options::add(const std::string&, std::string&, const std::string&);
template Option Options::add(const std::string&, std::optional<std::int64_t>&, const std::string&);
template Option Options::add(const std::string&, std::optional<double>&, const std::string&);
template Option Options::add(const std::string&, std::optional<std::string>&, const std::string&);
template Option Options::add(const std::string&, std::vector<std::string>&, const std::string&);

Option Options::add(const std::string& names, std::filesystem::path& value,
                    const std::string& description) {
  return add_word(
      names, [&value](const std::string& text) { value = text; }, description);
}

Option Options::add(const std::string& names, std::optional<std::filesystem::path>& value,
                    const std::string& description) {
  const auto take = [&value](const std::string& text) {
    if (!text.empty()) value = text;
  };
  return add_word(names, take, description);
}

void Options::flag(const std::string& names, bool& value, const std::string& description) {
  parser_.app->add_flag(names, value, description);
}

void Options::hidden_flag(const std::string& names, bool& value, const std::string& description) {
  parser_.app->add_flag(names, value, description)->group("");
}

void Options::hidden_path(const std::string& names, std::optional<std::filesystem::path>& value) {
  const auto take = [&value](const std::string& text) { value = text; };
  parser_.app->add_option_function<std::string>(names, take)->group("");
}

Option Options::read(const std::string& names, std::function<Result<void>(const std::string&)> take,
                     const std::string& description) {
  return keep_until_checked<std::string>(parser_, names, std::move(take), description);
}

Option Options::read_words(const std::string& names,
                           std::function<Result<void>(const std::vector<std::string>&)> take,
                           const std::string& description) {
  return keep_until_checked<std::vector<std::string>>(parser_, names, std::move(take), description);
}

void Options::check(std::function<Result<void>()> check) {
  parser_.checks.push_back(std::move(check));
}

Option Options::add_word(const std::string& names, std::function<void(const std::string&)> take,
                         const std::string& description) {
  return Option(
      slot_of(parser_, parser_.app->add_option_function<std::string>(names, take, description)));
}

Option Options::add_choice(const std::string& names, std::vector<std::string> words,
                           std::function<void(const std::string&)> take,
                           const std::string& description) {
  OptionSlot& slot =
      slot_of(parser_, parser_.app->add_option_function<std::string>(names, take, description));
  slot.option->check(CLI::IsMember(words));
  slot.choices = std::move(words);
  return Option(slot);
}

}  // namespace tandem::cli
