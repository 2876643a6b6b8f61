// The effective job as nested JSON, as trackers of experiments take a configuration:
// {"name": …, "learner": {"optimizer": {"lr": 0.001, …}, …}, …}.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "actors/job/job_spec.h"

namespace tandem::job {

// Every key of every present section. Variables of programs' environments, `reward.env` and
// `actors.NAME.env`, have their names alone: a value may be a password.
nlohmann::json job_json(const JobSpec& job);

}  // namespace tandem::job
