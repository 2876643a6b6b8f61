#include "actors/cli/job_watch.h"

#include <chrono>

#include "actors/cli/api_object.h"

namespace tandem::cli {

Result<nlohmann::json> watch_object(Client& client, const std::string& path,
                                    const std::function<bool(const nlohmann::json&)>& done,
                                    Duration look_again) {
  Result<nlohmann::json> object = client.api.get(path);
  if (!object || done(*object)) return object;
  bool finished = false;
  auto ended =
      client.api.stream(path + "?watch=1", look_again, [&](std::optional<std::string_view>) {
        object = client.api.get(path);
        finished = !object || done(*object);
        return !finished;
      });
  // `object` is the last look, or the error of that look.
  if (finished) return object;
  if (!ended) return ended.error();
  object = client.api.get(path);  // the server ended the stream: the last word
  if (!object || done(*object)) return object;
  return Error{ErrorCode::kUnreachable, "the controller closed the connection", "",
               "`tandem get jobs` shows whether it runs"};
}

Result<nlohmann::json> watch_job(Client& client, const std::string& job_id,
                                 const std::function<bool(const nlohmann::json&)>& done,
                                 Duration look_again) {
  return watch_object(client, "/jobs/" + url_escape(job_id), done, look_again);
}

Result<void> outcome_of(const nlohmann::json& job) {
  if (field(job, "state") == "Succeeded") return {};
  const std::string reason = why_it_ended(job);
  return Error{
      ErrorCode::kFailed,
      "job " + field(job, "id") + " " + field(job, "state") + (reason.empty() ? "" : ": " + reason),
      field(job, "run_dir"), "`tandem describe jobs/" + field(job, "id") + "` says more"};
}

std::string why_it_ended(const nlohmann::json& job) {
  std::string reason = field(job, "reason");
  if (const std::string message = field(job, "message"); !message.empty() && message != reason)
    reason += (reason.empty() ? "" : ": ") + message;
  return reason;
}

Deadline::Deadline(double timeout_s)
    : at(steady_now() +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout_s))) {}

}  // namespace tandem::cli
