// The API's objects as JSON; docs/design/contract.md lists their fields. Pure functions, except
// shown_job(), which may read a file.
//
// A field whose value is not known is null. Times are Unix milliseconds, computed from `now` of the
// view and the wall clock; durations are seconds and end in `_s`.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/controller/controller.h"
#include "actors/controller/watchdog.h"

namespace tandem::api {

// The reports of the exchanges that answered, by job. A job without one is shown by its record
// alone.
using ExchangeReports = std::map<std::string, messages::ExchangeReport>;

// The sum of what the living ranks use; nullopt until the use of one was reported.
std::optional<node::RankUsage> usage_of(const std::vector<controller::RankRecord>& ranks);

// `report` may be null. `why` holds the waits of the exchange and of actors that are not ready.
// Their deadlines follow from `work` as well (wait_deadlines.h).
nlohmann::json job_json(const controller::JobRecord& job, const messages::ExchangeReport* report,
                        Time now, const controller::WorkByActor& work = {});
// job_json() for people. When the exchange of a job that is stopping or over is gone, and its
// figures with it, the figures come from result.json.
nlohmann::json shown_job(const controller::JobRecord& job, const messages::ExchangeReport* report,
                         Time now, const controller::WorkByActor& work = {});
// `restarts`: of this actor, by the job's restart ladder.
nlohmann::json actor_json(const controller::ActorRecord& actor,
                          const messages::ExchangeReport* report, std::int32_t restarts, Time now,
                          const controller::WorkByActor& work = {});
nlohmann::json node_json(const controller::NodeRecord& node, Time now);
// The resources of a node that living ranks hold, one entry per rank, with its actor.
nlohmann::json reservations_json(const std::vector<controller::ShownActor>& actors,
                                 const std::string& node);
nlohmann::json event_json(const runs::ClusterEvent& event);
nlohmann::json group_json(const messages::GroupView& group, const std::string& job);

}  // namespace tandem::api
