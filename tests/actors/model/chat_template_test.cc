// Conversations as our templates render them, against the texts of transformers
// (scripts/make_chat_goldens.py).
#include "actors/model/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const json& goldens() {
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
  for (const json& one : goldens()["cases"]) {
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

TEST(ChatTemplate, TemplatesAreKnownByTheirText) {
  for (const ChatTemplate chat : kAll)
    for (const json& digest : goldens()["digests"][std::string(spelling(chat))])
      EXPECT_EQ(chat_template_of(digest.get<std::string>()), chat) << spelling(chat);
  const std::string text = goldens()["smollm2_template"];
  for (const std::string& variant : {text, text + "\n", text + " \r\n"}) {
    const auto chat = recognise_chat_template(variant, "a test");
    ASSERT_TRUE(chat) << render(chat.error());
    EXPECT_EQ(*chat, ChatTemplate::kSmolLm2);
  }
  const auto unknown = recognise_chat_template(text + "x", "DIR/chat_template.jinja");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(unknown.error().where, "DIR/chat_template.jinja");
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

class Directory {
 public:
  Directory() : path_(fs::path(testing::TempDir()) / "chat_template_test") {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Directory() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }
  void write(const char* file, const std::string& text) const {
    std::ofstream(path_ / file) << text;
  }

 private:
  fs::path path_;
};

TEST(ChatTemplate, IsReadFromADirectoryAsTransformersReadsIt) {
  const Directory model;
  const std::string text = goldens()["smollm2_template"];
  const auto error = [&] {
    const auto chat = read_chat_template(model.path());
    return chat ? ErrorCode{} : chat.error().code;
  };
  EXPECT_EQ(error(), ErrorCode::kNotFound);
  model.write("tokenizer_config.json", "{\"chat_template\": null}");
  EXPECT_EQ(error(), ErrorCode::kNotFound);
  model.write("tokenizer_config.json", "{\"chat_template\": 7}");
  EXPECT_EQ(error(), ErrorCode::kInvalid);
  model.write("tokenizer_config.json", json{{"chat_template", text}}.dump());
  EXPECT_EQ(*read_chat_template(model.path()), ChatTemplate::kSmolLm2);
  const json list = {{{"name", "tool_use"}, {"template", "x"}},
                     {{"name", "default"}, {"template", text}}};
  model.write("tokenizer_config.json", json{{"chat_template", list}}.dump());
  EXPECT_EQ(*read_chat_template(model.path()), ChatTemplate::kSmolLm2);
  model.write("chat_template.jinja", "{{ messages }}");  // transformers 5 prefers it
  EXPECT_EQ(error(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tandem::model
