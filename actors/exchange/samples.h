// Lines of samples.jsonl from what an exchange's core says of a sample and its payload's texts.
// docs/design/contract.md has the fields. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "actors/exchange/effects.h"
#include "actors/exchange/exchange_config.h"
#include "actors/messages/payload.h"

namespace tandem::exchange {

// Sets `answer`, `data_source` and `user` (of a conversation the last message of its user), as far
// as `data`, a line of the data set, has them.
void add_record_fields(nlohmann::json& line, const std::string& data, const RecordKeys& keys);

// Sets `extra` where there is one (Scored::extra).
void add_extra(nlohmann::json& line, const std::string& extra);

// A line for each of the first rows_max trajectories; none where the payload has another number of
// them.
std::vector<std::string> sample_lines(const WriteStepSamples& samples,
                                      const messages::GroupPayload& payload);

// `payload` may be null: then the line has no completion.
std::string failure_line(const WriteFailureSample& sample, const messages::GroupPayload* payload);

}  // namespace tandem::exchange
