// main() of the tests of a folder. `--file=folder/a_test.cc` runs the tests of that file alone, so
// that ctest has an entry for each file; without it all run, as by gtest's own main().
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <string>
#include <string_view>

namespace tandem {
namespace {

void for_each_test(const std::function<void(const testing::TestInfo&)>& take) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) take(*suite.GetTestInfo(t));
  }
}

// Picks the tests of `file`, the end of a path. The error; empty: there is none.
std::string pick(std::string_view file) {
  std::string filter, error;
  for_each_test([&](const testing::TestInfo& test) {
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    const std::string_view its_file = test.file();
    // It would belong to no entry of ctest, and so would not run.
    if (!its_file.ends_with(".cc")) error = name + " is in a header, " + std::string(its_file);
    if (its_file.ends_with(file)) filter += name + ":";
  });
  if (filter.empty()) error = "no test of " + std::string(file) + " is in this executable";
  GTEST_FLAG_SET(filter, filter);
  return error;
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kFile = "--file=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kFile)) continue;
    const std::string error = pick(argument.substr(kFile.size()));
    if (error.empty()) continue;
    std::cerr << "error: " << error << "\n";
    return 1;
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::run(argc, argv); }
