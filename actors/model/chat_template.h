// Six families of chat templates, written out in C++: for a model that has no template of its own,
// and for a job that chooses one by its name. The results equal those of transformers'
// apply_chat_template with the family's Jinja text (tests/golden/chat, made by
// scripts/make_chat_goldens.py). A directory's own template is run as it is (chat_format.h).
//
// Supported are messages of text with the roles system, user and assistant, without tools and
// images. Pure functions of values.
#pragma once

#include <cstdint>
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

}  // namespace tandem::model
