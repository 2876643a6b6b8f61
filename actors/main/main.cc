// The entry of every role: parses the command line, then runs one command or role and returns its
// exit code. `tandem rank` is recognised before the parser, since its arguments are not part of the
// user's grammar. Commands that only talk to a controller go to run_client(); the others are
// carried out in this folder.
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <string_view>
#include <variant>

#include "actors/cli/client_program.h"
#include "actors/cli/command_line.h"
#include "actors/main/cluster.h"
#include "actors/main/kept_runs.h"
#include "actors/main/local_run.h"
#include "actors/main/model_commands.h"
#include "actors/main/rank_process.h"
#include "actors/main/tokenize_command.h"
#include "kernels/backend.h"

namespace tandem::app {
namespace {

int terminal_width() {
  winsize size{};
  // A terminal that does not know its width gets 100 columns.
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return size.ws_col;
}

int run(std::span<const char* const> arguments) {
  if (!arguments.empty() && std::string_view(arguments[0]) == kRankCommand)
    return run_rank(arguments.subspan(1));
  const cli::Console console{std::cout, std::cerr, isatty(STDOUT_FILENO) != 0, terminal_width};
  auto invocation = cli::parse_command_line(arguments);
  if (!invocation) return console.complain(invocation.error());
  if (const auto done = run_client(*invocation, console, answers_of_home))
    return *done ? 0 : console.complain(done->error());
  const cli::Command& command = invocation->command;
  const bool verbose = invocation->verbose;
  if (std::holds_alternative<cli::DownCommand>(command)) return cluster_down(console);
  if (const auto* c = std::get_if<cli::ControllerCommand>(&command))
    return run_controller(*c, console, verbose);
  if (const auto* c = std::get_if<cli::TokenizeCommand>(&command))
    return tokenize(*c, std::cin, console);
  // The other commands compute, or start processes that do.
  if (const auto isa = kernels::chosen_isa(); !isa) return console.complain(isa.error());
  if (const auto* c = std::get_if<cli::RunCommand>(&command)) return run_job(*c, console, verbose);
  if (const auto* c = std::get_if<cli::UpCommand>(&command)) return cluster_up(*c, console);
  if (const auto* c = std::get_if<cli::NodeCommand>(&command))
    return run_node(*c, console, verbose);
  if (const auto* c = std::get_if<cli::GenerateCommand>(&command)) return generate(*c, console);
  return evaluate(std::get<cli::EvalCommand>(command), console);
}

// We do not throw; libraries do, and any allocation may. Such an end is told as every other error
// is, with its exit code, and is no abort.
int run_and_catch(std::span<const char* const> arguments) {
  Error error;
  try {
    return run(arguments);
  } catch (const std::bad_alloc&) {
    error = {ErrorCode::kOutOfMemory, "there is not enough memory for this", "",
             "give it more (`ulimit -v`, the limit of a container), or less to read"};
  } catch (const std::exception& thrown) {
    error = {ErrorCode::kFailed, std::string("an unexpected failure: ") + thrown.what(), "",
             "this is a bug; please report it with the command"};
  }
  std::cerr << render(error) << std::endl;
  return exit_code(error.code);
}

}  // namespace
}  // namespace tandem::app

int main(int argc, char** argv) {
  umask(S_IRWXG | S_IRWXO);  // prompts, weights, logs and journals: for their owner alone
  return tandem::app::run_and_catch(
      std::span(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)));
}
