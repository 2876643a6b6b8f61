#include "actors/cli/listing.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

struct Events {
  static VerbHelp help() {
    return {.name = "events",
            .group = VerbGroup::kLook,
            .description = "What happened, oldest first",
            .examples = {"tandem events -f", "tandem events -j arithmetic-grpo -o json"}};
  }

  void options(Options& options) {
    options.flag("-f,--follow", request.watch, "Go on as they happen");
    using enum OutputForm;
    add_output(options, request.output, {kTable, kWide, kJson, kYaml, kName});
    add_job(options, request.job);
  }

  Result<int> run(const VerbContext& context) { return show_list(request, context); }

  ListRequest request{.kind = Kind::kEvents};
};

}  // namespace

Verb events_verb() { return make_verb<Events>(); }

}  // namespace tandem::cli
