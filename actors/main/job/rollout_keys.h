// The part of the job table that says how completions are generated: its sections `rollout` and
// `eval`, which job_keys() puts in their place.
#pragma once

#include <span>

#include "actors/main/job/job_table.h"

namespace tandem::cli {

std::span<const Key> rollout_keys();

}  // namespace tandem::cli
