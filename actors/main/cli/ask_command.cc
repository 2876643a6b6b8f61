// `tandem ask`: one question to one actor, sent once. The controller waits for the answer for as
// long as the user allows, so that this side waits a little longer.
#include <cmath>
#include <ostream>

#include "actors/main/cli/arguments.h"
#include "actors/main/cli/client_commands.h"
#include "actors/main/cli/object_names.h"
#include "runtime/base/json.h"

namespace tandem::app {
namespace {

constexpr double kTimeoutUsual_s = 10;  // the controller's
constexpr double kTimeoutMax_s = 600;
constexpr Duration kLonger = std::chrono::seconds(5);

}  // namespace

Result<void> execute(const AskCommand& command, Client& client) {
  if (!parse_json(command.question).is_object())
    return usage_error("the question is not a JSON object: `" + command.question + "`",
                       "as in `tandem ask JOB/counter/0 '{\"add\": 2}'`");
  const double timeout_s = std::ceil(command.timeout_s.value_or(kTimeoutUsual_s));
  if (timeout_s < 1 || timeout_s > kTimeoutMax_s)
    return usage_error("`--timeout` is 1 s to 10 m", "");
  const auto actor = find_actor(client, command.actor, command.job, PastRuns::kExcluded);
  if (!actor) return actor.error();
  const auto seconds = std::chrono::seconds(static_cast<std::int64_t>(timeout_s));
  const ApiClient patient(client.api.address(), seconds + kLonger);
  const auto answer = patient.post("/actors/" + url_escape(actor->full_name) +
                                       "/ask?timeout_s=" + std::to_string(seconds.count()),
                                   command.question);
  if (!answer) return answer.error();
  client.out << dump_json(*answer) << "\n" << std::flush;
  return {};
}

}  // namespace tandem::app
