// Renders the conversations of one data set by the model's chat template. The template gets a
// record's messages, and its tools. Tools or calls that the template does not show are an error: a
// model that never sees a tool would be trained to answer without it.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "actors/model/chat_format.h"
#include "runtime/base/result.h"

namespace tandem::job {

// The member of a record with the tools of its conversation.
inline constexpr const char* kTools = "tools";

// kInvalid, about a line of data: "train.jsonl:17".
Error bad_line(const std::string& where, std::string message, std::string help = {});

// Where the chat template of a data set comes from. It is read when the first conversation is met.
struct ChatSource {
  std::filesystem::path model;
  std::string chosen = "auto";  // as model::ChatFormat::read() takes it
  model::ChatFormatOptions options;
  std::string kwargs = "{}";  // a JSON object, added to those of `options`
};

// One record's conversation.
struct RecordConversation {
  // In the form of plain_messages() (conversation.h). A message may have `tool_calls`, a list of
  // objects; then it need not have a content.
  const nlohmann::json& messages;
  // The path, in `line`, of the list that `messages` was made from.
  std::string_view list_key;
  // The record as it was read. Tools and calls are taken from it, since a template shows them as
  // JSON, whose members keep the order of the file.
  std::string_view line;
  // Whether the member `tools` has a value: a list of objects, or its JSON as a text. Members of
  // tools and calls that are null are left out.
  bool has_tools = false;
  // The reward reads the tools: they go to a template that shows them, and need have neither such a
  // template nor the form that one takes.
  bool tools_are_optional = false;
};

// Not thread-safe.
class RecordChat {
 public:
  // Keeps the reference.
  explicit RecordChat(const ChatSource& source) : source_(source), options_(source.options) {}

  // The template is read at the first call: a model without a template is no error for a data set
  // of plain prompts. kInvalid, with `where`: no template, one that fails, messages or tools of
  // another form, and tools or calls that the template does not show.
  Result<std::string> text_of(const RecordConversation& conversation, const std::string& where);

  // Null before text_of() has succeeded.
  const std::shared_ptr<const model::ChatFormat>& format() const { return format_; }

 private:
  Result<void> read_format(const std::string& where);
  Result<std::string> render(const model::ChatInput& input, const std::string& where) const;

  const ChatSource& source_;
  model::ChatFormatOptions options_;
  std::shared_ptr<const model::ChatFormat> format_;
};

}  // namespace tandem::job
