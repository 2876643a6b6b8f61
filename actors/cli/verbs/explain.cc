#include "actors/job/explain.h"

#include <optional>
#include <ostream>
#include <string>

#include "actors/cli/verb.h"
#include "runtime/sandbox/probe.h"

namespace tandem::cli {
namespace {

struct Explain {
  static VerbHelp help() {
    return {.name = "explain",
            .group = VerbGroup::kHelp,
            .description = "What a key of the job file means",
            .examples = {"tandem explain", "tandem explain async",
                         "tandem explain async.max_staleness"}};
  }

  void options(Options& options) {
    options.add("KEY", key, "A key or a section; else all of them");
    options.hidden_flag("--markdown", markdown, "The whole reference page");
  }

  Result<int> run(const VerbContext& context) {
    const auto text =
        markdown ? Result<std::string>(job::job_file_reference()) : job::explain(key.value_or(""));
    if (!text) return text.error();
    context.console.out << *text;
    if (key && key->ends_with("sandbox"))
      context.console.out << "\n  Here: " << sandbox::text(sandbox::probe_layers()) << "\n";
    context.console.out << std::flush;
    return 0;
  }

  std::optional<std::string> key;
  bool markdown = false;  // prints docs/job-file.md
};

}  // namespace

Verb explain_verb() { return make_verb<Explain>(); }

}  // namespace tandem::cli
