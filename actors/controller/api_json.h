// The API's objects as JSON (docs/design/contract.md lists their fields). Pure, but for
// shown_job(), which may read a file.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/controller/controller.h"

namespace tandem::actors {

// Reports of the exchanges that answered, by job.
using ExchangeReports = std::map<std::string, ExchangeReport>;

// What the ranks that live use together; nothing until the use of one was reported.
std::optional<runtime::RankUsage> usage_of(const std::vector<RankRecord>& ranks);

nlohmann::json job_json(const JobRecord& job, const ExchangeReport* report, Time now);
// job_json() for people: where the exchange is gone with its figures, those of result.json, from
// the moment that the job is stopping.
nlohmann::json shown_job(const JobRecord& job, const ExchangeReport* report, Time now);
nlohmann::json actor_json(const ActorRecord& actor, const ExchangeReport* report,
                          std::int32_t restarts, Time now);
nlohmann::json node_json(const NodeRecord& node, Time now);
// What ranks that live on a node hold of it, each by its actor.
nlohmann::json reservations_json(const std::vector<JobRecord>& jobs, const std::string& node);
nlohmann::json event_json(const ClusterEvent& event);
nlohmann::json group_json(const GroupView& group, const std::string& job);

}  // namespace tandem::actors
