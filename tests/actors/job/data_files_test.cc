// Patterns and folders of data sets become files: those that a user of the package datasets would
// get, or an error that lists what is there.
// Tests actors/job/data_files.h, actors/job/dataset_folder.h, actors/job/dataset_card.h,
// actors/job/file_pattern.h.
#include "actors/job/data_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "actors/job/dataset_folder.h"
#include "actors/job/file_pattern.h"
#include "actors/job/print_job.h"
#include "runtime/base/rng.h"
#include "tests/actors/job/job_folder.h"
#include "tests/seeds.h"

namespace tandem::job {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class DataFiles : public testing::Test {
 protected:
  void make(const Names& files) const {
    for (const std::string& file : files) folder_.write("set/" + file, "{}\n");
  }
  void card(const std::string& yaml) const {
    folder_.write("set/README.md", "---\n" + yaml + "---\n# A data set\n");
  }

  // The files of an entry, as paths below the folder of the data set; or the error as one name.
  Names of(Split split, const std::string& entry = "") const {
    const fs::path root = folder_.root() / "set";
    const auto files = data_files(root / entry, split);
    if (!files) return {"error: " + files.error().message};
    Names names;
    for (const fs::path& file : *files) names.push_back(file.lexically_relative(root));
    return names;
  }
  Names train(const std::string& entry = "") const { return of(Split::kTrain, entry); }
  Names held_out() const { return of(Split::kHeldOut); }

  const JobFolder folder_;
};

TEST_F(DataFiles, APatternIsItsFilesInTheOrderOfTheirNames) {
  make(
      {"b.jsonl", "a.jsonl", "a.csv", ".c.jsonl", "deep/er/a.jsonl", "deep/b.jsonl", "x[1].jsonl"});
  EXPECT_EQ(train("*.jsonl"), (Names{"a.jsonl", "b.jsonl", "x[1].jsonl"}));
  EXPECT_EQ(train("[ab].*"), (Names{"a.csv", "a.jsonl", "b.jsonl"}));
  EXPECT_EQ(train("x[1].jsonl"), Names{"x[1].jsonl"}) << "a file of that name is that file";
  EXPECT_EQ(train("**/a.jsonl"), (Names{"a.jsonl", "deep/er/a.jsonl"}));
  EXPECT_EQ(train("d*/?.jsonl"), Names{"deep/b.jsonl"});
  EXPECT_EQ(train("nothing-*.jsonl"),
            Names{"error: no file matches " + (folder_.root() / "set/nothing-*.jsonl").string()});
  EXPECT_EQ(train("nothing.jsonl"), Names{"nothing.jsonl"}) << "whoever opens it says so";
}

TEST_F(DataFiles, FoldersOfTheHubHaveTheirSplits) {
  make({"data/train-00001-of-00002.parquet", "data/train-00000-of-00002.parquet",
        "data/test-00000-of-00001-a09b74b3ef9c3b56.parquet", "dataset_infos.json", ".gitattributes",
        "LICENSE", "README.md", ".cache/huggingface/train.jsonl"});
  EXPECT_EQ(train(),
            (Names{"data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"}));
  EXPECT_EQ(held_out(), Names{"data/test-00000-of-00001-a09b74b3ef9c3b56.parquet"});
}

TEST_F(DataFiles, AWordInAFolderNamesTheSplitToo) {
  make({"train/part-0.jsonl.gz", "train/part-1.jsonl.gz", "dev/all.csv"});
  EXPECT_EQ(train(), (Names{"train/part-0.jsonl.gz", "train/part-1.jsonl.gz"}));
  EXPECT_EQ(held_out(), Names{"dev/all.csv"});
}

TEST_F(DataFiles, FilesWithoutAWordAreTrain) {
  make({"questions.jsonl"});
  EXPECT_EQ(train(), Names{"questions.jsonl"});
  EXPECT_EQ(held_out(),
            Names{"error: the folder has no files of a validation or test split: questions.jsonl"});
}

TEST_F(DataFiles, WhatLeavesAChoiceIsAnErrorThatListsWhatIsThere) {
  make({"train.parquet", "train.jsonl", "test.jsonl", "validation.jsonl"});
  EXPECT_EQ(train(),
            Names{"error: the folder has several groups of files for `train`: train.jsonl, "
                  "train.parquet"});
  EXPECT_EQ(held_out(), Names{"error: the folder has a validation split and a test split: "
                              "test.jsonl, train.jsonl, train.parquet, validation.jsonl"});
  folder_.write("set/main/train.jsonl", "{}");
  EXPECT_NE(train()[0].find("main/train.jsonl, train.jsonl"), std::string::npos);
  EXPECT_EQ(train("main"), Names{"main/train.jsonl"});
}

TEST_F(DataFiles, AFolderWithoutDataSaysSo) {
  make({"README.md", "config.json"});
  EXPECT_EQ(train(), Names{"error: the folder has no data files: .parquet, .jsonl, .json, .csv or "
                           ".tsv"});
  make({"data-00000-of-00001.arrow", "state.json"});
  EXPECT_NE(train()[0].find("as datasets.save_to_disk writes them"), std::string::npos);
}

// A DatasetDict has no to_parquet(), and only its splits have.
TEST_F(DataFiles, ArrowFilesAreAnErrorWithACommandForTheirKind) {
  make({"dict/dict.md", "dict/dataset_dict.json", "dict/train/data-00000-of-00001.arrow",
        "dict/train/state.json", "one/data-00000-of-00001.arrow", "one/state.json",
        "cache/gsm8k-train.arrow"});
  const auto help = [this](const std::string& entry) {
    const auto files = data_files(folder_.root() / "set" / entry, Split::kTrain);
    return files ? "" : files.error().help;
  };
  const std::string root = folder_.root() / "set";
  EXPECT_HAS(help("dict"),
             "for name, part in datasets.load_from_disk('" + root + "/dict').items()");
  EXPECT_EQ(help("dict").find("').to_parquet("), std::string::npos) << help("dict");
  for (const char* entry : {"one", "dict/train"})
    EXPECT_HAS(help(entry), "load_from_disk('" + root + "/" + entry + "').to_parquet(");
  EXPECT_HAS(help("cache"), "Dataset.from_file('" + root + "/cache/gsm8k-train.arrow')");
}

TEST_F(DataFiles, AMissingShardIsNamed) {
  make({"data/train-00000-of-00003.parquet", "data/train-00002-of-00003.parquet"});
  EXPECT_EQ(train(),
            Names{"error: shard 1 of 3 is missing beside data/train-00000-of-00003.parquet"});
  EXPECT_EQ(train("data/train-0000[02]-of-*").size(), 2u) << "a pattern means what it matches";
}

TEST_F(DataFiles, TheCardNamesTheFiles) {
  make({"main/train-0.jsonl", "main/test-0.jsonl", "socratic/train-0.jsonl", "odd.jsonl"});
  const std::string main =
      "license: mit\nconfigs:\n- config_name: main\n  data_files:\n  - split: train\n"
      "    path: main/train-*\n  - split: test\n    path: [main/test-*]\n";
  card(main);
  EXPECT_EQ(train(), Names{"main/train-0.jsonl"});
  EXPECT_EQ(held_out(), Names{"main/test-0.jsonl"});
  const std::string socratic =
      "- config_name: socratic\n  data_files:\n  - split: train\n"
      "    path: socratic/train-*\n";
  card(main + socratic);
  EXPECT_EQ(train(), Names{"error: the README.md has 2 configs: main/test-*, main/train-*, "
                           "socratic/train-*"});
  card(main + socratic + "  default: true\n");
  EXPECT_EQ(train(), Names{"socratic/train-0.jsonl"});
  card("configs:\n- config_name: default\n  data_files: odd.jsonl\n");
  EXPECT_EQ(train(), Names{"odd.jsonl"});
  card("configs:\n- config_name: default\n  data_dir: main\n  data_files: {train: 'train*'}\n");
  EXPECT_EQ(train(), Names{"main/train-0.jsonl"});
  card(
      "configs:\n- config_name: a\n  data_files:\n  - {split: train_sft, path: odd.jsonl}\n"
      "  - {split: train, path: main/train-0.jsonl}\n");
  EXPECT_EQ(train(), Names{"main/train-0.jsonl"}) << "the word itself wins";
}

TEST_F(DataFiles, ACardIsSomebodyElsesText) {
  make({"train.jsonl"});
  folder_.write("secret.jsonl", "{}");
  for (const char* yaml :
       {"configs: 3\n", "configs:\n- 1\n- data_files: {}\n", "]: not yaml\n", "a: &a [*a]\n",
        "configs:\n- data_files:\n  - {split: [], path: 7}\n", ""}) {
    card(yaml);
    EXPECT_EQ(train(), Names{"train.jsonl"}) << yaml;
  }
  card("configs:\n- data_files: ../secret.jsonl\n");
  EXPECT_EQ(train()[0],
            "error: README.md names no files in this folder for `train`: "
            "../secret.jsonl");
  card("configs:\n- data_files: gone-*.jsonl\n");
  EXPECT_EQ(train()[0], "error: no file matches gone-*.jsonl, which README.md names");
  card(std::string(100'000, '['));
  EXPECT_EQ(train(), Names{"train.jsonl"});
}

TEST(SplitIn, FindsTheFirstWord) {
  EXPECT_EQ(split_in("train-00000-of-00001.parquet"), "train");
  EXPECT_EQ(split_in("gsm8k_TEST.jsonl"), "test");
  EXPECT_EQ(split_in("my.dev.csv"), "validation");
  EXPECT_EQ(split_in("val2.csv"), "validation");
  EXPECT_EQ(split_in("training_and_test.jsonl"), "train");
  for (const char* other : {"constraints.jsonl", "latest.jsonl", "trains.csv", "", "1"})
    EXPECT_FALSE(split_in(other)) << other;
}

// Whatever files a folder has, its train split is some of them, each once, in order.
TEST_F(DataFiles, ASplitIsAPartOfTheFolder) {
  const Names parts{"train", "test", "val", "a", "0", "-", "_", ".", "00000-of-00001", "/", "x/"};
  for_seeds(60, [&](std::uint64_t seed) {
    Rng rng(seed);
    fs::remove_all(folder_.root() / "set");
    Names made;
    for (std::uint64_t n = 1 + rng.below(6); n > 0; --n) {
      std::string name = "f";
      for (std::uint64_t k = rng.below(5); k > 0; --k) name += parts[rng.below(parts.size())];
      make({made.emplace_back(name + ".jsonl")});
    }
    for (const Split split : {Split::kTrain, Split::kHeldOut}) {
      const Names files = of(split);
      if (files[0].starts_with("error: ")) continue;
      EXPECT_TRUE(std::ranges::is_sorted(files));
      EXPECT_EQ(std::ranges::adjacent_find(files), files.end());
      for (const std::string& file : files)
        EXPECT_TRUE(std::ranges::any_of(made, [&](const std::string& one) {
          return fs::path(one).lexically_normal() == fs::path(file);
        })) << file;
    }
  });
}

// The files are settled when the job is read, and are the same when its text is read again.
TEST_F(DataFiles, TheEffectiveJobListsTheFiles) {
  make({"train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl", "test.jsonl"});
  const auto job = folder_.parse(
      "name: a\nmodel: { path: models/tiny }\n"
      "data: { train_files: [set], val_files: [set, 'data/v*.jsonl'] }\n");
  ASSERT_TRUE(job) << render(job.error());
  const fs::path set = folder_.root() / "set";
  const std::vector<fs::path> files{set / "train-00000-of-00002.jsonl",
                                    set / "train-00001-of-00002.jsonl"};
  EXPECT_EQ(job->spec.data.train_files, files);
  EXPECT_EQ(job->spec.data.val_files,
            (std::vector<fs::path>{set / "test.jsonl", folder_.root() / "data/val.jsonl"}));
  make({"train-00002-of-00002.jsonl"});
  const auto again = parse_job_of_run(print_job(job->spec), folder_.root());
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(again->data.train_files, files);
  const auto wrong = folder_.parse(folder_.minimal(), {"data.train_files=[none-*.jsonl]"});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("`data.train_files`: no file matches"), std::string::npos);
  EXPECT_EQ(wrong.error().where, "--set data.train_files=[none-*.jsonl]");
}

}  // namespace
}  // namespace tandem::job
