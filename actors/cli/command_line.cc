// The grammar is built once per parse: each verb declares its options to CLI11 (options.h), which
// writes them into the verb, and the checks of the verb that was met run afterwards. docs/cli.md
// and completion read the same definition back (grammar.h). Errors that CLI11 would explain badly,
// misspelt commands and options above all, are found here, so that the nearest name is in the help.
#include "actors/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <ostream>
#include <utility>

#include "actors/cli/arguments.h"
#include "actors/cli/complete_command.h"
#include "actors/cli/grammar.h"
#include "actors/cli/grammar_docs.h"
#include "actors/cli/verb_parser.h"

namespace tandem::cli {
namespace {

const std::vector<std::string> kLaterCommands{"size", "simulate", "serve"};

// A verb of the parser itself, beside those of the table.
Verb unlisted(std::function<Result<int>(const VerbContext&)> run) {
  return {.help = {}, .options = {}, .run = std::move(run)};
}

Verb printing_help(const std::string& help) {
  return unlisted([text = wrapped_help(help)](const VerbContext& context) -> Result<int> {
    context.console.out << text << std::flush;
    return 0;
  });
}

// Prints nothing, not even an error, where nothing can be offered: the shell would show it within
// the user's line.
Verb completing(const std::string& names) {
  return unlisted([names](const VerbContext& context) -> Result<int> {
    for (const std::string& word : completion_words(names, context.address))
      context.console.out << word << "\n";
    context.console.out << std::flush;
    return 0;
  });
}

class Grammar {
 public:
  explicit Grammar(const VerbTable& verbs);
  Result<Invocation> parse(std::vector<std::string> arguments);
  GrammarDoc doc() const;

 private:
  struct Entry {
    Verb verb;
    VerbParser parser;
  };

  void add(Verb verb);
  // Puts `get` before a kind that stands alone (`tandem jobs`). The first word that is no option is
  // the command; CLI11 would call a misspelt one an extra.
  Result<void> find_command(std::vector<std::string>& arguments) const;
  // An error of CLI11 in our words, with the nearest option where one is misspelt.
  Error explain_failure(const CLI::ParseError& error, const std::vector<std::string>& arguments);
  Result<Verb> chosen();
  Entry* parsed();
  std::vector<std::string> command_names() const;

  const VerbTable& table_;
  CLI::App app_{"Post-training of language models by asynchronous reinforcement learning."};
  std::deque<Entry> entries_;  // in the order of the table; CLI11's options refer to their parsers
  bool version_ = false;
  Invocation globals_;
};

Grammar::Grammar(const VerbTable& verbs) : table_(verbs) {
  app_.name("tandem");
  app_.require_subcommand(0, 1);
  app_.fallthrough();
  app_.set_help_flag("-h,--help", "Print help");
  app_.add_flag("--version", version_, "Print the version");
  app_.add_option("--address", globals_.address,
                  "The controller's HTTP address, as `up` prints it; else TANDEM_ADDRESS, else the "
                  "file that `up` wrote")
      ->option_text("HOST:PORT");
  app_.add_flag("-v,--verbose", globals_.verbose, "Say more on stderr");
  app_.footer(
      "`tandem COMMAND --help` shows a command's options and examples.\nStart with: tandem "
      "run configs/arithmetic.yaml");
  for (Verb& verb : table_()) add(std::move(verb));
}

void Grammar::add(Verb verb) {
  CLI::App* app = app_.add_subcommand(verb.help.name, verb.help.description);
  app->group(std::string(spelling(verb.help.group)));
  app->set_help_flag("-h,--help", "Print help");
  app->footer("Examples:\n  " + joined(verb.help.examples, "\n  "));
  Entry& entry = entries_.emplace_back(
      Entry{.verb = std::move(verb), .parser = {.app = app, .options = {}, .checks = {}}});
  Options options(entry.parser);
  entry.verb.options(options);
}

std::vector<std::string> Grammar::command_names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.verb.help.name);
  return names;
}

Grammar::Entry* Grammar::parsed() {
  const auto commands = app_.get_subcommands();
  for (Entry& entry : entries_)
    if (!commands.empty() && entry.parser.app == commands.front()) return &entry;
  return nullptr;
}

Error Grammar::explain_failure(const CLI::ParseError& error,
                               const std::vector<std::string>& arguments) {
  const Entry* entry = parsed();
  const std::string see =
      "see `tandem " + (entry ? entry->verb.help.name + " " : std::string()) + "--help`";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) && entry) {
    std::vector<std::string> options;
    for (const CLI::App* app : {entry->parser.app, &app_})
      for (const CLI::Option* option : app->get_options({}))
        for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    const std::vector<std::string> extras = app_.remaining(true);
    const std::string word = extras.empty() ? "" : extras.front();
    const bool option = word.starts_with("-");
    return usage_error((option ? "unknown option `" : "unexpected argument `") + word + "`",
                       option ? did_you_mean(word.substr(0, word.find('=')), options, see) : see);
  }
  if (!entry && !arguments.empty() && arguments.front().starts_with("-"))
    return usage_error("unknown option `" + arguments.front() + "`", see);
  return usage_error(error.what(), see);
}

Result<void> Grammar::find_command(std::vector<std::string>& arguments) const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--address") {
      ++i;
    } else if (!arguments[i].starts_with("-")) {
      const std::string word = arguments[i];
      const std::vector<std::string> names = command_names();
      if (std::ranges::find(names, word) != names.end()) return {};
      if (spelt<Kind>(word)) {
        arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), "get");
        return {};
      }
      if (std::ranges::find(kLaterCommands, word) != kLaterCommands.end())
        return usage_error("`tandem " + word + "` is not in this version",
                           "`tandem --help` lists the commands");
      return usage_error("unknown command `" + word + "`",
                         did_you_mean(word, names, "`tandem --help` lists the commands"));
    }
  }
  return {};
}

// The verb that the parsed line names, after its checks.
Result<Verb> Grammar::chosen() {
  if (version_) {  // with the defaults of its options
    std::vector<Verb> verbs = table_();
    const auto version =
        std::ranges::find(verbs, "version", [](const Verb& verb) { return verb.help.name; });
    CHECK(version != verbs.end());
    return std::move(*version);
  }
  Entry* entry = parsed();
  if (!entry) return printing_help(app_.help());
  for (const auto& check : entry->parser.checks)
    if (const auto good = check(); !good) return good.error();
  return std::move(entry->verb);
}

Result<Invocation> Grammar::parse(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  if (const auto found = find_command(arguments); !found) return found.error();
  for (std::string& word : arguments)
    if (word.starts_with('[') && word.ends_with(']')) word += kTakenAsWritten;
  try {  // CLI11 reports everything, help included, by throwing
    app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const Entry* entry = parsed();
    globals_.verb = printing_help(entry ? entry->parser.app->help("tandem") : app_.help());
    return globals_;
  } catch (const CLI::ParseError& error) {
    return explain_failure(error, arguments);
  }
  Result<Verb> verb = chosen();
  if (!verb) return verb.error();
  globals_.verb = std::move(*verb);
  return globals_;
}

GrammarDoc Grammar::doc() const {
  GrammarDoc grammar;
  for (const CLI::Option* option : app_.get_options({}))
    grammar.options.push_back(option_doc(*option));
  for (const Entry& entry : entries_)
    grammar.commands.push_back(command_doc(entry.verb.help, entry.parser));
  return grammar;
}

}  // namespace

Result<Invocation> parse_command_line(std::span<const char* const> arguments,
                                      const VerbTable& verbs) {
  if (arguments.size() == 2 && std::string_view(arguments[0]) == kCompleteCommand)
    return Invocation{.verb = completing(arguments[1]), .address = {}};
  return Grammar(verbs).parse({arguments.begin(), arguments.end()});
}

GrammarDoc grammar_doc(const VerbTable& verbs) { return Grammar(verbs).doc(); }

}  // namespace tandem::cli
