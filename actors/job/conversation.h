// The messages of a record, brought into the form that a chat template takes before it is rendered:
// a text becomes a conversation, the job's system prompt comes first, fields without a value go,
// and contents that are lists of text become text. Which roles and fields a template then accepts
// is not decided here. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::job {

// A conversation of one message, in which a user says `text`.
nlohmann::json conversation_of(std::string_view text);

// `messages`, a list, with these changes:
//   - members of a message that are null are left out;
//   - a content that is a list of {"type": "text", "text": …} becomes their texts in one;
//   - where no message has the role `system` or `developer`, `system_prompt` is the first one.
// kInvalid, with `where`, for a content with a part of another type, which is named. A message that
// is no object stays as it is: the one who reads it refuses it.
Result<nlohmann::json> plain_messages(nlohmann::json messages,
                                      const std::optional<std::string>& system_prompt,
                                      const std::string& where);

}  // namespace tandem::job
