#include "actors/runs/new_run.h"

#include "runtime/base/file.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

TEST(NewRun, TakesTheFirstNumberThatIsFree) {
  const RunFolder folder;
  const fs::path runs = folder.home / "runs";
  EXPECT_EQ(make_run_directory(runs, "sums", "sums 100").value(), runs / "sums-1");
  EXPECT_EQ(make_run_directory(runs, "sums", "sums 200").value(), runs / "sums-2");
  EXPECT_EQ(read_file(runs / "sums-2/job.yaml").value(), "sums 200");
  EXPECT_TRUE(fs::is_directory(runs / "sums-2/logs"));
}

TEST(NewRun, OfDirectoriesThatAreEmptyOnlyOldOnesWithoutAJobGo) {
  const RunFolder folder;
  const fs::path runs = folder.home / "runs";
  const auto make = [&](const std::string& id, Duration age) {
    if (!fs::exists(runs / id)) fs::create_directory(runs / id);
    fs::last_write_time(runs / id, fs::file_time_type::clock::now() - age);
  };
  ASSERT_TRUE(make_run_directory(runs, "sums", "sums 100"));
  folder.append(runs / "notes.txt", "");
  for (const char* id : {"sums-1", "sums-2", "sums-3", ".deleted", "notes.txt"})
    make(id, 2 * kRunIsBeingMade);
  make("sums-4", Duration::zero());
  fs::create_directory(folder.home / "elsewhere");
  fs::create_directory_symlink(folder.home / "elsewhere", runs / "sums-5");
  fs::last_write_time(folder.home / "elsewhere",
                      fs::file_time_type::clock::now() - 2 * kRunIsBeingMade);
  remove_empty_runs(runs, {"sums-3"});
  EXPECT_FALSE(fs::exists(runs / "sums-2"));
  for (const char* id : {"sums-1", "sums-3", "sums-4", "sums-5", ".deleted", "notes.txt"})
    EXPECT_TRUE(fs::exists(runs / id)) << id;
  EXPECT_EQ(make_run_directory(runs, "sums", "").value(), runs / "sums-2") << "nobody knew it";
}

}  // namespace
}  // namespace tandem::runs
