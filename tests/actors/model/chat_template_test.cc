// Conversations as our templates render them, against the texts of transformers
// (scripts/make_chat_goldens.py).
#include "actors/model/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tandem::model {
namespace {

using nlohmann::json;

const json& template_goldens() {
  static const json read = [] {
    std::ifstream file(TANDEM_SOURCE_DIR "/tests/golden/chat/conversations.json");
    return json::parse(file);
  }();
  return read;
}

constexpr ChatTemplate kAll[] = {ChatTemplate::kSmolLm2, ChatTemplate::kQwen25,
                                 ChatTemplate::kQwen3,   ChatTemplate::kQwen3Instruct,
                                 ChatTemplate::kLlama3,  ChatTemplate::kLlama31};

TEST(ChatTemplate, RendersAsTransformersDoes) {
  int compared = 0;
  for (const json& one : template_goldens()["cases"]) {
    std::vector<ChatMessage> messages;
    for (const json& message : one["messages"])
      messages.push_back({message["role"], message["content"]});
    const ChatOptions options{.add_generation_prompt = one["add_generation_prompt"],
                              .enable_thinking = one["enable_thinking"],
                              .date = one["date"]};
    for (const ChatTemplate chat : kAll) {
      const auto text = render_chat(chat, messages, options);
      ASSERT_TRUE(text) << render(text.error());
      EXPECT_EQ(*text, one["rendered"][std::string(spelling(chat))].get<std::string>())
          << spelling(chat) << " of " << one["messages"].dump();
      ++compared;
    }
  }
  EXPECT_GE(compared, 300);
}

TEST(ChatTemplate, WhatCannotBeRenderedIsNamed) {
  const auto refused = [](std::vector<ChatMessage> messages) {
    const auto text = render_chat(ChatTemplate::kQwen3, messages, {});
    return text ? "it was rendered" : text.error().message;
  };
  EXPECT_EQ(refused({}), "a conversation has at least one message");
  EXPECT_EQ(refused({{"user", "a"}, {"tool", "b"}}),
            "message 2 has the role `tool`; those known are system, user and assistant");
  EXPECT_EQ(refused({{"user", "\xff"}}), "the content of message 1 is not UTF-8");
}

}  // namespace
}  // namespace tandem::model
