// Waiting for a job: the verbs that return when it is in some state or has ended.
//
// A state is waited for with the API's watch stream as an alarm clock: any line, or kLookAgain of
// silence, means "look again". The state itself always comes from a plain GET, so that nothing
// depends on the content of a line, on a line that was missed, or on the order of lines.
#pragma once

#include <functional>
#include <string>

#include "actors/cli/client.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::cli {

// Looks at an object of the API, "/jobs/JOB" for instance, whenever the controller reports a change
// of it, and every `look_again`, until `done` returns true. Returns the object's last JSON;
// kUnreachable if the controller went before that.
Result<nlohmann::json> watch_object(Client& client, const std::string& path,
                                    const std::function<bool(const nlohmann::json&)>& done,
                                    Duration look_again = kLookAgain);
Result<nlohmann::json> watch_job(Client& client, const std::string& job_id,
                                 const std::function<bool(const nlohmann::json&)>& done,
                                 Duration look_again = kLookAgain);

// The result of a verb that waited for a job which has ended: kFailed unless it succeeded.
Result<void> outcome_of(const nlohmann::json& job);

// The reason of a job that has ended and, where it says more, the message.
std::string why_it_ended(const nlohmann::json& job);

// A point on the steady clock, so that a change of the wall clock does not end a wait.
struct Deadline {
  Time at;
  explicit Deadline(double timeout_s);
  bool passed() const { return steady_now() > at; }
};

}  // namespace tandem::cli
