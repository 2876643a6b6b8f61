// The commands that only talk to the controller's HTTP API. Data goes to `out`, chatter to `err`.
// Each returns when done, or with the error whose code is the exit code; main prints it.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "actors/main/cli/api_client.h"
#include "actors/main/cli/command.h"
#include "runtime/base/result.h"

namespace tandem::cli {

struct Client {
  ApiClient& api;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;       // `out` is one: watching redraws, tables fit its width
  std::function<int()> width;  // columns of `out` now, kUnlimitedWidth off a terminal
};

Result<void> execute(const SubmitCommand& command, Client& client);
Result<void> execute(const GetCommand& command, Client& client);
Result<void> execute(const DescribeCommand& command, Client& client);
Result<void> execute(const WhyCommand& command, Client& client);
Result<void> execute(const ScaleCommand& command, Client& client);
Result<void> execute(const LogsCommand& command, Client& client);
Result<void> execute(const EventsCommand& command, Client& client);
Result<void> execute(const CancelCommand& command, Client& client);
Result<void> execute(const SamplesCommand& command, Client& client);
Result<void> execute(const TopCommand& command, Client& client);
Result<void> execute(const DeleteCommand& command, Client& client);
Result<void> execute(const StatusCommand& command, Client& client);
Result<void> execute(const DashboardCommand& command, Client& client);
Result<void> execute(const WaitCommand& command, Client& client);

// The samples of a run that needs no controller: `job` is a run directory, or the id of one under
// TANDEM_HOME/runs. nullopt: there is none, so the controller is to be asked.
Result<std::optional<nlohmann::json>> read_samples(const SamplesCommand& command);

// Succeeded, Failed or Cancelled.
bool has_ended(const nlohmann::json& job);
bool actor_has_ended(const nlohmann::json& actor);  // Stopped or Failed
// What an ended job means for the command that waited for it: kFailed unless it succeeded.
Result<void> outcome_of(const nlohmann::json& job);

// Looks at the job whenever the controller reports a change of it (and each second) until `done`
// says true. The job's last JSON.
Result<nlohmann::json> watch_job(Client& client, const std::string& job_id,
                                 const std::function<bool(const nlohmann::json&)>& done);

}  // namespace tandem::cli
