// A directory's chat template, found and run as transformers does, beside the families that are
// written out.
#include "actors/model/chat_format.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "actors/jinja/json_value.h"
#include "actors/model/tokenizer.h"
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

class Directory {
 public:
  Directory() : path_(fs::path(testing::TempDir()) / "chat_format_test") {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Directory() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }

 private:
  fs::path path_;
};

ChatInput question() { return {.messages = jinja::make_list({chat_message("user", "Q")})}; }

// The text of a question, or the error's message.
std::string rendered(const Result<ChatFormat>& format, const ChatFormatOptions& options = {}) {
  if (!format) return format.error().message;
  const auto text = format->render(question(), options);
  return text ? *text : text.error().message;
}

// CF-1, of the family whose text the goldens have: the Jinja program and the C++ function agree.
TEST(ChatFormat, CF1AFamilyEqualsItsOwnText) {
  const std::string text = goldens()["smollm2_template"];
  const auto own = ChatFormat::of_text(text, "a test");
  ASSERT_TRUE(own) << render(own.error());
  const ChatFormat family = ChatFormat::of_family(ChatTemplate::kSmolLm2);
  for (const json& one : goldens()["cases"]) {
    const ChatInput input{.messages = jinja::value_of(one["messages"])};
    ChatFormatOptions options;
    options.add_generation_prompt = one["add_generation_prompt"];
    const std::string expected = one["rendered"]["smollm2"];
    for (const ChatFormat* format : {&*own, &family}) {
      const auto rendered = format->render(input, options);
      ASSERT_TRUE(rendered) << render(rendered.error());
      EXPECT_EQ(*rendered, expected) << one["messages"].dump();
    }
  }
}

TEST(ChatFormat, IsFoundWhereTransformersFindsIt) {
  const Directory model;
  const auto error = [&](std::string_view choice = "auto") {
    const auto format = ChatFormat::read(model.path(), choice);
    return format ? ErrorCode{} : format.error().code;
  };
  EXPECT_EQ(error(), ErrorCode::kNotFound);
  model.write("tokenizer_config.json", "{\"chat_template\": null}");
  EXPECT_EQ(error(), ErrorCode::kNotFound);
  model.write("tokenizer_config.json", "{\"chat_template\": 7}");
  EXPECT_EQ(error(), ErrorCode::kInvalid);
  model.write("tokenizer_config.json", R"({"chat_template": "text"})");
  EXPECT_EQ(rendered(ChatFormat::read(model.path(), "auto")), "text");
  model.write("tokenizer_config.json",
              R"({"chat_template": [{"name": "tool_use", "template": "tools"},
                                    {"name": "default", "template": "list"}]})");
  EXPECT_EQ(rendered(ChatFormat::read(model.path(), "auto")), "list");
  EXPECT_EQ(rendered(ChatFormat::read(model.path(), "tool_use")), "tools");
  EXPECT_EQ(error("rag"), ErrorCode::kNotFound);
  EXPECT_EQ(ChatFormat::read(model.path(), "rag").error().help,
            "its templates are: tool_use, default");
  model.write("chat_template.json", R"({"chat_template": "legacy"})");
  EXPECT_EQ(rendered(ChatFormat::read(model.path(), "auto")), "legacy");
  model.write("chat_template.jinja", "file");
  model.write("additional_chat_templates/rag.jinja", "more");
  EXPECT_EQ(rendered(ChatFormat::read(model.path(), "auto")), "file");
  EXPECT_EQ(rendered(ChatFormat::read(model.path(), "rag")), "more");
  EXPECT_EQ(rendered(ChatFormat::read({}, (model.path() / "chat_template.jinja").string())),
            "file");
  model.write("chat_template.jinja", "{% if %}");
  const auto broken = ChatFormat::read(model.path(), "auto");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().where, (model.path() / "chat_template.jinja").string() + ":1");
  EXPECT_EQ(rendered(ChatFormat::read(model.path(), "llama3")),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nQ<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatFormat, GivesWhatApplyChatTemplateGives) {
  const Directory model;
  model.write("tokenizer_config.json",
              R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "special": true}})");
  model.write("special_tokens_map.json", R"({"bos_token": "<other>", "pad_token": "<pad>"})");
  model.write("chat_template.jinja",
              "{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ unk_token is defined }} "
              "{{ tools }} {{ documents }} {{ add_generation_prompt }} "
              "{{ enable_thinking is defined }} {{ date_string }} {{ strftime_now('%Y-%m-%d') }} "
              "{{ effort }}");
  const auto format = ChatFormat::read(model.path(), "auto");
  EXPECT_EQ(rendered(format), "<s></s><pad>False None None True False 26 Jul 2024 2024-07-26 ");
  ChatFormatOptions options;
  options.add_generation_prompt = false;
  options.enable_thinking = false;
  options.date = "1 Feb 2026";
  options.kwargs = {{"effort", jinja::Value("low")}, {"bos_token", jinja::Value("!")}};
  EXPECT_EQ(rendered(format, options),
            "!</s><pad>False None None False True 1 Feb 2026 2026-02-01 low");
  options.date = "tomorrow";
  EXPECT_EQ(rendered(format, options), "strftime_now() was called, and no date is set");
}

TEST(ChatFormat, AMessageIsSeenWithoutNullsAndWithItsReasoning) {
  const auto format = ChatFormat::of_text("{{ messages[0] }}", "T");
  const auto seen = [&](const char* message) {
    const auto text =
        format->render({.messages = jinja::make_list({*jinja::parse_json_value(message)})}, {});
    return text ? *text : text.error().message;
  };
  EXPECT_EQ(seen(R"({"role": "user", "content": null, "name": "x"})"),
            "{'role': 'user', 'name': 'x'}");
  EXPECT_EQ(seen(R"({"role": "a", "reasoning": "r"})"),
            "{'thinking': 'r', 'role': 'a', 'reasoning': 'r', 'reasoning_content': 'r'}");
  EXPECT_EQ(seen("7"), "message 1 is no object");
  EXPECT_EQ(format->render({.messages = jinja::make_list({})}, {}).error().message,
            "a conversation has at least one message");
  const ChatFormat family = ChatFormat::of_family(ChatTemplate::kQwen3);
  const auto refused = family.render(
      {.messages = jinja::make_list(
           {*jinja::parse_json_value(R"({"role": "user", "content": "a", "tool_calls": []})")})},
      {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("message 1 has `tool_calls`"), std::string::npos);
}

TEST(ChatFormat, KnowsTheEndOfATurnAndItsMarkers) {
  const auto of = [](const char* text) { return *ChatFormat::of_text(text, "T"); };
  const ChatFormat im = of(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
  EXPECT_EQ(im.end_of_turn(), "<|im_end|>\n");
  EXPECT_EQ(im.markers(), (std::vector<std::string>{"<|im_start|>", "<|im_end|>"}));
  const ChatFormat gemma =
      of("{% for m in messages %}{{ '<start_of_turn>' + m.role + ' < 3 <b>' + m.content | trim + "
         "'<end_of_turn>\n' }}{% endfor %}<\uff5cEnd\uff5c>");
  EXPECT_EQ(gemma.end_of_turn(), "<end_of_turn>\n<\uff5cEnd\uff5c>");
  EXPECT_EQ(gemma.markers(),
            (std::vector<std::string>{"<start_of_turn>", "<end_of_turn>", "<\uff5cEnd\uff5c>"}));
  EXPECT_EQ(of("{{ raise_exception('no') }}").end_of_turn(), "");
  EXPECT_EQ(ChatFormat::of_family(ChatTemplate::kLlama3).end_of_turn(), "<|eot_id|>");
  EXPECT_EQ(ChatFormat::of_family(ChatTemplate::kQwen25).end_of_turn(), "<|im_end|>\n");
}

TEST(ChatFormat, MarkersThatAreNoTokensAreWarnedOf) {
  json document = {
      {"model", {{"type", "BPE"}, {"vocab", json::object()}, {"merges", json::array()}}},
      {"added_tokens", json::array()},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
      {"decoder", {{"type", "ByteLevel"}}}};
  int id = 0;
  for (char c = '!'; c <= '~'; ++c) document["model"]["vocab"][std::string(1, c)] = id++;
  const auto warning = [&] {
    const auto tokenizer = Tokenizer::parse(document.dump(), "tokenizer.json");
    EXPECT_TRUE(tokenizer) << render(tokenizer.error());
    return marker_warning(*ChatFormat::of_text("<|im_start|>a<|im_end|>", "T"), *tokenizer);
  };
  EXPECT_EQ(warning(),
            "the chat template prints <|im_start|>, <|im_end|>, which the model's tokenizer does "
            "not have as tokens (22 plain tokens instead): the template is probably not this "
            "model's");
  document["added_tokens"] = {{{"id", id}, {"content", "<|im_start|>"}, {"special", true}},
                              {{"id", id + 1}, {"content", "<|im_end|>"}, {"special", true}}};
  EXPECT_EQ(warning(), std::nullopt);
}

}  // namespace
}  // namespace tandem::model
