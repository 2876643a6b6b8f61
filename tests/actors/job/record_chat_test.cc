// Conversations with tools, as their data files have them.
#include "actors/job/record_chat.h"

#include <gtest/gtest.h>

#include "actors/job/dataset.h"
#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

class RecordWithTools : public testing::Test {
 protected:
  RecordWithTools() {
    shows(
        "{% if tools %}{% for t in tools %}{{ t | tojson }}\n{% endfor %}{% endif %}"
        "{% for m in messages %}{{ m.role }}:{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}{{ '\n' }}{% endfor %}");
    keys_.chat.model = folder_.root();
  }
  void shows(const std::string& text) { folder_.write("chat_template.jinja", text); }

  Result<Record> read(const std::string& line) {
    folder_.write("d.jsonl", line);
    auto records = load_dataset({folder_.root() / "d.jsonl"}, keys_, RecordNeeds::kPrompt);
    if (!records) return records.error();
    return records->front();
  }
  std::string prompt(const std::string& line) {
    const auto record = read(line);
    return record ? record->prompt : render(record.error());
  }
  std::string error(const std::string& line) {
    const auto record = read(line);
    EXPECT_FALSE(record) << record->prompt;
    return record ? "" : render(record.error());
  }

  const JobFolder folder_;
  DatasetKeys keys_;
};

constexpr const char* kUser = R"("messages": [{"role": "user", "content": "Q"}])";

TEST_F(RecordWithTools, TheTemplateGetsToolsInTheOrderOfTheFile) {
  const std::string tools = R"([{"type": "function", "function": {"name": "b", "a": null, )"
                            R"("parameters": {"z": 1, "b": [null, 2]}}}, {"name": "a"}])";
  const std::string said = R"({"type": "function", "function": {"name": "b", )"
                           R"("parameters": {"z": 1, "b": [null, 2]}}})"
                           "\n{\"name\": \"a\"}\nuser:Q\n";
  EXPECT_EQ(prompt("{" + std::string(kUser) + R"(, "tools": )" + tools + "}"), said);
  const std::string as_text = dump_json(nlohmann::json(tools));
  const auto record = read("{" + std::string(kUser) + R"(, "tools": )" + as_text + "}");
  ASSERT_TRUE(record) << render(record.error());
  EXPECT_EQ(record->prompt, said) << "tools may be JSON as a text";
  EXPECT_EQ(parse_json(record->json)["tools"].get<std::string>(), tools)
      << "the reward gets them as they are";
  keys_.prompt_is = PromptIs::kChat;
  EXPECT_EQ(prompt(R"({"prompt": "Q", "messages": [], "tools": [{"name": "a"}]})"),
            "{\"name\": \"a\"}\nuser:Q\n");
  for (const char* none : {"[]", "null", "\"\"", "\"[]\"", "\"null\"", "\"[ ]\""})
    EXPECT_EQ(prompt("{" + std::string(kUser) + R"(, "tools": )" + none + "}"), "user:Q\n");
  EXPECT_EQ(prompt("{" + std::string(kUser) +
                   R"(, "id": [9876543210987654321, {"x": 1e3}], "tools": [{"name": "a"}]})"),
            "{\"name\": \"a\"}\nuser:Q\n")
      << "an integer that no template has is of no matter elsewhere";
}

TEST_F(RecordWithTools, TheTemplateGetsCallsAndTheirResults) {
  const std::string line =
      R"({"chat": {"turns": [{"role": "user", "content": "Q", "tool_calls": []}, )"
      R"({"role": "assistant", "content": null, "tool_calls": [{"type": "function", "id": null, )"
      R"("function": {"name": "f", "arguments": {"y": 1, "x": null, "a": "2"}}}]}, )"
      R"({"role": "tool", "name": "f", "tool_call_id": "c", "content": "3"}]}})";
  keys_.prompt = "chat.turns";
  const std::string said =
      "user:Q\nassistant:{\"type\": \"function\", \"function\": {\"name\": \"f\", "
      "\"arguments\": {\"y\": 1, \"a\": \"2\"}}}\ntool:3\n";
  EXPECT_EQ(prompt(line), said);
  keys_.system_prompt = "S";
  EXPECT_EQ(prompt(line), "system:S\n" + said);
}

TEST_F(RecordWithTools, WhatATemplateDoesNotShowIsRefused) {
  const std::string tools = "{" + std::string(kUser) + R"(, "tools": [{"name": "f"}]})";
  const std::string calls = R"({"messages": [{"role": "assistant", "content": "c", )"
                            R"("tool_calls": [{"name": "f"}]}]})";
  shows("{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_HAS(error(tools), "d.jsonl:1");
  EXPECT_HAS(error(tools), "the line has `tools`, and the chat template shows nothing of them");
  EXPECT_HAS(error(calls), "the line has `tool_calls`, and the chat template shows nothing of");
  keys_.chat.chosen = "qwen2.5";
  EXPECT_HAS(error(tools), "the template `qwen2.5` takes no tools");
  EXPECT_HAS(error(calls), "message 1 has `tool_calls`");
  // Tools that the reward reads are not necessarily for the model.
  keys_.extra = {"tools"};
  EXPECT_HAS(prompt(tools), "user\nQ<|im_end|>");
  keys_.chat.chosen = "auto";
  EXPECT_EQ(prompt(tools), "Q");
}

TEST_F(RecordWithTools, OfARecordWithoutPromptThatIsTold) {
  EXPECT_HAS(error(R"({"question": "a", "tools": [{"name": "f"}]})"), "the line has no `prompt`");
  EXPECT_HAS(error(R"({"prompt": "a", "tools": [{"name": "f"}]})"),
             "only conversations show tools");
}

TEST_F(RecordWithTools, ToolsOfAnotherFormAreRefused) {
  for (const char* wrong : {"7", "{\"name\": \"f\"}", "[\"f\"]", "\"f\"", "\"7\""})
    EXPECT_HAS(error("{" + std::string(kUser) + R"(, "tools": )" + wrong + "}"),
               "`tools` must be a list of objects");
  for (const char* wrong : {"7", "{\"name\": \"f\"}", "[\"f\"]", "\"f\""})
    EXPECT_HAS(
        error(R"({"messages": [{"role": "assistant", "tool_calls": )" + std::string(wrong) + "}]}"),
        "the tool_calls of message 1 must be a list of objects");
  keys_.extra = {"tools"};
  EXPECT_EQ(prompt("{" + std::string(kUser) + R"(, "tools": ["calculator"]})"), "user:Q\n")
      << "the reward reads them, whatever they are";
}

}  // namespace
}  // namespace tandem::job
