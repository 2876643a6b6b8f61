#include "actors/cli/node_change.h"

#include <vector>

#include "actors/cli/api_object.h"
#include "actors/cli/object_names.h"

namespace tandem::cli {

void add_node(Options& options, std::string& node) {
  options.add("NODE", node, "The node, by its name").required().offers("nodes");
}

void add_reason(Options& options, std::optional<std::string>& reason) {
  options.add("--reason", reason, "Why, for people: `get nodes` and `why` show it").value("TEXT");
}

Result<nlohmann::json> change_node(Client& client, const std::string& node,
                                   const std::string& change,
                                   const std::optional<std::string>& reason) {
  std::string path = "/nodes/" + url_escape(node) + "/" + change;
  if (reason) path += "?reason=" + url_escape(*reason);
  auto changed = client.api.post(path, "");
  if (changed || changed.error().code != ErrorCode::kNotFound) return changed;
  const auto nodes = get_list(client, "/nodes");
  if (!nodes) return changed;
  std::vector<std::string> names;
  for (const nlohmann::json& one : *nodes) names.push_back(field(one, "name"));
  return not_found("node", node, names);
}

}  // namespace tandem::cli
