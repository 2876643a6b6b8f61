#include "actors/controller/result_json.h"

#include <nlohmann/json.hpp>

#include "actors/runs/run_files.h"
#include "runtime/base/json.h"

namespace tandem::controller {

const char* outcome_file(const JobRecord& job) {
  return ended_unresumed(job) ? runs::kResumeFile : "result.json";
}

std::string result_json(const JobRecord& job, Time now) {
  nlohmann::json roles = nlohmann::json::object();
  for (const messages::Role& role : job.shape.roles) {
    std::int32_t actors = 0, finished = 0, restarts = 0;
    for (const auto& [id, actor] : job.actors) {
      if (actor.role != role) continue;
      ++actors;
      finished += std::holds_alternative<scheduler::Finished>(actor.status.reason);
      restarts += job.ladder.restarts_of(id);
    }
    roles[name(role)] = {{"actors", actors}, {"finished", finished}, {"restarts", restarts}};
  }
  const nlohmann::json result{{"state", scheduler::name(job.status.state)},
                              {"reason", scheduler::reason_name(job.status.reason)},
                              {"message", scheduler::message(job.status.reason, now)},
                              {"wall_seconds", seconds(now - job.created)},
                              {"actors", roles}};
  return dump_json(result, 2);
}

}  // namespace tandem::controller
