#include "actors/program/json_inbox.h"

namespace tandem::program::json_detail {

Result<Question> parse_question(const std::string& body, const std::string& names) {
  const std::string help = "its messages are " + names;
  Question question{parse_json(body), ""};
  if (question.object.is_discarded())
    return Error{ErrorCode::kInvalid, "the question is not JSON", "", help};
  if (!question.object.is_object() || question.object.size() != 1)
    return Error{ErrorCode::kInvalid,
                 "a question is an object with one member, the name of a message", "", help};
  question.name = question.object.begin().key();
  return question;
}

Error no_such_message(const std::string& name, const std::string& names) {
  return {ErrorCode::kInvalid,
          "there is no message " + name + "; the actor's messages are " + names};
}

}  // namespace tandem::program::json_detail
