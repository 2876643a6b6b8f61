#include <ostream>

#include "actors/cli/api_object.h"
#include "actors/cli/node_change.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

struct Uncordon {
  static VerbHelp help() {
    return {.name = "uncordon",
            .group = VerbGroup::kCluster,
            .description = "Give a cordoned node new actors again",
            .examples = {"tandem uncordon gpu-3"}};
  }

  void options(Options& options) { add_node(options, node); }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;

  std::string node;
};

Result<void> Uncordon::carry_out(Client& client) const {
  const auto now = change_node(client, node, "uncordon");
  if (!now) return now.error();
  client.console.err << "node " << node << " takes new actors" << std::endl;
  return {};
}

}  // namespace

Verb uncordon_verb() { return make_verb<Uncordon>(); }

}  // namespace tandem::cli
