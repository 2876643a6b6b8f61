// Whole files: configurations of each framework, with the job file that each comes to beside it
// (FILE.job.yaml). What the values have to be was read off the frameworks' documents.
//
// Tests actors/translate/translate.h, actors/translate/read_config.h, actors/translate/write_job.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "actors/job/load_job.h"
#include "actors/translate/dialects.h"
#include "actors/translate/read_config.h"
#include "actors/translate/translate.h"
#include "actors/translate/write_job.h"
#include "tests/actors/job/job_folder.h"
#include "tests/generated_page.h"

namespace tandem::translate {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> example_files() {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::recursive_directory_iterator(TANDEM_SOURCE_DIR "/tests/golden/import"))
    if (entry.is_regular_file() && !entry.path().string().ends_with(".job.yaml"))
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Result<Translation> translation_of(const fs::path& file) {
  const auto config = read_config(file);
  if (!config) return config.error();
  const auto dialect = recognise(*config);
  if (!dialect) return dialect.error();
  EXPECT_EQ((*dialect)->name, file.parent_path().filename().string()) << file;
  return translate(*config, **dialect);
}

TEST(TranslateFiles, EachIsRecognisedAndComesToItsJob) {
  ASSERT_GE(example_files().size(), 28u);
  for (const fs::path& file : example_files()) {
    const auto translation = translation_of(file);
    ASSERT_TRUE(translation) << file << "\n" << render(translation.error());
    expect_page(file.string() + ".job.yaml", write_job(*translation));
  }
}

TEST(TranslateFiles, IM1EachJobLoads) {
  const job::JobFolder folder;
  for (const fs::path& file : example_files()) {
    const auto translation = translation_of(file);
    ASSERT_TRUE(translation) << file;
    folder.write("imported.yaml", write_job(*translation));
    const auto job = job::load_job(folder.root() / "imported.yaml", {}, job::Files::kUnchecked);
    EXPECT_TRUE(job) << file << "\n" << render(job.error());
  }
}

// A file that is cut off anywhere becomes a job that loads, or is an error with its place.
TEST(TranslateFiles, EveryBeginningOfAFileIsTakenOrRefused) {
  const job::JobFolder folder;
  for (const fs::path& file : example_files()) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (const std::size_t part : {1, 3, 5, 7}) {
      const std::string name = "cut" + file.extension().string();
      folder.write(name, text.substr(0, text.size() * part / 8));
      const auto config = read_config(folder.root() / name);
      if (!config) {
        EXPECT_FALSE(config.error().where.empty() && config.error().help.empty()) << file << part;
        continue;
      }
      const Dialect& dialect = *find_dialect(file.parent_path().filename().string());
      const auto translation = translate(*config, dialect);
      ASSERT_TRUE(translation) << file << part << render(translation.error());
      folder.write("imported.yaml", write_job(*translation));
      EXPECT_TRUE(job::load_job(folder.root() / "imported.yaml", {}, job::Files::kUnchecked))
          << file << part;
    }
  }
}

}  // namespace
}  // namespace tandem::translate
