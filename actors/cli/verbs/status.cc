#include <ostream>

#include "actors/cli/cells.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/table.h"
#include "actors/cli/trouble_view.h"
#include "actors/cli/verb.h"
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
  const std::string alerts = alert_lines(status);
  const std::vector<Row> rows{
      {"controller", (address.starts_with("http") ? "" : "http://") + address + ", pid " +
                         text(at(status, {"pid"})) + ", version " + text(at(status, {"version"}))},
      {"started", cells::clock_time(started, unix_ms()) + " (" + cells::age_of(started, unix_ms()) +
                      " ago), epoch " + text(at(status, {"epoch"}))},
      {"home", text(at(status, {"home"}))},
      {"nodes", counts(at(status, {"nodes"}))},
      {"jobs", counts(at(status, {"jobs"}))},
      {"runs", text(at(status, {"runs"}))},
      {"alerts", alerts.empty() ? "none" : std::to_string(at(status, {"alerts"}).size())}};
  const std::string table = render_table({{""}, {""}}, rows, width);
  return table.substr(table.find('\n') + 1) + (alerts.empty() ? "" : "\n" + alerts);
}

struct Status {
  static VerbHelp help() {
    return {.name = "status",
            .group = VerbGroup::kCluster,
            .description = "What runs: the controller, its nodes, jobs and runs, and what is wrong",
            .examples = {"tandem status"}};
  }

  void options(Options& options) {
    using enum OutputForm;
    add_output(options, output, {kTable, kJson, kYaml});
  }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;

  OutputForm output = OutputForm::kTable;
};

Result<void> Status::carry_out(Client& client) const {
  auto status = client.api.get("/status");
  if (!status) return status.error();
  if (output == OutputForm::kTable)
    client.console.out << status_lines(*status, client.api, client.console.columns()) << std::flush;
  else
    client.console.out << (output == OutputForm::kYaml ? to_yaml(*status)
                                                       : shown_json(*status, 2) + "\n")
                       << std::flush;
  return {};
}

}  // namespace

Verb status_verb() { return make_verb<Status>(); }

}  // namespace tandem::cli
