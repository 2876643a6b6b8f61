// A visitor over Command: commands without a controller have an overload each; every command for
// which execute() exists in client_commands.h is sent to the controller; for all others the last
// overload returns nullopt. A new client command therefore needs only its execute().
#include "actors/main/cli/client_program.h"

#include <ostream>

#include "actors/main/cli/api_client.h"
#include "actors/main/cli/client_commands.h"
#include "actors/main/cli/command_line.h"
#include "actors/main/cli/complete_command.h"
#include "actors/main/cli/doctor.h"
#include "actors/main/cli/table.h"
#include "actors/main/cli/views.h"
#include "actors/main/job/explain.h"
#include "runtime/base/json.h"

namespace tandem::app {
namespace {

using Outcome = std::optional<Result<void>>;

struct Program {
  const Invocation& invocation;
  const Console& console;

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
    if (command.markdown) return print(job_file_reference());
    auto text = explain(command.key.value_or(""));
    return text ? print(*text) : Outcome(text.error());
  }

  Outcome operator()(const DoctorCommand& command) const {
    const std::vector<Finding> findings = examine_machine(tandem_home(), kPortDefault);
    console.out << render_findings(findings, command.output, console.columns()) << std::flush;
    if (!any_bad(findings)) return Result<void>();
    return Result<void>(
        Error{ErrorCode::kFailed, "this machine cannot run Tandem as it is", "", ""});
  }

  // The samples of a running job are asked of the controller first, since the job may run on
  // another machine. A run directory, and a run that has ended, need no controller.
  Outcome operator()(const SamplesCommand& command) const {
    const Result<void> answered = ask(command);
    // No controller, or one that does not know the job: a directory here may have its samples.
    const bool elsewhere = !answered && (answered.error().code == ErrorCode::kUnreachable ||
                                         answered.error().code == ErrorCode::kNotFound);
    if (!elsewhere) return answered;
    auto samples = read_samples(command);
    if (!samples) return Outcome(samples.error());
    if (!*samples) return answered;
    return print(render_samples(**samples, command.output, {console.columns(), unix_ms()}));
  }

  template <class Asked>
  Result<void> ask(const Asked& command) const {
    auto address = resolve_address(invocation.address);
    if (!address) return address.error();
    ApiClient api(std::move(*address));
    Client client{.api = api,
                  .out = console.out,
                  .err = console.err,
                  .terminal = console.terminal,
                  .width = [this] { return console.columns(); }};
    return execute(command, client);
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

std::optional<Result<void>> run_client(const Invocation& invocation, const Console& console) {
  return std::visit(Program{invocation, console}, invocation.command);
}

}  // namespace tandem::app
