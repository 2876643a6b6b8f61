// Each family's render function writes the text that the family's Jinja template would produce,
// with the template's own trimming of white space. Two published texts, those of Llama 3.1 and 3.2,
// render alike and share one function.
#include "actors/model/chat_template.h"

#include <algorithm>
#include <utility>

#include "actors/model/utf8.h"

namespace tandem::model {
namespace {

constexpr std::string_view kSmolLm2System =
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
constexpr std::string_view kQwen25System =
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
constexpr std::string_view kThinkEnd = "</think>", kThink = "<think>";

// The characters that Python's str.strip(), and so Jinja's `trim`, removes.
bool is_stripped(std::uint32_t code) {
  return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

// `text` is well-formed.
std::string_view trimmed(std::string_view text) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    if (is_stripped(next_code_point(text, at))) continue;
    begin = std::min(begin, here);
    end = at;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

std::string_view without_leading(std::string_view text, char c) {
  return text.substr(std::min(text.find_first_not_of(c), text.size()));
}

std::string_view without_trailing(std::string_view text, char c) {
  return text.substr(0, text.find_last_not_of(c) + 1);
}

std::string im_block(std::string_view role, std::string_view content) {
  std::string text = "<|im_start|>";
  return text.append(role).append("\n").append(content).append("<|im_end|>\n");
}

std::string header_block(std::string_view role, std::string_view content) {
  std::string text = "<|start_header_id|>";
  return text.append(role).append("<|end_header_id|>\n\n").append(content).append("<|eot_id|>");
}

// All messages as they are. Where the first one is not a system message, `own_system` becomes one.
std::string render_plain(std::span<const ChatMessage> messages, std::string_view own_system) {
  std::string text;
  if (!own_system.empty() && messages[0].role != "system") text = im_block("system", own_system);
  for (const ChatMessage& message : messages) text += im_block(message.role, message.content);
  return text;
}

// An assistant's turn in two parts, each trimmed as the template does. The reasoning ends at the
// first </think> and the content begins behind the last one, as in the template's two splits.
struct Thought {
  std::string_view reasoning, content;
};
Thought split_thought(std::string_view content) {
  const std::size_t first = content.find(kThinkEnd), last = content.rfind(kThinkEnd);
  if (first == content.npos) return {{}, content};
  std::string_view reasoning = without_trailing(content.substr(0, first), '\n');
  if (const std::size_t opened = reasoning.rfind(kThink); opened != reasoning.npos)
    reasoning.remove_prefix(opened + kThink.size());
  return {without_leading(reasoning, '\n'),
          without_leading(content.substr(last + kThinkEnd.size()), '\n')};
}

// The template keeps the reasoning of assistant turns after the last user message, and drops it
// from earlier turns. A user message that is a tool's response does not count as a question.
std::string render_qwen3(std::span<const ChatMessage> messages) {
  std::size_t last_query = messages.size() - 1;
  for (std::size_t i = messages.size(); i-- > 0;) {
    const std::string& content = messages[i].content;
    const bool answers_tool =
        content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
    if (messages[i].role != "user" || answers_tool) continue;
    last_query = i;
    break;
  }
  std::string text;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if (role != "assistant") {
      text += im_block(role, content);
      continue;
    }
    const Thought thought = split_thought(content);
    const bool last = i + 1 == messages.size();
    if (i > last_query && (last || !thought.reasoning.empty())) {
      const std::string_view reasoning =
          without_leading(without_trailing(thought.reasoning, '\n'), '\n');
      text += im_block(role, std::string("<think>\n")
                                 .append(reasoning)
                                 .append("\n</think>\n\n")
                                 .append(without_leading(thought.content, '\n')));
    } else {
      text += im_block(role, thought.content);
    }
  }
  return text;
}

std::string render_llama3(std::span<const ChatMessage> messages) {
  std::string text = "<|begin_of_text|>";
  for (const ChatMessage& message : messages)
    text += header_block(message.role, trimmed(message.content));
  return text;
}

std::string render_llama31(std::span<const ChatMessage> messages, const std::string& date) {
  std::string system = "Cutting Knowledge Date: December 2023\nToday Date: " + date + "\n\n";
  if (messages[0].role == "system") {
    system += trimmed(messages[0].content);
    messages = messages.subspan(1);
  }
  std::string text = "<|begin_of_text|>" + header_block("system", system);
  for (const ChatMessage& message : messages)
    text += header_block(message.role, trimmed(message.content));
  return text;
}

std::string render_messages(ChatTemplate chat, std::span<const ChatMessage> messages,
                            const ChatOptions& options) {
  switch (chat) {
    case ChatTemplate::kSmolLm2:
      return render_plain(messages, kSmolLm2System);
    case ChatTemplate::kQwen25:
      return render_plain(messages, kQwen25System);
    case ChatTemplate::kQwen3:
      return render_qwen3(messages);
    case ChatTemplate::kQwen3Instruct:
      return render_plain(messages, {});
    case ChatTemplate::kLlama3:
      return render_llama3(messages);
    case ChatTemplate::kLlama31:
      return render_llama31(messages, options.date);
  }
  return {};
}

std::string generation_prompt(ChatTemplate chat, const ChatOptions& options) {
  if (chat == ChatTemplate::kLlama3 || chat == ChatTemplate::kLlama31)
    return "<|start_header_id|>assistant<|end_header_id|>\n\n";
  // The empty block is how Qwen3's template tells the model not to reason.
  const bool silent = chat == ChatTemplate::kQwen3 && !options.enable_thinking;
  return std::string("<|im_start|>assistant\n") + (silent ? "<think>\n\n</think>\n\n" : "");
}

Error cannot_render(std::string why) {
  return {.code = ErrorCode::kInvalid, .message = std::move(why), .where = {}, .help = {}};
}

Result<void> check_messages(std::span<const ChatMessage> messages) {
  if (messages.empty()) return cannot_render("a conversation has at least one message");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string at = "message " + std::to_string(i + 1);
    const std::string& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant")
      return cannot_render(at + " has the role `" + role +
                           "`; those known are system, user and assistant");
    if (first_malformed_utf8(messages[i].content))
      return cannot_render("the content of " + at + " is not UTF-8");
  }
  return {};
}

}  // namespace

Result<std::string> render_chat(ChatTemplate chat, std::span<const ChatMessage> messages,
                                const ChatOptions& options) {
  if (auto sound = check_messages(messages); !sound) return sound.error();
  std::string text = render_messages(chat, messages, options);
  if (options.add_generation_prompt) text += generation_prompt(chat, options);
  return text;
}

}  // namespace tandem::model
