#include <ostream>
#include <set>
#include <string>

#include "actors/cli/api_object.h"
#include "actors/cli/cells.h"
#include "actors/cli/job_watch.h"
#include "actors/cli/node_change.h"
#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/table.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr double kDrainTimeoutUsual_s = 15 * 60;  // a learner may take ten minutes

struct Drain {
  static VerbHelp help() {
    return {
        .name = "drain",
        .group = VerbGroup::kCluster,
        .description =
            "Move all actors off a node, and give it no new ones; returns when it is empty",
        .examples = {"tandem drain gpu-3", "tandem drain gpu-3 --reason new-driver --timeout 5m"}};
  }

  void options(Options& options) {
    add_node(options, node);
    add_reason(options, reason);
    add_time(options, "--timeout", timeout_s, "How long to wait until it is empty; 15m");
  }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;

  std::string node;
  std::optional<std::string> reason;
  std::optional<double> timeout_s;  // nullopt: kDrainTimeoutUsual_s
};

// Says which of the actors that were on the node have no room anywhere else.
Result<void> tell_waiting(Client& client, const std::string& node, const json& before) {
  const auto actors = get_list(client, "/actors");
  if (!actors) return actors.error();
  std::set<std::string> moved;
  for (const json& rank : cells::at(before, {"reserved"})) moved.insert(field(rank, "actor"));
  std::string waiting;
  for (const json& actor : *actors)
    if (const std::string name = field(actor, "name");
        moved.contains(name) && field(actor, "state") == "Queued")
      waiting += (waiting.empty() ? "" : ", ") + name;
  client.console.err << "node " << node << " is empty" << std::endl;
  if (!waiting.empty())
    client.console.err << "waiting for room: " << waiting << "; `tandem why` says for what"
                       << std::endl;
  return {};
}

Result<void> Drain::carry_out(Client& client) const {
  const auto begun = change_node(client, node, "drain", reason);
  if (!begun) return begun.error();
  const auto left = [](const json& now) { return cells::at(now, {"reserved"}).size(); };
  client.console.err << "node " << node << " takes no new actors; " << left(*begun)
                     << " processes are to leave" << std::endl;
  const double limit_s = timeout_s.value_or(kDrainTimeoutUsual_s);
  const Deadline deadline(limit_s);
  client.api.give_up_at(deadline.at);
  const auto last = watch_object(client, "/nodes/" + url_escape(node), [&](const json& now) {
    return left(now) == 0 || deadline.passed();
  });
  if (!last) return last.error();
  if (left(*last) == 0) return tell_waiting(client, node, *begun);
  return Error{ErrorCode::kTimedOut,
               std::to_string(left(*last)) + " processes are still there after " + age(limit_s), "",
               "`tandem describe nodes " + node + "` lists them; they go on leaving"};
}

}  // namespace

Verb drain_verb() { return make_verb<Drain>(); }

}  // namespace tandem::cli
