#include "actors/cli/job_watch.h"

#include <chrono>

#include "actors/cli/api_object.h"

namespace tandem::cli {

Result<nlohmann::json> watch_job(Client& client, const std::string& job_id,
                                 const std::function<bool(const nlohmann::json&)>& done) {
  const std::string path = "/jobs/" + url_escape(job_id);
  Result<nlohmann::json> job = client.api.get(path);
  if (!job || done(*job)) return job;
  bool finished = false;
  auto ended =
      client.api.stream(path + "?watch=1", kLookAgain, [&](std::optional<std::string_view>) {
        job = client.api.get(path);
        finished = !job || done(*job);
        return !finished;
      });
  // `job` is the last look, or the error of that look.
  if (finished) return job;
  if (!ended) return ended.error();
  job = client.api.get(path);  // the server ended the stream: the last word
  if (!job || done(*job)) return job;
  return Error{ErrorCode::kUnreachable, "the controller closed the connection", "",
               "`tandem get jobs` shows whether it runs"};
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
