// `tandem ask`: one question to one actor, sent once, when the actor is ready. The controller waits
// for the answer for as long as the user allows, so that this side waits a little longer.
#include <cmath>
#include <ostream>

#include "actors/cli/api_object.h"
#include "actors/cli/arguments.h"
#include "actors/cli/client_commands.h"
#include "actors/cli/object_names.h"
#include "actors/cli/table.h"
#include "runtime/base/json.h"

namespace tandem::cli {
namespace {

constexpr double kTimeoutUsual_s = 10;  // the controller's
constexpr double kTimeoutMax_s = 600;
constexpr Duration kLookAgain = std::chrono::seconds(1);
constexpr Duration kLonger = std::chrono::seconds(5);

bool is_ready(const nlohmann::json& actor) {
  const std::string state = field(actor, "state");
  return state == "Ready" || state == "Busy";
}

// Waits until the actor is ready, for a job that was just submitted, and says so once. An actor
// that has ended, or one that the controller does not know, is asked at once: the controller's
// answer says what is wrong.
Result<void> await_ready(Client& client, const std::string& actor, double timeout_s) {
  const std::string path = "/actors/" + url_escape(actor);
  const Time deadline = steady_now() + std::chrono::seconds(static_cast<std::int64_t>(timeout_s));
  auto now = client.api.get(path);
  const auto waits = [&now] { return now && !is_ready(*now) && !actor_has_ended(*now); };
  if (!waits()) return {};
  client.err << actor << " is " << field(*now, "state") << ": " << field(*now, "message")
             << "; it is asked once it is Ready, within " << age(timeout_s) << std::endl;
  const auto ended =
      client.api.stream(path + "?watch=1", kLookAgain, [&](std::optional<std::string_view>) {
        now = client.api.get(path);
        return waits() && steady_now() < deadline;
      });
  if (!waits()) return {};
  if (!ended) return ended.error();
  return Error{ErrorCode::kTimedOut,
               actor + " is " + field(*now, "state") + " and not Ready after " + age(timeout_s), "",
               "`tandem why " + actor + "` says what it waits for"};
}

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
  if (const auto ready = await_ready(client, actor->full_name, timeout_s); !ready) return ready;
  const auto seconds = std::chrono::seconds(static_cast<std::int64_t>(timeout_s));
  const ApiClient patient(client.api.address(), seconds + kLonger);
  const auto answer = patient.post("/actors/" + url_escape(actor->full_name) +
                                       "/ask?timeout_s=" + std::to_string(seconds.count()),
                                   command.question);
  if (!answer) return answer.error();
  client.out << dump_json(*answer) << "\n" << std::flush;
  return {};
}

}  // namespace tandem::cli
