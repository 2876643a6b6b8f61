#include <algorithm>
#include <cstdint>
#include <ostream>
#include <utility>

#include "actors/cli/api_object.h"
#include "actors/cli/arguments.h"
#include "actors/cli/job_watch.h"
#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/table.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr double kScaleTimeoutUsual_s = 60;

struct Scale {
  static VerbHelp help() {
    return {
        .name = "scale",
        .group = VerbGroup::kChange,
        .description = "Change how many actors a role has, while the job runs",
        .examples = {"tandem scale arithmetic-grpo-1 rollout=2",
                     "tandem scale JOB rollout=4 reward=2 --wait", "tandem scale JOB rollout=auto",
                     "tandem scale JOB --rollback", "tandem scale counter-1 counter=4"}};
  }

  void options(Options& options) {
    options.add("JOB", job, "The job").required().offers("live");
    const auto take = [this](const std::vector<std::string>& words) -> Result<void> {
      auto scales = parse_scales(words);
      if (!scales) return scales.error();
      roles = std::move(*scales);
      return {};
    };
    std::vector<std::string> choices;
    for (const std::string& role : role_names()) choices.push_back(role + "=");
    options
        .read_words("ROLE=N", take,
                    "rollout, reward or a role of the job's section `actors`, and how many; "
                    "rollout=auto: as `pools.rollout.autoscale` decides, until a number is given")
        .value("...")
        .choices(std::move(choices));
    options.flag("--rollback", rollback,
                 "Give the job back the numbers from before their newest change; autoscale is off "
                 "then");
    options.flag("--wait", wait, "Return when they are Ready");
    add_time(options, "--timeout", timeout_s, "Of --wait; 60s");
    options.check([this]() -> Result<void> { return check(); });
  }

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> check() const;
  Result<void> carry_out(Client& client) const;
  bool is_done(const json& now) const;

  std::string job;
  std::vector<RoleScale> roles;
  bool rollback = false;
  bool wait = false;
  std::optional<double> timeout_s;  // nullopt: kScaleTimeoutUsual_s
};

Result<void> Scale::check() const {
  if (roles.empty() && !rollback)
    return usage_error("nothing to scale is named", "as in `tandem scale JOB rollout=2`");
  if (!roles.empty() && rollback)
    return usage_error("--rollback and ROLE=N are both given", "choose one");
  return {};
}

// Both numbers: the desired one shows that the controller has taken the request, the ready one that
// it is done.
bool Scale::is_done(const json& now) const {
  std::vector<RoleScale> asked = roles;
  if (rollback)
    for (const auto& [role, counts] : now.value("actors", json::object()).items())
      asked.emplace_back(role, std::nullopt);
  return std::ranges::all_of(asked, [&](const RoleScale& role) {
    const json counts = now.value("actors", json::object()).value(role.first, json::object());
    const json desired = counts.value("desired", json());
    return (!role.second || desired == *role.second) && counts.value("ready", json()) == desired;
  });
}

Result<void> Scale::carry_out(Client& client) const {
  auto id = find_job(client, job);
  if (!id) return id.error();
  json replicas = json::object();
  for (const auto& [role, count] : roles) replicas[role] = count ? json(*count) : json("auto");
  if (rollback) replicas["rollback"] = true;
  auto accepted = client.api.post("/jobs/" + url_escape(*id) + "/scale", dump_json(replicas));
  if (!accepted) return accepted.error();
  client.console.err << "accepted" << (wait ? "; waiting until they are Ready" : "") << std::endl;
  if (!wait) return {};
  const double limit_s = timeout_s.value_or(kScaleTimeoutUsual_s);
  const Deadline deadline(limit_s);
  client.api.give_up_at(deadline.at);
  auto last = watch_job(client, *id, [&](const json& now) {
    return is_done(now) || has_ended(now) || deadline.passed();
  });
  if (!last) return last.error();
  if (is_done(*last)) return {};
  if (has_ended(*last)) return outcome_of(*last);
  return Error{ErrorCode::kTimedOut, "not all are Ready after " + age(limit_s), "",
               "`tandem why " + *id + "` says who waits for what"};
}

}  // namespace

Verb scale_verb() { return make_verb<Scale>(); }

}  // namespace tandem::cli
