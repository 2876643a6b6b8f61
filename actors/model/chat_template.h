// Conversations as the text that a chat model was trained to continue. A model directory brings its
// template as a Jinja program; the families below are written out here instead, and a directory's
// template is known by its text. Held against transformers' apply_chat_template
// (tests/golden/chat, by scripts/make_chat_goldens.py).
//
// Messages of text with the roles system, user and assistant; no tools, no images. Pure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::actors {

enum class ChatTemplate : std::uint8_t {
  kSmolLm2,
  kQwen25,
  kQwen3,          // with <think>
  kQwen3Instruct,  // Qwen3-Instruct-2507, which never thinks
  kLlama3,
  kLlama31,  // and 3.2: a system block with a date
};
const char* name(ChatTemplate chat);  // "qwen2.5"

struct ChatMessage {
  std::string role;
  std::string content;  // UTF-8
};

struct ChatOptions {
  bool add_generation_prompt = true;  // ends where the assistant begins to speak
  bool enable_thinking = true;        // of kQwen3; false: an empty <think> block is given
  std::string date = "26 Jul 2024";   // of kLlama31, "today"; this one is its template's default
};

// The text, with the family's <|begin_of_text|> where it has one: Tokenizer::encode_prompt adds no
// second one. kInvalid names the message that cannot be rendered.
Result<std::string> render_chat(ChatTemplate chat, std::span<const ChatMessage> messages,
                                const ChatOptions& options);

// Which family a template's text is of; line ends and white space at the end do not count. Of one
// that is not known the error (kInvalid) has `where`.
Result<ChatTemplate> recognise_chat_template(std::string_view text, const std::string& where);
// The same by the text's SHA-256 in hex, taken without "\r" and the white space at its end.
std::optional<ChatTemplate> chat_template_of(std::string_view sha256);

// Of DIR/chat_template.jinja, else of `chat_template` in DIR/tokenizer_config.json (there a text,
// or a list in which the one that is named "default" counts). kNotFound: there is none.
Result<ChatTemplate> read_chat_template(const std::filesystem::path& directory);

}  // namespace tandem::actors
