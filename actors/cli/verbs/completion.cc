#include <ostream>

#include "actors/cli/grammar.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

struct Completion {
  static VerbHelp help() {
    return {.name = "completion",
            .group = VerbGroup::kHelp,
            .description = "Print a completion script for a shell",
            .examples = {"source <(tandem completion bash)", "tandem completion fish | source"}};
  }

  void options(Options& options) {
    using enum Shell;
    options.one_of("SHELL", shell, {kBash, kFish, kZsh}, "bash, zsh or fish").required();
  }

  Result<int> run(const VerbContext& context) {
    context.console.out << completion_script(shell, grammar_doc(context.verbs)) << std::flush;
    return 0;
  }

  Shell shell = Shell::kBash;
};

}  // namespace

Verb completion_verb() { return make_verb<Completion>(); }

}  // namespace tandem::cli
