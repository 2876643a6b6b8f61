// `tandem ask`: one question to one actor, sent once, when the actor is ready. The controller waits
// for the answer for as long as the user allows, so that this side waits a little longer.
#include <cmath>
#include <ostream>

#include "actors/cli/api_object.h"
#include "actors/cli/arguments.h"
#include "actors/cli/job_watch.h"
#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/table.h"
#include "actors/cli/verb.h"
#include "runtime/base/json.h"

namespace tandem::cli {
namespace {

constexpr double kTimeoutUsual_s = 10;  // the controller's
constexpr double kTimeoutMax_s = 600;
constexpr Duration kLonger = std::chrono::seconds(5);

struct Ask {
  static VerbHelp help() {
    return {.name = "ask",
            .group = VerbGroup::kChange,
            .description = "Ask an actor of your own, and print its answer as JSON",
            .examples = {"tandem ask counter-1/counter/0 '{\"add\":2}'",
                         "tandem ask counter/0 '{}' -j counter --timeout 60s"}};
  }

  void options(Options& options) {
    options.add("ACTOR", actor, "An actor of the job's section `actors`").required();
    options.add("JSON", question, "The question: one JSON object").required();
    add_time(options, "--timeout", timeout_s, "For the answer; 10s, at most 10m");
    add_job(options, job).offers("live");
  }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;

  std::string actor;
  std::string question;             // one JSON object
  std::optional<double> timeout_s;  // nullopt: kTimeoutUsual_s
  std::optional<std::string> job;
};

bool is_ready(const nlohmann::json& actor) {
  const std::string state = field(actor, "state");
  return state == "Ready" || state == "Busy";
}

// Waits until the actor is ready, for a job that was just submitted, and says so once. An actor
// that has ended, or one that the controller does not know, is asked at once: the controller's
// answer says what is wrong.
Result<void> await_ready(Client& client, const std::string& actor, double timeout_s) {
  const std::string path = "/actors/" + url_escape(actor);
  const Deadline deadline(timeout_s);
  client.api.give_up_at(deadline.at);
  auto now = client.api.get(path);
  const auto waits = [&now] { return now && !is_ready(*now) && !actor_has_ended(*now); };
  if (!waits()) return {};
  client.console.err << actor << " is " << field(*now, "state") << ": " << field(*now, "message")
                     << "; it is asked once it is Ready, within " << age(timeout_s) << std::endl;
  const auto ended =
      client.api.stream(path + "?watch=1", kLookAgain, [&](std::optional<std::string_view>) {
        now = client.api.get(path);
        return waits() && !deadline.passed();
      });
  if (!waits()) return {};
  if (!ended) return ended.error();
  return Error{ErrorCode::kTimedOut,
               actor + " is " + field(*now, "state") + " and not Ready after " + age(timeout_s), "",
               "`tandem why " + actor + "` says what it waits for"};
}

Result<void> Ask::carry_out(Client& client) const {
  if (!parse_json(question).is_object())
    return usage_error("the question is not a JSON object: `" + question + "`",
                       "as in `tandem ask JOB/counter/0 '{\"add\": 2}'`");
  const double limit_s = std::ceil(timeout_s.value_or(kTimeoutUsual_s));
  if (limit_s < 1 || limit_s > kTimeoutMax_s) return usage_error("`--timeout` is 1 s to 10 m", "");
  const auto found = find_actor(client, actor, job, PastRuns::kExcluded);
  if (!found) return found.error();
  if (const auto ready = await_ready(client, found->full_name, limit_s); !ready) return ready;
  const auto seconds = std::chrono::seconds(static_cast<std::int64_t>(limit_s));
  const ApiClient patient(client.api.address(), seconds + kLonger);
  const auto answer = patient.post("/actors/" + url_escape(found->full_name) +
                                       "/ask?timeout_s=" + std::to_string(seconds.count()),
                                   question);
  if (!answer) return answer.error();
  client.console.out << dump_json(*answer) << "\n" << std::flush;
  return {};
}

}  // namespace

Verb ask_verb() { return make_verb<Ask>(); }

}  // namespace tandem::cli
