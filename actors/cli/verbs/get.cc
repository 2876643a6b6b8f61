#include <utility>

#include "actors/cli/listing.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

struct Get {
  static VerbHelp help() {
    return {
        .name = "get",
        .group = VerbGroup::kLook,
        .description = "List jobs, runs, actors, nodes, groups or events; `tandem jobs` will do",
        .examples = {"tandem get jobs", "tandem get actors -o wide", "tandem runs",
                     "tandem get runs --sort-by -reward_mean", "tandem get runs --group sweep-1",
                     "tandem get actors/arithmetic-grpo-1/rollout/0 -o json",
                     "tandem get groups -j arithmetic-grpo", "tandem get jobs -w"}};
  }

  void options(Options& options) {
    const auto take = [this](ObjectName object) -> Result<void> {
      request.kind = object.kind;
      request.name = std::move(object.name);
      return {};
    };
    add_object(options, "KIND", take, "jobs, runs, actors, nodes, groups or events, and a NAME")
        .value("[NAME]")
        .choices(kind_names());
    using enum OutputForm;
    add_output(options, request.output, {kTable, kWide, kJson, kYaml, kName});
    options.flag("-w,--watch", request.watch, "Show changes until interrupted");
    options.flag("--all", request.all, "Tables show actors that have ended as well");
    options
        .add("--sort-by", request.sort_by,
             "In the order of a field of the JSON; -FIELD: the greatest first")
        .value("FIELD");
    options.add("--group", request.group, "Of runs: those of this group (`tracking.group`)")
        .value("NAME");
    options.add("--tag", request.tags, "Of runs: those with this tag; repeatable, and all count")
        .value("TAG")
        .one_each();
    add_job(options, request.job);
  }

  Result<int> run(const VerbContext& context) { return show_list(request, context); }

  ListRequest request;
};

}  // namespace

Verb get_verb() { return make_verb<Get>(); }

}  // namespace tandem::cli
