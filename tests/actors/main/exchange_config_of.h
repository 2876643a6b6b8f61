// The configuration of a job's exchange, with the prompts of its data files.
#pragma once

#include "actors/main/roles/role_config.h"

namespace tandem::app {

inline Result<exchange::ExchangeConfig> exchange_config_of(const job::JobSpec& job) {
  auto prompts = read_prompts(job);
  if (!prompts) return prompts.error();
  return exchange_config(job, {"job", "run"}, false, *std::move(prompts));
}

}  // namespace tandem::app
