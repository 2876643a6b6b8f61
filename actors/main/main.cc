// The entry of every role: parses the command line, then carries out one verb or role and returns
// its exit code. `tandem rank` and `tandem cage` are recognised before the parser, since their
// arguments are not part of the user's grammar.
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <string_view>

#include "actors/cli/command_line.h"
#include "actors/cli/console.h"
#include "actors/main/offline_runs.h"
#include "actors/main/rank_process.h"
#include "actors/main/verbs.h"
#include "actors/rank/caged_program.h"
#include "runtime/node/open_files.h"

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
  if (!arguments.empty() && std::string_view(arguments[0]) == rank::kCageCommand)
    return rank::run_caged(arguments.subspan(1));
  const cli::Console console{std::cout, std::cerr, isatty(STDOUT_FILENO) != 0, terminal_width};
  auto invocation = cli::parse_command_line(arguments, all_verbs);
  if (!invocation) return console.complain(invocation.error());
  const auto code = invocation->verb.run({.console = console,
                                          .address = invocation->address,
                                          .verbose = invocation->verbose,
                                          .offline = offline_answers,
                                          .verbs = all_verbs});
  if (!code) return console.complain(code.error());
  // What a full disk did not take shows at the latest here.
  if (!std::cout.flush())
    return console.complain({ErrorCode::kFailed, "the output could not be written to its end", "",
                             "is its disk full?"});
  return *code;
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
  tandem::node::raise_open_files();
  return tandem::app::run_and_catch(
      std::span(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)));
}
