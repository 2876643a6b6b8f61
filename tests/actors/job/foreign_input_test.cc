#include "actors/job/foreign_input.h"

#include <gtest/gtest.h>

#include "actors/job/dataset.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

using std::string_literals::operator""s;

std::string said_of(const JobFolder& folder, const std::string& head) {
  folder.write("d.jsonl", head);
  const auto records = load_dataset({folder.root() / "d.jsonl"}, {}, RecordNeeds::kPrompt);
  EXPECT_FALSE(records) << head;
  if (records) return "";
  EXPECT_EQ(exit_code(records.error().code), 64);
  EXPECT_EQ(records.error().where, folder.root() / "d.jsonl");
  return records.error().message + " | " + records.error().help;
}

TEST(ForeignInput, ADataFileOfAnotherFormatIsNamed) {
  const JobFolder folder;
  const auto expect = [&](const std::string& head, const std::string& name) {
    const std::string said = said_of(folder, head);
    EXPECT_NE(said.find(name), std::string::npos) << said;
  };
  expect("PAR1\x15\x04 and more PAR1", "a parquet file");
  expect("PAR1 and more", "read_parquet('" + (folder.root() / "d.jsonl").string() + "')");
  expect("\x10\0\0\0\0\0\0\0{\"weight\": {}}"s, "a safetensors file");
  expect("\x1f\x8b\x08 packed", "gunzip --keep");
  expect("PK\x03\x04 packed", "a zip archive");
  expect(
      "\x7f"
      "ELF\x02\x01",
      "a program (ELF)");
  expect("{\"prompt\": \"a\"}\n\0\0"s, "a binary file");
  expect("\n [\n  {\"prompt\": \"a\"}]", "one JSON array");
}

TEST(ForeignInput, CsvIsKnownByItsNameAndHasACommandThatConvertsIt) {
  const JobFolder folder;
  for (const char* name : {"d.csv", "d.tsv"}) {
    folder.write(name, "prompt,answer\n1+1=,2\n");
    const auto error = foreign_data_error(folder.root() / name);
    ASSERT_TRUE(error) << name;
    EXPECT_NE(error->help.find("csv.DictReader(open('" + (folder.root() / name).string()),
              std::string::npos)
        << error->help;
    folder.write(name, "{\"prompt\": \"a\"}\n");
    EXPECT_FALSE(foreign_data_error(folder.root() / name)) << "JSON lines under any name";
  }
}

TEST(ForeignInput, TextIsLeftToTheReader) {
  const JobFolder folder;
  for (const char* text : {"{\"prompt\": \"PAR1\"}\n", "", "\n", "not JSON"}) {
    folder.write("d.jsonl", text);
    EXPECT_FALSE(foreign_data_error(folder.root() / "d.jsonl")) << text;
  }
  EXPECT_FALSE(foreign_data_error(folder.root() / "nowhere"));
}

TEST(ForeignInput, AHubIdIsKnownWhereNoSuchFolderIs) {
  const JobFolder folder;
  const auto job = folder.parse(folder.minimal(), {"model.path=Qwen/Qwen3-0.6B"});
  ASSERT_FALSE(job);
  EXPECT_EQ(exit_code(job.error().code), 1);
  EXPECT_EQ(job.error().where, "--set model.path=Qwen/Qwen3-0.6B");
  EXPECT_NE(job.error().message.find("`Qwen/Qwen3-0.6B` looks like"), std::string::npos)
      << job.error().message;
  EXPECT_NE(job.error().help.find("hf download Qwen/Qwen3-0.6B"), std::string::npos);
  const std::filesystem::path root = folder.root();
  EXPECT_TRUE(hub_id_error(root / "Qwen/Qwen3-0.6B", root, ""));
  for (const char* other : {"models/missing", "missing", "a/b/c", "../x/y", ".cache/y"})
    EXPECT_FALSE(hub_id_error(root / other, root, "")) << other;
}

}  // namespace
}  // namespace tandem::job
