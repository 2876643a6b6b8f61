#include "actors/main/host_build.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

TEST(HostBuild, TheFolderLeadsToThisProgramAndNamesItsDigest) {
  ::unsetenv("TANDEM_PROGRAM");
  std::string made = (fs::temp_directory_path() / "tandem-build-XXXXXX").string();
  const fs::path root = mkdtemp(made.data());
  const auto build = stage_build(root / "build");
  ASSERT_TRUE(build) << build.error().message;
  EXPECT_EQ(build->program.entry, "tandem");
  EXPECT_EQ(build->program.program, fs::canonical("/proc/self/exe"));
  EXPECT_EQ(build->program.file, build->program.program);
  const auto executable = read_file("/proc/self/exe", std::uint64_t{2} << 30);
  ASSERT_TRUE(executable);
  EXPECT_EQ(build->program.sha256, sha256_hex(std::as_bytes(std::span(*executable))));
  EXPECT_TRUE(fs::equivalent(root / "build/tandem", "/proc/self/exe"));
  const auto sums = read_file(root / "build/SHA256SUMS");
  ASSERT_TRUE(sums);
  EXPECT_NE(sums->find(build->program.sha256 + "  tandem\n"), std::string::npos) << *sums;
  EXPECT_TRUE(stage_build(root / "build")) << "it is made anew";
  fs::remove_all(root);
}

// A bundle's program is a script, the same in each version: its executable tells builds apart.
TEST(HostBuild, ABundleIsItsProgramWithItsLibraries) {
  std::string made = (fs::temp_directory_path() / "tandem-bundle-XXXXXX").string();
  const fs::path root = mkdtemp(made.data());
  for (const char* const name : {"bin/tandem", "libexec/run", "libexec/tandem", "lib/libz.so.1",
                                 "libexec/tests/some_test"}) {
    fs::create_directories((root / "bundle" / name).parent_path());
    ASSERT_TRUE(write_file_atomic(root / "bundle" / name, name));
  }
  ::setenv("TANDEM_PROGRAM", (root / "bundle/bin/tandem").c_str(), 1);
  const auto build = stage_build(root / "build");
  ::unsetenv("TANDEM_PROGRAM");
  ASSERT_TRUE(build) << build.error().message;
  EXPECT_EQ(build->program.entry, "bin/tandem");
  const std::string content = "libexec/tandem";
  EXPECT_EQ(build->program.sha256, sha256_hex(std::as_bytes(std::span(content))));
  EXPECT_EQ(build->program.file, (root / "bundle/libexec/tandem").string());
  EXPECT_TRUE(fs::exists(root / "build/lib/libz.so.1"));
  EXPECT_FALSE(fs::exists(root / "build/libexec/tests")) << "hosts need no tests";
  fs::remove_all(root);
}

}  // namespace
}  // namespace tandem::app
