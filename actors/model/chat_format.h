// How the conversations of one model become text: by a Jinja template, as transformers'
// apply_chat_template renders it (actors/jinja), or by one of the families that are written out in
// chat_template.h. A directory's own template is always run as it is.
//
//   CF-1  The text equals that of apply_chat_template with the same template, special tokens and
//         keyword arguments, or there is an error (scripts/chat_template_parity).
#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/jinja/template.h"
#include "actors/model/chat_template.h"
#include "runtime/base/result.h"

namespace tandem::model {

class Tokenizer;

// The values that a template gets. A message is a dict with `role` and `content`, and with any
// other fields that the template reads.
struct ChatInput {
  jinja::Value messages;        // a list of dicts
  jinja::Value tools = {};      // a list of dicts, or None
  jinja::Value documents = {};  // likewise
};

struct ChatFormatOptions : ChatOptions {
  // Further variables of the template, as keyword arguments of apply_chat_template are.
  std::vector<std::pair<std::string, jinja::Value>> kwargs = {};
};

class ChatFormat {
 public:
  // `choice` is "auto", the directory's own template; a family's name; the path of a template's
  // file, which ends in ".jinja"; or the name of a template of the directory, which has several.
  // The special tokens are those of the directory in every case. kNotFound: there is no such
  // template; kInvalid: it cannot be run, with its file and line.
  static Result<ChatFormat> read(const std::filesystem::path& directory, std::string_view choice);
  // A template's text; `where` names it in errors.
  static Result<ChatFormat> of_text(std::string_view text, const std::string& where);
  static ChatFormat of_family(ChatTemplate family);

  // The error (kInvalid) names the message, or the template's line. A family takes messages of
  // text alone, with the roles system, user and assistant.
  Result<std::string> render(const ChatInput& input, const ChatFormatOptions& options) const;

  // A family takes no tools; what a Jinja template does with them is its own.
  bool takes_tools() const { return !family_; }
  // The text that the template prints behind an assistant's message: "<|im_end|>\n". Empty where it
  // prints nothing there, or refuses a conversation of one question and its answer.
  const std::string& end_of_turn() const { return end_of_turn_; }
  // The texts that look like special tokens (<|im_start|>, <start_of_turn>) in such a conversation.
  const std::vector<std::string>& markers() const { return markers_; }

 private:
  ChatFormat() = default;
  void probe();
  Result<std::string> render_family(const ChatInput& input, const ChatOptions& options) const;

  std::optional<ChatTemplate> family_;
  std::optional<jinja::Template> template_;                           // where there is no family
  std::vector<std::pair<std::string, jinja::Value>> special_tokens_;  // bos_token, eos_token, …
  std::string end_of_turn_;
  std::vector<std::string> markers_;
};

// A message of text.
jinja::Value chat_message(std::string_view role, std::string_view content);

// A sentence for the user where the format's markers are no tokens of the vocabulary: the model
// would see each as a dozen tokens that mean nothing to it.
std::optional<std::string> marker_warning(const ChatFormat& format, const Tokenizer& tokenizer);

}  // namespace tandem::model
