#include "runtime/base/build_id.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class BuildId : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path copy_of_this_program() const {
    const fs::path copy = folder_ / "copy";
    fs::copy_file("/proc/self/exe", copy, fs::copy_options::overwrite_existing);
    return copy;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "build_id_test";
};

TEST_F(BuildId, is_that_of_the_content_whatever_the_files_name_and_times) {
  const std::string ours = own_build_id();
  EXPECT_EQ(ours.size(), 40u) << "the linker writes a SHA-1";
  EXPECT_EQ(build_id_of("/proc/self/exe"), ours);
  const fs::path copy = copy_of_this_program();
  fs::last_write_time(copy, fs::file_time_type::clock::now() - std::chrono::hours(1000));
  EXPECT_EQ(build_id_of(copy), ours);
}

TEST_F(BuildId, is_empty_where_a_file_is_none_or_is_cut_off) {
  EXPECT_EQ(build_id_of(folder_ / "absent"), "");
  EXPECT_EQ(build_id_of(folder_), "");
  const fs::path text = folder_ / "text";
  std::ofstream(text) << "no program, though it is longer than the head of one would have to be";
  EXPECT_EQ(build_id_of(text), "");
  const fs::path copy = copy_of_this_program();
  for (const std::uintmax_t length : {200u, 64u, 10u, 0u}) {
    fs::resize_file(copy, length);
    EXPECT_EQ(build_id_of(copy), "") << length;
  }
}

}  // namespace
}  // namespace tandem
