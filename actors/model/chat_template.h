// Conversations rendered as the text that a chat model was trained to continue. A model directory
// has its template as a Jinja program. Here the templates of the families below are written out in
// C++ instead, and a directory's template is recognised by its text; others are refused. The
// results equal those of transformers' apply_chat_template (tests/golden/chat, made by
// scripts/make_chat_goldens.py).
//
// Supported are messages of text with the roles system, user and assistant, without tools and
// images. Pure functions of values, except for read_chat_template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/enum_names.h"
#include "runtime/base/result.h"

namespace tandem::model {

enum class ChatTemplate : std::uint8_t {
  kSmolLm2,
  kQwen25,
  kQwen3,          // with <think> blocks
  kQwen3Instruct,  // Qwen3-Instruct-2507, without <think> blocks
  kLlama3,
  kLlama31,  // Llama 3.1 and 3.2: a system block with a date
};
constexpr auto enum_names(ChatTemplate) {
  using enum ChatTemplate;
  return enum_name_rows<ChatTemplate>({{kSmolLm2, "smollm2"},
                                       {kQwen25, "qwen2.5"},
                                       {kQwen3, "qwen3"},
                                       {kQwen3Instruct, "qwen3-instruct"},
                                       {kLlama3, "llama3"},
                                       {kLlama31, "llama3.1"}});
}
// The token with which the template ends a message of the assistant: "<|im_end|>".
std::string_view end_of_turn(ChatTemplate chat);

struct ChatMessage {
  std::string role;
  std::string content;  // UTF-8
};

struct ChatOptions {
  bool add_generation_prompt = true;  // the text ends with the header of an assistant's message
  bool enable_thinking = true;        // kQwen3 only; false: an empty <think> block is added
  std::string date = "26 Jul 2024";   // kLlama31 only: today's date, with the template's default
};

// The text of the conversation, with <|begin_of_text|> for families that have it;
// Tokenizer::encode_prompt adds no second one. The error (kInvalid) names the message that cannot
// be rendered: one with another role, or content that is not UTF-8.
Result<std::string> render_chat(ChatTemplate chat, std::span<const ChatMessage> messages,
                                const ChatOptions& options);

// The family that a template's text belongs to. Carriage returns and white space at the end do not
// count. The error (kInvalid) for an unknown template names `where`.
Result<ChatTemplate> recognise_chat_template(std::string_view text, const std::string& where);
// Recognises a template by the text's SHA-256 in hex, computed without "\r" and the white space at
// the end.
std::optional<ChatTemplate> chat_template_of(std::string_view sha256);

// The family of the template in DIR/chat_template.jinja or, where that file is absent, of
// `chat_template` in DIR/tokenizer_config.json, which is a text or a list with an entry named
// "default". kNotFound: the directory has no template.
Result<ChatTemplate> read_chat_template(const std::filesystem::path& directory);

}  // namespace tandem::model
