// A visitor over Command: commands without a controller have an overload each; every command for
// which execute() exists in client_commands.h is sent to the controller; for all others the last
// overload returns nullopt. A new client command therefore needs only its execute().
#include "actors/cli/client_program.h"

#include <filesystem>
#include <ostream>

#include "actors/cli/api_client.h"
#include "actors/cli/client_commands.h"
#include "actors/cli/command_line.h"
#include "actors/cli/complete_command.h"
#include "actors/cli/doctor.h"
#include "actors/cli/table.h"
#include "actors/cli/views.h"
#include "actors/job/explain.h"
#include "runtime/base/json.h"

namespace tandem::cli {
namespace {

using Outcome = std::optional<Result<void>>;

struct Program {
  const Invocation& invocation;
  const Console& console;
  const HomeAnswers& home;

  Outcome print(const std::string& text) const {
    console.out << text << std::flush;
    return Result<void>();
  }

  Outcome operator()(const HelpCommand& command) const { return print(command.text); }

  Outcome operator()(const VersionCommand& command) const {
    const nlohmann::json version{{"version", TANDEM_VERSION}};
    if (command.output == OutputForm::kJson) return print(version.dump(2) + "\n");
    if (command.output == OutputForm::kYaml) return print(to_yaml(version));
    return print("tandem " TANDEM_VERSION "\n");
  }

  Outcome operator()(const CompletionCommand& command) const {
    return print(completion_script(command.shell));
  }

  // Prints nothing, not even an error, where nothing can be offered: the shell would show it within
  // the user's line.
  Outcome operator()(const CompleteCommand& command) const {
    std::string words;
    for (const std::string& word : completion_words(command.names, invocation.address))
      words += word + "\n";
    return print(words);
  }

  Outcome operator()(const ExplainCommand& command) const {
    if (command.markdown) return print(job::job_file_reference());
    auto text = job::explain(command.key.value_or(""));
    return text ? print(*text) : Outcome(text.error());
  }

  Outcome operator()(const DoctorCommand& command) const {
    const std::vector<Finding> findings = examine_machine(tandem_home(), kPortDefault);
    console.out << render_findings(findings, command.output, console.columns()) << std::flush;
    if (!any_bad(findings)) return Result<void>();
    return Result<void>(
        Error{ErrorCode::kFailed, "this machine cannot run Tandem as it is", "", ""});
  }

  // A run directory, which may lie anywhere, needs no controller.
  Outcome operator()(const SamplesCommand& command) const {
    const std::filesystem::path directory = std::filesystem::absolute(command.job);
    std::error_code ignored;
    if (!home || !std::filesystem::exists(directory / "samples.jsonl", ignored))
      return ask(command);
    SamplesCommand of_directory = command;
    of_directory.job = directory.lexically_normal().string();
    ApiClient api(home());
    return with(api, of_directory);
  }

  template <class Asked>
  Result<void> with(ApiClient& api, const Asked& command) const {
    Client client{.api = api,
                  .out = console.out,
                  .err = console.err,
                  .terminal = console.terminal,
                  .width = [this] { return console.columns(); }};
    return execute(command, client);
  }

  template <class Asked>
  Result<void> ask(const Asked& command) const {
    auto address = resolve_address(invocation.address);
    // kUnreachable: no address is given, and no controller runs here.
    if (!address && address.error().code == ErrorCode::kUnreachable && home &&
        looks_at_runs(invocation.command)) {
      console.err << "no controller runs; this is from the runs in " << tandem_home().string()
                  << std::endl;
      ApiClient api(home());
      return with(api, command);
    }
    if (!address) return address.error();
    ApiClient api(std::move(*address));
    return with(api, command);
  }

  template <class Asked>
  requires requires(const Asked& command, Client& client) { execute(command, client); }
  Outcome operator()(const Asked& command) const { return ask(command); }

  template <class Other>
  Outcome operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

int Console::columns() const { return terminal ? width() : kUnlimitedWidth; }

int Console::complain(const Error& error) const {
  if (!error.message.empty()) err << render(error) << "\n";  // else a note has said it
  return exit_code(error.code);
}

bool looks_at_runs(const Command& command) {
  if (const auto* get = std::get_if<GetCommand>(&command))
    return !get->watch &&
           (get->kind == Kind::kRuns || (get->kind == Kind::kEvents && (get->job || get->name)));
  if (const auto* events = std::get_if<EventsCommand>(&command))
    return !events->follow && events->job;
  if (const auto* describe = std::get_if<DescribeCommand>(&command))
    return describe->kind == Kind::kRuns || describe->kind == Kind::kJobs ||
           describe->kind == Kind::kActors;
  return std::holds_alternative<LogsCommand>(command) ||
         std::holds_alternative<SamplesCommand>(command) ||
         std::holds_alternative<WhyCommand>(command);
}

std::optional<Result<void>> run_client(const Invocation& invocation, const Console& console,
                                       const HomeAnswers& home) {
  return std::visit(Program{invocation, console, home}, invocation.command);
}

}  // namespace tandem::cli
