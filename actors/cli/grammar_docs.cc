// CLI11 prints an option's text in its usage line, and its type where that is empty: options
// without a value text therefore have the text " ", which is removed here.
#include "actors/cli/grammar_docs.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tandem::cli {

namespace {

constexpr std::size_t kHelpColumns = 100;
constexpr std::size_t kDescriptionColumn = 30;  // where CLI11 begins the description of an option

// `line` broken at spaces; the lines behind the first are indented.
std::string broken(std::string line, std::size_t indent) {
  std::string text;
  while (line.size() > kHelpColumns) {
    const std::size_t at = line.rfind(' ', kHelpColumns);
    if (at == std::string::npos || at <= indent) break;
    text += line.substr(0, at) + "\n";
    line = std::string(indent, ' ') + line.substr(at + 1);
  }
  return text + line;
}

// The NAMES (complete_command.h) for an option, found by its value text or its argument's name.
std::string usual_names(const OptionDoc& option) {
  static constexpr std::pair<std::string_view, const char*> kAsked[] = {
      {"JOB", "records"},       {"ACTOR", "actors"}, {"ACTOR|JOB", "targets"},
      {"KIND/NAME", "objects"}, {"run/ID", "runs/"}, {"KEY", "keys"},
      {"KEY=VALUE", "sets"},    {"RUN_DIR", "runs"}, {"MODEL_DIR", "models"}};
  for (const auto& [name, names] : kAsked)
    if (option.value == name || option.names.front() == name) return names;
  return "";
}

}  // namespace

std::string wrapped_help(const std::string& help) {
  std::string text;
  std::size_t begin = 0;
  while (begin < help.size()) {
    const std::size_t end = std::min(help.find('\n', begin), help.size());
    const std::string line = help.substr(begin, end - begin);
    text += broken(line, line.starts_with("  ") ? kDescriptionColumn : 0) + "\n";
    begin = end + 1;
  }
  return text;
}

OptionDoc option_doc(const CLI::Option& option) {
  OptionDoc doc{.names = {},
                .value = option.get_option_text(),
                .description = option.get_description(),
                .choices = {},
                .offers = {}};
  if (option.get_positional()) doc.names = {option.get_name(true)};
  for (const std::string& name : option.get_snames()) doc.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) doc.names.push_back("--" + name);
  if (doc.value == " ") doc.value.clear();
  return doc;
}

CommandDoc command_doc(const VerbHelp& verb, const VerbParser& parser) {
  const CLI::App& app = *parser.app;
  CommandDoc command{.name = verb.name,
                     .group = std::string(spelling(verb.group)),
                     .description = verb.description,
                     .usage = "tandem " + verb.name,
                     .arguments = {},
                     .options = {},
                     .examples = verb.examples};
  for (const CLI::Option* option : app.get_options({})) {
    // An empty group hides an option from help, and so from documents.
    if (option->get_group().empty() || option == app.get_help_ptr()) continue;
    OptionDoc doc = option_doc(*option);
    const auto slot = std::ranges::find(parser.options, option, &OptionSlot::option);
    if (slot != parser.options.end()) {  // a flag has none
      doc.choices = slot->choices;
      doc.offers = slot->offers.empty() ? usual_names(doc) : slot->offers;
    }
    (option->get_positional() ? command.arguments : command.options).push_back(std::move(doc));
  }
  if (!command.options.empty()) command.usage += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options({})) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true), text = option->get_option_text();
    const std::string word = name + (text.empty() || text == " " ? "" : " " + text);
    // Brackets mark an argument that may be left out, as in a manual page.
    command.usage += option->get_required() ? " " + word : " [" + word + "]";
  }
  return command;
}

}  // namespace tandem::cli
