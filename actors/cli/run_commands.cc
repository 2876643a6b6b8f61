// `tandem delete run/ID` and `tandem status`.
#include <ostream>

#include "actors/cli/api_object.h"
#include "actors/cli/arguments.h"
#include "actors/cli/cells.h"
#include "actors/cli/object_names.h"
#include "actors/cli/table.h"
#include "actors/cli/views.h"

namespace tandem::cli {
namespace {

using cells::at;
using cells::text;
using nlohmann::json;

// "1 Running, 2 Succeeded"
std::string counts(const json& by_state) {
  std::string list;
  if (by_state.is_object())
    for (const auto& [state, number] : by_state.items())
      if (number != 0) list += (list.empty() ? "" : ", ") + text(number) + " " + state;
  return list.empty() ? "none" : list;
}

std::string status_lines(const json& status, const ApiClient& api, int width) {
  const json& started = at(status, {"started"});
  // The controller names its own address; the one that was dialled stands in for it.
  const json& http = at(status, {"http"});
  const std::string address =
      http.is_string() ? http.get<std::string>() : link::to_string(api.address().endpoint);
  const std::vector<Row> rows{
      {"controller", (address.starts_with("http") ? "" : "http://") + address + ", pid " +
                         text(at(status, {"pid"})) + ", version " + text(at(status, {"version"}))},
      {"started", cells::clock_time(started, unix_ms()) + " (" + cells::age_of(started, unix_ms()) +
                      " ago), epoch " + text(at(status, {"epoch"}))},
      {"home", text(at(status, {"home"}))},
      {"nodes", counts(at(status, {"nodes"}))},
      {"jobs", counts(at(status, {"jobs"}))},
      {"runs", text(at(status, {"runs"}))}};
  const std::string table = render_table({{""}, {""}}, rows, width);
  return table.substr(table.find('\n') + 1);
}

}  // namespace

// Deletes by id alone, since a name may mean another run tomorrow.
Result<void> execute(const DeleteCommand& command, Client& client) {
  auto deleted = client.api.remove("/runs/" + url_escape(command.run));
  if (!deleted && deleted.error().code == ErrorCode::kNotFound) {
    auto runs = get_list(client, "/runs");
    if (!runs) return deleted;
    std::vector<std::string> ids;
    for (const json& run : *runs) ids.push_back(field(run, "id"));
    return not_found("run", command.run, ids);
  }
  if (!deleted) return deleted;
  client.out << "run/" << command.run << " deleted" << std::endl;
  return {};
}

Result<void> execute(const StatusCommand& command, Client& client) {
  auto status = client.api.get("/status");
  if (!status) return status.error();
  if (command.output == OutputForm::kTable)
    client.out << status_lines(*status, client.api, client.width()) << std::flush;
  else
    client.out << (command.output == OutputForm::kYaml ? to_yaml(*status)
                                                       : shown_json(*status, 2) + "\n")
               << std::flush;
  return {};
}

}  // namespace tandem::cli
