#include "actors/main/tokenize_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

struct Tokenized {
  int code = 0;
  std::string out, err;
};

Tokenized tokenize(const TokenizeCommand& command, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out, err;
  const int code = tokenize(command, in, {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

// A model directory with the tokenizer alone.
class TokenizeCommandTest : public ::testing::Test {
 protected:
  TokenizeCommand command(const Words& texts) const { return {.model = folder_, .texts = texts}; }
  TokenizeCommand decoding(const Words& ids) const {
    return {.model = folder_, .texts = ids, .decode = true};
  }
  TokenizeCommand lines(const fs::path& file, bool decode = false) const {
    return {.model = folder_, .jsonl = file.string(), .decode = decode};
  }
  void use(const std::string& tokenizer_json) const {
    model::testing::write_text(folder_ / "tokenizer.json", tokenizer_json);
  }

  const fs::path folder_ = model::testing::scratch_folder("tokenize_command");

 private:
  // '0' has the id 0, …, '=' 11, ' ' 12, <eos> 13 and <pad> 14.
  void SetUp() override { use(model::testing::character_tokenizer("0123456789+= ")); }
};

void expect_refused(const Tokenized& done, int code, const Words& said) {
  EXPECT_EQ(done.code, code) << done.out << done.err;
  for (const std::string& words : said)
    EXPECT_NE(done.err.find(words), std::string::npos) << words << " in: " << done.err;
}

TEST_F(TokenizeCommandTest, PrintsTheIdsOfEachText) {
  EXPECT_EQ(tokenize(command({"12+3", "4 = 4", "<eos>"})).out, "1 2 10 3\n4 12 11 12 4\n13\n");
  EXPECT_EQ(tokenize(command({""})).out, "\n");
  EXPECT_EQ(tokenize(command({}), "12+3").out, "1 2 10 3\n") << "standard input is one text";
  TokenizeCommand as_json = command({"12", "+"});
  as_json.output = cli::OutputForm::kJson;
  const Tokenized done = tokenize(as_json);
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(parse_json(done.out),
            json::parse(R"([{"text": "12", "ids": [1, 2]}, {"text": "+", "ids": [10]}])"));
}

TEST_F(TokenizeCommandTest, PrintsTheTextOfIds) {
  EXPECT_EQ(tokenize(decoding({"1", "2", "10", "3", "13"})).out, "12+3<eos>\n");
  EXPECT_EQ(tokenize(decoding({"[1, 2,10]"})).out, "12+\n");
  EXPECT_EQ(tokenize(decoding({}), "1 2\n10 3\n").out, "12+3\n");
}

TEST_F(TokenizeCommandTest, ATextGetsTheTemplateOfAPrompt) {
  use(*read_file(model::testing::golden_folder() / "tokenizers/family_llama3.json"));
  const std::string begin = tokenize(command({""})).out;
  const std::string plain = tokenize(command({"<|begin_of_text|>"})).out;
  EXPECT_EQ(begin, plain);
  EXPECT_GT(begin.size(), 1u);
  EXPECT_EQ(tokenize(lines("-"), "\"\"\n").out, "[" + begin.substr(0, begin.size() - 1) + "]\n");
}

TEST_F(TokenizeCommandTest, AnswersEachLineOfJsonWithOne) {
  const std::string texts = "\"12\"\n\"3+\\u0034\"\n\"\"\n \"<eos>1\" \r\n";
  const std::string ids = "[1,2]\n[3,10,4]\n[]\n[13,1]\n";
  EXPECT_EQ(tokenize(lines("-"), texts).out, ids);
  EXPECT_EQ(tokenize(lines("-", /*decode=*/true), ids).out, "\"12\"\n\"3+4\"\n\"\"\n\"<eos>1\"\n");
  const fs::path file = folder_ / "texts.jsonl";
  model::testing::write_text(file, "\"12\"\n\"3\"");
  EXPECT_EQ(tokenize(lines(file)).out, "[1,2]\n[3]\n") << "the last line needs no end";
  EXPECT_EQ(tokenize(lines("-"), "").out, "");
}

TEST_F(TokenizeCommandTest, BytesThatAreNoTextAreRefusedAndDecodedAsReplacementCharacters) {
  expect_refused(tokenize(command({"12\xff"})), 64, {"not UTF-8: 0xff at byte 2"});
  expect_refused(tokenize(command({}), "\xed\xa0\x80"), 64, {"not UTF-8: 0xed at byte 0"});
  expect_refused(tokenize(lines("-"), "\"12\xff\"\n"), 64, {"not a JSON string in UTF-8", "-:1"});
  expect_refused(tokenize(lines("-"), "\"\\ud800\"\n"), 64, {"not a JSON string in UTF-8"});
  use(*read_file(model::testing::golden_folder() / "tokenizers/gpt2.json"));
  const Tokenized bytes =
      tokenize(lines("-"), "\"\\ud800\\udf48\"\n");  // U+10348, which no merge covers
  const json ids = parse_json(bytes.out);
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(tokenize(decoding({ids[0].dump()})).out, "\uFFFD\n");
  EXPECT_EQ(tokenize(lines("-", /*decode=*/true), "[" + ids[3].dump() + "]\n").out, "\"\uFFFD\"\n");
}

TEST_F(TokenizeCommandTest, MistakesAreNamedWithTheirPlace) {
  TokenizeCommand nowhere = command({"1"});
  nowhere.model = folder_ / "nowhere";
  expect_refused(tokenize(nowhere), 1, {"No such file", "nowhere/tokenizer.json"});
  expect_refused(tokenize(command({"1x"})), 64, {"cannot encode 'x' at byte 1"});
  for (const char* id : {"15", "-1", "4294967296", "x", "1.5"}) {
    expect_refused(tokenize(decoding({"1", id})), 64, {"is not a token id", "0 to 14", id});
    expect_refused(tokenize(lines("-", /*decode=*/true), "[1]\n[" + std::string(id) + "]\n"), 64,
                   {"-:2", "is not a"});
  }
  EXPECT_EQ(tokenize(decoding({"14"})).out, "<pad>\n");
  const Tokenized second = tokenize(lines("-"), "\"12\"\n{}\n\"3\"\n");
  expect_refused(second, 64, {"-:2", "not a JSON string"});
  EXPECT_EQ(second.out, "[1,2]\n");
  expect_refused(tokenize(lines("-"), "\"1\"\n\n\"2\"\n"), 64, {"-:2"});
  expect_refused(tokenize(lines("-", /*decode=*/true), "\"12\"\n"), 64,
                 {"-:1", "list of token ids"});
  expect_refused(tokenize(lines("-", /*decode=*/true), "[\"1\"]\n"), 64,
                 {"-:1", "is not a token id"});
  expect_refused(tokenize(lines(folder_ / "none.jsonl")), 1, {"No such file", "none.jsonl"});
  expect_refused(tokenize(lines(folder_)), 1,
                 {"it is a folder, not a regular file", folder_.string()});
}

TEST_F(TokenizeCommandTest, AFileOfLinesThatIsNoFileIsNamed) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  expect_refused(tokenize(lines(folder_ / "fifo")), 1,
                 {"it is a FIFO, not a regular file", "fifo"});
  expect_refused(tokenize(lines("/dev/zero")), 1, {"it is a character device"});
  fs::remove(folder_ / "tokenizer.json");
  ASSERT_EQ(::mkfifo((folder_ / "tokenizer.json").c_str(), 0600), 0);
  expect_refused(tokenize(command({"12"})), 1,
                 {"it is a FIFO, not a regular file", "tokenizer.json"});
}

}  // namespace
}  // namespace tandem::app
