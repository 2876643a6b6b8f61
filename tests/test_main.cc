#include <iostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace tandem {
namespace {

// Picks the tests of `file`, the end of a path as folder/a_test.cc. False: it has none.
bool run_only(std::string_view file) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::string_view(test.file()).ends_with(file)) {
        filter.append(suite.name()).append(".").append(test.name()).append(":");
      }
    }
  }
  GTEST_FLAG_SET(filter, filter);
  return !filter.empty();
}

// A test in a header would belong to no file, and no ctest entry would run it.
bool each_has_its_file() {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const std::string_view file = suite.GetTestInfo(t)->file();
      if (!file.ends_with(".cc")) {
        std::cerr << "error: " << suite.name() << " is in " << file << "; a test belongs into a .cc\n";
        return false;
      }
    }
  }
  return true;
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kFile = "--file=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kFile)) {
      continue;
    }
    if (!each_has_its_file()) {
      return 1;
    }
    if (!run_only(argument.substr(kFile.size()))) {
      std::cerr << "error: no test of " << argument.substr(kFile.size()) << " is in here\n";
      return 1;
    }
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::run(argc, argv); }
