// The commands that only talk to the controller's HTTP API. A command returns when it is done,
// or with the error whose code is the exit code; Console::complain() prints it.
#pragma once

#include <functional>
#include <string>

#include "actors/cli/client.h"
#include "actors/cli/command.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// One function per command, each in the source of its subject: ask_command.cc, client_commands.cc,
// logs_command.cc, run_commands.cc, top_command.cc. All of them block until the command is done.
Result<void> execute(const SubmitCommand& command, Client& client);
Result<void> execute(const GetCommand& command, Client& client);
Result<void> execute(const DescribeCommand& command, Client& client);
Result<void> execute(const WhyCommand& command, Client& client);
Result<void> execute(const ScaleCommand& command, Client& client);
Result<void> execute(const AskCommand& command, Client& client);
Result<void> execute(const LogsCommand& command, Client& client);
Result<void> execute(const EventsCommand& command, Client& client);
Result<void> execute(const CancelCommand& command, Client& client);
Result<void> execute(const SamplesCommand& command, Client& client);
Result<void> execute(const TopCommand& command, Client& client);
Result<void> execute(const DeleteCommand& command, Client& client);
Result<void> execute(const StatusCommand& command, Client& client);
Result<void> execute(const DashboardCommand& command, Client& client);
Result<void> execute(const WaitCommand& command, Client& client);

// The result of a command that waited for a job which has ended: kFailed unless it succeeded.
Result<void> outcome_of(const nlohmann::json& job);

// Looks at the job whenever the controller reports a change of it, and each second, until `done`
// returns true. Returns the last JSON of the job; kUnreachable if the controller went before that.
Result<nlohmann::json> watch_job(Client& client, const std::string& job_id,
                                 const std::function<bool(const nlohmann::json&)>& done);

}  // namespace tandem::cli
