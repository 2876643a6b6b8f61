#include <ostream>

#include "actors/cli/api_object.h"
#include "actors/cli/node_change.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

struct Cordon {
  static VerbHelp help() {
    return {.name = "cordon",
            .group = VerbGroup::kCluster,
            .description = "Give a node no new actors; those that run there stay",
            .examples = {"tandem cordon gpu-3 --reason loud-fan"}};
  }

  void options(Options& options) {
    add_node(options, node);
    add_reason(options, reason);
  }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;

  std::string node;
  std::optional<std::string> reason;
};

Result<void> Cordon::carry_out(Client& client) const {
  const auto now = change_node(client, node, "cordon", reason);
  if (!now) return now.error();
  client.console.err << "node " << node << " takes no new actors: " << field(*now, "cordoned")
                     << std::endl;
  return {};
}

}  // namespace

Verb cordon_verb() { return make_verb<Cordon>(); }

}  // namespace tandem::cli
