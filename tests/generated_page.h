// Documents that code prints are kept in the repository and compared.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tandem {

// Where they differ, the wanted text is left in the tests' temporary folder, to be looked at and
// copied.
inline void expect_page(const std::filesystem::path& page, const std::string& wanted) {
  std::ifstream file(page);
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  if (kept == wanted) return;
  const std::string copy = ::testing::TempDir() + page.filename().string();
  std::ofstream(copy) << wanted;
  ADD_FAILURE() << page << " differs from the output of the code; cp " << copy << " " << page;
}

}  // namespace tandem
