// JSON lines become records: names of fields, conversations, and errors that point at the line.
// Tests actors/job/dataset.h, actors/job/conversation.h, actors/job/record_draw.h.
#include "actors/job/dataset.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "actors/job/record_draw.h"
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

const DatasetKeys kSmolLm2Chat{.chat = {.model = {}, .chosen = "smollm2"}};

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
    ASSERT_TRUE((*records)[i].chat);
    EXPECT_EQ((*records)[i].chat->end_of_turn(), "<|im_end|>\n");
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
  EXPECT_EQ(refused(R"([{"role": "user", "content": null}])").message, "message 1 has no content");
  EXPECT_EQ(refused(R"([{"role": "user", "content": 5}])").message,
            "the content of message 1 must be a string, found number");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [1]}])").message,
            "part 1 of the content of message 1 must be an object, found number");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [{"type": "text", "text": "What is this?"}, )"
                    R"({"type": "image_url", "image_url": {"url": "a.png"}}]}])")
                .message,
            "part 2 of the content of message 1 has the type `image_url`");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [{"type": "text"}]}])").message,
            "part 1 of the content of message 1 has no text");
  EXPECT_EQ(
      refused(R"([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}])").message,
      "message 2 has the role `tool`; those known are system, user and assistant");
  EXPECT_EQ(refused(R"([{"role": "user", "content": "a", "audio": []}])").message,
            "message 1 has `audio`");
  EXPECT_TRUE(refused("[]").where.ends_with("d.jsonl:1"));
  const Error unknown =
      refused(R"([{"role": "user", "content": "a"}])", {.chat = {.model = folder.root()}});
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
  check("{\"prompt\": \"\xff\"}", "the line is not UTF-8: byte 0xff at column 13");
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

// The columns of verl's files.
constexpr const char* kVerlLine =
    R"({"data_source": "gsm8k", "prompt": [{"role": "user", "content": "2+2?"}], "ability": "math",)"
    R"( "reward_model": {"style": "rule", "ground_truth": "4"}, "extra_info": {"index": 7}})";

TEST(Dataset, KeysLeadIntoObjectsByDots) {
  const JobFolder folder;
  folder.write("d.jsonl", std::string(kVerlLine) + "\n" +
                              R"({"prompt": "a", "reward_model.ground_truth": "5"})" + "\n");
  DatasetKeys keys = kSmolLm2Chat;
  keys.answer = "reward_model.ground_truth";
  keys.data_source = "extra_info.split";
  const auto read = [&] {
    return load_dataset({folder.root() / "d.jsonl"}, keys, RecordNeeds::kAnswer);
  };
  const auto records = read();
  ASSERT_TRUE(records) << render(records.error());
  EXPECT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[0].data_source, std::nullopt) << "there is no `split`";
  folder.write("d.jsonl", std::string(kVerlLine) + "\n" + R"({"prompt": "a", "reward_model": {)" +
                              R"("style": "rule", "ground_truth": null}, "level": 3})");
  const auto missing = read();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "the line has no `reward_model.ground_truth`");
  EXPECT_NE(missing.error().help.find("level, prompt, reward_model.style;"), std::string::npos)
      << missing.error().help;
  // A prompt within an object is replaced where it stands.
  keys = kSmolLm2Chat;
  keys.prompt = "extra_info.question";
  folder.write("d.jsonl", R"({"extra_info": {"question": [{"role": "user", "content": "2+2?"}]}})");
  const auto inner = read();
  EXPECT_FALSE(inner) << "it has no answer";
  const auto nested = load_dataset({folder.root() / "d.jsonl"}, keys, RecordNeeds::kPrompt);
  ASSERT_TRUE(nested) << render(nested.error());
  EXPECT_EQ(parse_json(nested->front().json)["extra_info"]["question"], nested->front().prompt);
}

TEST(Dataset, KeepsTheFieldsThatAreNamed) {
  const JobFolder folder;
  folder.write("d.jsonl", std::string(kVerlLine) + "\n" +
                              R"({"prompt": "a", "answer": {"b": [1]}, "level": 3, "x.y": 1})");
  DatasetKeys keys = kSmolLm2Chat;
  keys.extra = {"extra_info.index", "level", "x.y", "images"};
  const auto records = load_dataset({folder.root() / "d.jsonl"}, keys, RecordNeeds::kPrompt);
  ASSERT_TRUE(records) << render(records.error());
  EXPECT_EQ(parse_json((*records)[0].json),
            (nlohmann::json{{"prompt", (*records)[0].prompt},
                            {"messages", {{{"role", "user"}, {"content", "2+2?"}}}},
                            {"data_source", "gsm8k"},
                            {"extra_info", {{"index", 7}}}}));
  EXPECT_EQ((*records)[1].json, R"({"answer":{"b":[1]},"level":3,"prompt":"a","x.y":1})");
}

TEST(Dataset, ATextIsTheMessageOfAUserWhereTheJobSaysSo) {
  const JobFolder folder;
  folder.write("d.jsonl", R"({"prompt": "2+2?", "answer": 4})"
                          "\n"
                          R"({"prompt": [{"role": "system", "content": "S"}, )"
                          R"({"role": "user", "content": "2+2?", "name": null}], "answer": 4})");
  DatasetKeys keys = kSmolLm2Chat;
  keys.prompt_is = PromptIs::kChat;
  keys.system_prompt = "Be brief.";
  const auto read = [&] {
    return load_dataset({folder.root() / "d.jsonl"}, keys, RecordNeeds::kPrompt);
  };
  const auto records = read();
  ASSERT_TRUE(records) << render(records.error());
  const auto said = [](const std::string& system) {
    return "<|im_start|>system\n" + system +
           "<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n";
  };
  EXPECT_EQ((*records)[0].prompt, said("Be brief."));
  ASSERT_TRUE((*records)[0].chat);
  EXPECT_EQ((*records)[0].chat->end_of_turn(), "<|im_end|>\n");
  EXPECT_EQ(parse_json((*records)[0].json)["messages"],
            parse_json(R"([{"role": "system", "content": "Be brief."},
                           {"role": "user", "content": "2+2?"}])"));
  EXPECT_EQ((*records)[1].prompt, said("S")) << "a system message of its own stays";
  keys.prompt_is = PromptIs::kText;
  const auto refused = read();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("is for conversations"), std::string::npos);
  EXPECT_NE(refused.error().help.find("data.prompt_is: chat"), std::string::npos);
  EXPECT_TRUE(refused.error().where.ends_with("d.jsonl:1"));
}

TEST(Dataset, TheTextsOfAContentAreOneText) {
  const JobFolder folder;
  folder.write("d.jsonl", R"({"messages": [{"role": "user", "tool_calls": null, "content": [)"
                          R"({"type": "text", "text": "2+"}, )"
                          R"({"type": "text", "text": "2?", "image_url": null}]}]})");
  const auto records =
      load_dataset({folder.root() / "d.jsonl"}, kSmolLm2Chat, RecordNeeds::kPrompt);
  ASSERT_TRUE(records) << render(records.error());
  EXPECT_NE(records->front().prompt.find("user\n2+2?<|im_end|>"), std::string::npos);
}

TEST(Dataset, WhatIsMoreThanTextIsRefusedOrNamed) {
  const JobFolder folder;
  for (const char* column : {"tools", "images", "image", "videos", "audio"}) {
    SCOPED_TRACE(column);
    const auto line = [&](const std::string& value) {
      return R"({"prompt": "a", ")" + std::string(column) + "\": " + value + "}";
    };
    for (const char* empty : {"null", "[]", "{}", "\"\""}) EXPECT_TRUE(load(folder, line(empty)));
    for (const char* full : {"[1]", "{\"a\": 1}", "\"a.png\"", "7"}) {
      const auto refused = load(folder, line(full));
      ASSERT_FALSE(refused) << full;
      EXPECT_NE(refused.error().message.find("the line has `" + std::string(column) + "`"),
                std::string::npos)
          << refused.error().message;
      EXPECT_NE(refused.error().help.find("data.extra_keys"), std::string::npos);
    }
    DatasetKeys keys;
    keys.extra = {column};
    const auto kept = load_dataset({folder.root() / "d.jsonl"}, keys, RecordNeeds::kPrompt);
    ASSERT_TRUE(kept) << render(kept.error());
    EXPECT_EQ(parse_json(kept->front().json)[column], 7);
  }
}

TEST(Dataset, ARecordKnowsTheShortNameOfItsFile) {
  const JobFolder folder;
  for (const auto& [file, name] :
       {std::pair("gsm8k.train.jsonl", "gsm8k"), std::pair("gsm8k-00000-of-00002.jsonl", "gsm8k"),
        std::pair("best-of-8.jsonl", "best-of-8"), std::pair("-of-2.jsonl", "-of-2"),
        std::pair("a-1-of-2-b.jsonl", "a-1-of-2-b"), std::pair("-1-of-2.jsonl", "-1-of-2")}) {
    folder.write(file, R"({"prompt": "a"})");
    const auto records = load_dataset({folder.root() / file}, {}, RecordNeeds::kPrompt);
    ASSERT_TRUE(records) << render(records.error());
    EXPECT_EQ(records->front().file, name);
  }
}

// The numbers of the records that are drawn of `all`.
std::vector<std::uint64_t> drawn(std::uint64_t seed, std::uint64_t count, std::uint64_t all) {
  RecordDraw draw(seed, count);
  for (std::uint64_t i = 0; i < all; ++i) draw.add({.prompt = std::to_string(i)});
  std::vector<std::uint64_t> numbers;
  EXPECT_TRUE(draw.give([&](const Record& record) -> Result<void> {
    numbers.push_back(std::stoull(record.prompt));
    return {};
  }));
  return numbers;
}

// DS-5
TEST(RecordDraw, IsAFunctionOfTheSeedAndFairDS5) {
  EXPECT_EQ(drawn(3, 5, 4), (std::vector<std::uint64_t>{0, 1, 2, 3})) << "there are no more";
  std::map<std::uint64_t, int> times;
  constexpr int kSeeds = 4000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto numbers = drawn(seed, 5, 20);
    EXPECT_EQ(numbers, drawn(seed, 5, 20));
    ASSERT_EQ(numbers.size(), 5u);
    EXPECT_TRUE(std::ranges::is_sorted(numbers)) << "in the order of the file";
    for (const std::uint64_t number : numbers) ++times[number];
  }
  ASSERT_EQ(times.size(), 20u);
  // Each is drawn with probability 1/4: 1000 times, with a standard deviation of 27.
  for (const auto& [number, count] : times) EXPECT_NEAR(count, 1000, 5 * 27.4) << number;
}

}  // namespace
}  // namespace tandem::job
