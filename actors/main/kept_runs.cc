#include "actors/main/kept_runs.h"

#include <cstdlib>
#include <ostream>

#include "actors/main/cli/api_client.h"
#include "actors/main/cli/sorting.h"
#include "actors/main/cli/views.h"
#include "actors/main/exchange_host.h"
#include "actors/main/job_shape.h"
#include "runtime/base/clock.h"

namespace tandem::app {

std::optional<actors::JobFacts> read_job_facts(const std::string& yaml,
                                               const std::filesystem::path& run_dir) {
  const auto spec = parse_kept_job(yaml, run_dir.string());
  if (!spec) return std::nullopt;
  const actors::JobShape shape = job_shape(*spec);
  return actors::JobFacts{shape.name, shape.total_steps};
}

bool lists_runs_of_this_home(const Invocation& invocation) {
  const auto* get = std::get_if<GetCommand>(&invocation.command);
  return get && get->kind == Kind::kRuns && !get->watch && !invocation.address &&
         std::getenv("TANDEM_ADDRESS") == nullptr;
}

Result<void> list_kept_runs(const GetCommand& command, const Console& console) {
  actors::RunCatalogue catalogue(tandem_home(), read_job_facts);
  const Screen screen{console.columns(), unix_ms()};
  console.err << "no controller runs; these are the runs in " << tandem_home().string() << "\n";
  if (command.name) {
    const auto run = catalogue.find(*command.name);
    if (!run) return run.error();
    console.out << render_item(Kind::kRuns, run_json(*run, screen.now_ms), command.output, screen)
                << std::flush;
    return {};
  }
  nlohmann::json runs = nlohmann::json::array();
  for (const actors::Run& run : catalogue.list())
    if (!command.job || run.id == *command.job || run.job.name == *command.job)
      runs.push_back(run_json(run, screen.now_ms));
  const auto sorted = sorted_by(command.sort_by, std::move(runs));
  if (!sorted) return sorted.error();
  console.out << render_items(Kind::kRuns, *sorted, command.output, screen) << std::flush;
  return {};
}

}  // namespace tandem::app
