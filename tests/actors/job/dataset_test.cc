// JSON lines become records: names of fields, conversations, an order per epoch (DS-1), and errors
// that point at the line.
#include "actors/job/dataset.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

Result<std::vector<Record>> load(const JobFolder& folder, const std::string& text,
                                 RecordNeeds needs = RecordNeeds::kPrompt) {
  folder.write("d.jsonl", text);
  return load_dataset({folder.root() / "d.jsonl"}, {}, needs);
}

TEST(Dataset, KeepsTheWholeRecordAsItWasWritten) {
  const JobFolder folder;
  const std::string line = R"({"prompt": "1+1=", "answer": {"b":1, "a":[2]}, "level": 3})";
  const auto records = load(folder, "\n" + line + "\r\n\n", RecordNeeds::kAnswer);
  ASSERT_TRUE(records) << render(records.error());
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ(records->front().prompt, "1+1=");
  EXPECT_EQ(records->front().json, line);
  EXPECT_FALSE(records->front().completion);
  EXPECT_EQ(records->front().where, (folder.root() / "d.jsonl").string() + ":2");
}

TEST(Dataset, ReadsOtherFieldNames) {
  const JobFolder folder;
  folder.write("d.jsonl", R"({"q": "a", "say": "b"})");
  const auto records =
      load_dataset({folder.root() / "d.jsonl"}, {.prompt = "q", .answer = "a", .completion = "say"},
                   RecordNeeds::kCompletion);
  ASSERT_TRUE(records) << render(records.error());
  EXPECT_EQ(records->front().completion, "b");
}

TEST(Dataset, ReadsWhichDataSetALineIsFrom) {
  const JobFolder folder;
  const auto records = load(folder, R"({"prompt": "a", "data_source": "math"})"
                                    "\n"
                                    R"({"prompt": "b"})");
  ASSERT_TRUE(records) << render(records.error());
  EXPECT_EQ((*records)[0].data_source, "math");
  EXPECT_EQ((*records)[1].data_source, std::nullopt);
  const auto null = load(folder, R"({"prompt": "a", "data_source": null, "completion": null})");
  ASSERT_TRUE(null) << "pandas writes it for an absent value: " << render(null.error());
  EXPECT_EQ(null->front().data_source, std::nullopt);
  const auto wrong = load(folder, R"({"prompt": "a", "data_source": 3})");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("`data_source` must be a string"), std::string::npos);
  folder.write("d.jsonl", R"({"prompt": "a", "from": "code", "data_source": 3})");
  DatasetKeys keys;
  keys.data_source = "from";
  const auto renamed = load_dataset({folder.root() / "d.jsonl"}, keys, RecordNeeds::kPrompt);
  ASSERT_TRUE(renamed) << render(renamed.error());
  EXPECT_EQ(renamed->front().data_source, "code");
}

const DatasetKeys kSmolLm2Chat{.chat = {.model = {}, .chosen = model::ChatTemplate::kSmolLm2}};

TEST(Dataset, RendersConversationsAndKeepsTheirMessages) {
  const JobFolder folder;
  const std::string messages =
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": "2+2?"}])";
  const std::string text =
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n";
  folder.write("d.jsonl", R"({"messages": )" + messages + R"(, "answer": 4})" + "\n" +
                              R"({"prompt": )" + messages + R"(, "answer": 4, "level": 3})" + "\n" +
                              R"({"prompt": "plain", "messages": [], "answer": 4})");
  const auto records =
      load_dataset({folder.root() / "d.jsonl"}, kSmolLm2Chat, RecordNeeds::kAnswer);
  ASSERT_TRUE(records) << render(records.error());
  ASSERT_EQ(records->size(), 3u);
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_EQ((*records)[i].prompt, text);
    EXPECT_EQ((*records)[i].chat, model::ChatTemplate::kSmolLm2);
    const auto kept = nlohmann::json::parse((*records)[i].json);
    EXPECT_EQ(kept["prompt"], text);
    EXPECT_EQ(kept["messages"], nlohmann::json::parse(messages));
    EXPECT_EQ(kept["answer"], 4);
  }
  EXPECT_EQ(nlohmann::json::parse((*records)[1].json)["level"], 3);
  EXPECT_EQ((*records)[2].prompt, "plain");
  EXPECT_FALSE((*records)[2].chat);
}

TEST(Dataset, NamesTheMessageThatIsWrong) {
  const JobFolder folder;
  const auto refused = [&](const std::string& messages, const DatasetKeys& keys = kSmolLm2Chat) {
    folder.write("d.jsonl", R"({"messages": )" + messages + "}");
    const auto records = load_dataset({folder.root() / "d.jsonl"}, keys, RecordNeeds::kPrompt);
    EXPECT_FALSE(records) << messages;
    return records ? Error{} : records.error();
  };
  EXPECT_EQ(refused("[]").message, "a conversation has at least one message");
  EXPECT_EQ(refused("[7]").message, "message 1 must be an object, found number");
  EXPECT_EQ(refused(R"([{"role": "user"}])").message, "message 1 has no content");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [1]}])").message,
            "the content of message 1 must be a string, found array");
  EXPECT_EQ(
      refused(R"([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}])").message,
      "message 2 has the role `tool`; those known are system, user and assistant");
  EXPECT_EQ(refused(R"([{"role": "user", "content": "a", "tool_calls": []}])").message,
            "message 1 has `tool_calls`");
  EXPECT_TRUE(refused("[]").where.ends_with("d.jsonl:1"));
  const Error unknown = refused(R"([{"role": "user", "content": "a"}])",
                                {.chat = {.model = folder.root(), .chosen = {}, .options = {}}});
  EXPECT_NE(unknown.message.find("d.jsonl:1 needs a chat template: the model has no chat template"),
            std::string::npos)
      << unknown.message;
  EXPECT_NE(unknown.help.find("data.chat_template"), std::string::npos);
}

TEST(Dataset, PointsAtTheLineThatIsWrong) {
  const JobFolder folder;
  const auto check = [&](const std::string& line, const std::string& message,
                         RecordNeeds needs = RecordNeeds::kPrompt) {
    const auto records = load(folder,
                              R"({"prompt": "a", "answer": 1, "completion": "b"})"
                              "\n" +
                                  line + "\n",
                              needs);
    ASSERT_FALSE(records) << line;
    EXPECT_EQ(records.error().code, ErrorCode::kInvalid);
    EXPECT_NE(records.error().message.find(message), std::string::npos) << records.error().message;
    EXPECT_TRUE(records.error().where.ends_with("d.jsonl:2")) << records.error().where;
  };
  check(R"({"prompt": "a")", "not a line of JSON");
  check("{\"prompt\": \"\xff\"}", "not a line of JSON");
  check(std::string(400'000, '['), "nested more than 64 deep");
  check("[1]", "expected a JSON object, found array");
  check(R"({"promt": "a"})", "no `prompt`");
  check(R"({"prompt": 5})", "must be a string");
  check(R"({"prompt": "a"})", "no `answer`", RecordNeeds::kAnswer);
  check(R"({"prompt": "a"})", "no `completion`", RecordNeeds::kCompletion);
  check(R"({"prompt": "a", "completion": 5})", "must be a string", RecordNeeds::kCompletion);
  check(R"({"prompt": ")" + std::string(kRecordBytesMax, 'x') + R"("})", "more than 8388608 bytes");
  check(std::string(kRecordBytesMax + 1, ' '), "more than 8388608 bytes");
}

TEST(Dataset, RefusesAnEmptyOrUnreadableFile) {
  const JobFolder folder;
  EXPECT_NE(load(folder, "\n \n").error().message.find("no records"), std::string::npos);
  const auto missing = load_dataset({folder.root() / "nothing"}, {}, RecordNeeds::kPrompt);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kFailed);
  EXPECT_FALSE(load_dataset({folder.root()}, {}, RecordNeeds::kPrompt));
}

TEST(Dataset, GivesOneRecordAtATimeAndTellsHowFarItIs) {
  const JobFolder folder;
  constexpr std::uint64_t kLines = 3 * kLinesPerNotice;
  std::string text;
  for (std::uint64_t i = 0; i < kLines; ++i)
    text += "{\"prompt\": \"" + std::to_string(i) + "\"}\n";
  folder.write("a.jsonl", text);
  folder.write("b.jsonl", text);
  std::uint64_t next = 0;
  std::vector<ReadingProgress> told;
  const auto read = read_dataset(
      {folder.root() / "a.jsonl", folder.root() / "b.jsonl"}, {}, RecordNeeds::kPrompt,
      [&](const Record& record) -> Result<void> {
        EXPECT_EQ(record.prompt, std::to_string(next % kLines));
        EXPECT_TRUE(record.where.ends_with(":" + std::to_string(next % kLines + 1)));
        ++next;
        return {};
      },
      [&](const ReadingProgress& progress) { told.push_back(progress); });
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(next, 2 * kLines);
  ASSERT_EQ(told.size(), 6u);
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].file.filename(), i < 3 ? "a.jsonl" : "b.jsonl");
    EXPECT_EQ(told[i].records, (i + 1) * kLinesPerNotice - 1) << "the line is not parsed yet";
    EXPECT_EQ(told[i].bytes_total, 2 * text.size());
    EXPECT_GE(told[i].bytes, i == 0 ? 1 : told[i - 1].bytes);
    EXPECT_LE(told[i].bytes, told[i].bytes_total);
  }
}

TEST(Dataset, EndsAtTheFirstErrorOfWhoTakesTheRecords) {
  const JobFolder folder;
  folder.write("d.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n");
  int taken = 0;
  const auto read = read_dataset({folder.root() / "d.jsonl"}, {}, RecordNeeds::kPrompt,
                                 [&](const Record& record) -> Result<void> {
                                   ++taken;
                                   return Error{.message = "enough", .where = record.where};
                                 });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "enough");
  EXPECT_EQ(taken, 1);
}

// A field of one line must not be found in the next one.
TEST(Dataset, EachLineHasItsOwnFields) {
  const JobFolder folder;
  const auto records =
      load(folder, R"({"prompt": "a", "completion": "c", "data_source": "s", "answer": 1})"
                   "\n"
                   R"({"prompt": "b"})"
                   "\n");
  ASSERT_TRUE(records) << render(records.error());
  EXPECT_EQ((*records)[1].prompt, "b");
  EXPECT_EQ((*records)[1].completion, std::nullopt);
  EXPECT_EQ((*records)[1].data_source, std::nullopt);
  EXPECT_EQ((*records)[1].json, R"({"prompt": "b"})");
  EXPECT_NE(load(folder, "{\"prompt\": \"a\", \"answer\": 1}\n{\"prompt\": \"b\"}\n",
                 RecordNeeds::kAnswer)
                .error()
                .message.find("no `answer`"),
            std::string::npos);
}

TEST(Dataset, RefusesWhatIsNoFile) {
  const JobFolder folder;
  const auto refused = [&](const std::filesystem::path& path) {
    const auto records = load_dataset({path}, {}, RecordNeeds::kPrompt);
    EXPECT_FALSE(records) << path;
    return records ? std::string() : records.error().message;
  };
  ASSERT_EQ(::mkfifo((folder.root() / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(refused(folder.root() / "fifo"),
            "cannot read the data file: it is a FIFO, not a regular file");
  EXPECT_EQ(refused("/dev/zero"),
            "cannot read the data file: it is a character device, not a regular file");
}

// DS-1
TEST(Dataset, AnEpochsOrderIsAPermutationOfSeedAndEpochAloneDS1) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto first = epoch_order(seed, 0, 100, true);
    EXPECT_EQ(first, epoch_order(seed, 0, 100, true));
    EXPECT_NE(first, epoch_order(seed, 1, 100, true));
    EXPECT_NE(first, epoch_order(seed + 1, 0, 100, true));
    EXPECT_NE(epoch_order(seed, 1, 100, true), epoch_order(seed + 1, 0, 100, true));
    auto sorted = first;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, epoch_order(seed, 7, 100, false));
    EXPECT_EQ(sorted.front(), 0u);
    EXPECT_EQ(sorted.back(), 99u);
  }
}

}  // namespace
}  // namespace tandem::job
