#include <algorithm>
#include <cctype>
#include <cstddef>

#include "actors/cli/api_object.h"
#include "actors/cli/job_watch.h"
#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/table.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

// A job that succeeds passes through the first kStatesOfSuccess of these, in this order.
const std::vector<std::string> kStates{"Queued",   "Starting",  "WarmStart", "Running",
                                       "Stopping", "Succeeded", "Failed",    "Cancelled"};
constexpr std::ptrdiff_t kStatesOfSuccess = 6;

struct Wait {
  static VerbHelp help() {
    return {.name = "wait",
            .group = VerbGroup::kRun,
            .description = "Wait until a job is in a state",
            .examples = {"tandem wait arithmetic-grpo-1 --for Running --timeout 60s",
                         "tandem wait arithmetic-grpo --for Succeeded"}};
  }

  void options(Options& options) {
    options.add("JOB", job, "The job's id, or its name where one job has it")
        .required()
        .offers("live");
    const auto take_state = [this](const std::string& text) { return take(text); };
    options
        .read("--for", take_state,
              "The state to wait for. While the job lives, a later one will do; a job that has "
              "ended in another state ends the wait with exit code 1")
        .value("STATE")
        .required()
        .choices(kStates);
    add_time(options, "--timeout", timeout_s, "Give up after it, with exit code 5; 90, 90s, 5m");
  }

  Result<int> run(const VerbContext& context) const;
  Result<void> wait_for(Client& client, const std::optional<Deadline>& deadline) const;

  Result<void> take(const std::string& text);

  std::string job;
  std::string state;                // one of kStates
  std::optional<double> timeout_s;  // nullopt: no limit
};

// States are compared without case: `--for running` will do.
Result<void> Wait::take(const std::string& text) {
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  const auto at = std::ranges::find_if(kStates, [&](const std::string& name) {
    return std::ranges::equal(name, text, {}, lower, lower);
  });
  if (at == kStates.end())
    return usage_error("unknown state `" + text + "`",
                       did_you_mean(text, kStates, "one of " + joined(kStates, ", ")));
  state = *at;
  return {};
}

// The place of a state among those that a job which succeeds passes through; nullopt for Failed and
// Cancelled.
std::optional<std::ptrdiff_t> rank_of(const std::string& state) {
  const auto at = std::ranges::find(kStates, state) - kStates.begin();
  return at < kStatesOfSuccess ? std::optional(at) : std::nullopt;
}

// Whether a job is in the state `wanted` or, while it has not ended, has passed it: a short state
// could otherwise be missed between two looks. For a job that has ended only its last state counts.
bool has_reached(const json& job, const std::string& wanted) {
  const std::string state = field(job, "state");
  if (state == wanted) return true;
  return !has_ended(job) && rank_of(wanted) && rank_of(state) && rank_of(state) > rank_of(wanted);
}

// The time begins here, so that a wait for the controller is part of it.
Result<int> Wait::run(const VerbContext& context) const {
  std::optional<Deadline> deadline;
  if (timeout_s) deadline.emplace(*timeout_s);
  return with_api(
      context, AnsweredBy::kController, [&](Client& client) { return wait_for(client, deadline); },
      deadline ? std::optional(deadline->at) : std::nullopt);
}

Result<void> Wait::wait_for(Client& client, const std::optional<Deadline>& deadline) const {
  auto id = find_job(client, job);
  if (!id) return id.error();
  auto last = watch_job(client, *id, [&](const json& now) {
    return has_reached(now, state) || has_ended(now) || (deadline && deadline->passed());
  });
  if (!last) return last.error();
  if (has_reached(*last, state)) return {};
  if (has_ended(*last)) {
    const std::string reason = why_it_ended(*last);
    return Error{ErrorCode::kFailed,
                 "job " + *id + " has ended: it is " + field(*last, "state") + ", not " + state +
                     (reason.empty() ? "" : " (" + reason + ")"),
                 field(*last, "run_dir"), "`tandem describe jobs/" + *id + "` says more"};
  }
  return Error{ErrorCode::kTimedOut,
               "job " + *id + " is " + field(*last, "state") + ", not " + state + ", after " +
                   age(*timeout_s),
               "", "`tandem why " + *id + "` says who waits for what"};
}

}  // namespace

Verb wait_verb() { return make_verb<Wait>(); }

}  // namespace tandem::cli
