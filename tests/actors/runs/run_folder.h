// A TANDEM_HOME of a test's own, with runs that the test writes file by file.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tandem::runs {

class RunFolder {
 public:
  RunFolder() {
    std::string pattern = testing::TempDir() + "tandem_runs.XXXXXX";
    home = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(home / "runs");
  }
  ~RunFolder() { std::filesystem::remove_all(home); }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::filesystem::path run(const std::string& id) const {
    const std::filesystem::path path = home / "runs" / id;
    std::filesystem::create_directories(path / "logs");
    return path;
  }
  static void append(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  }
  static void replace(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc | std::ios::binary) << text;
  }

  std::filesystem::path home;
};

}  // namespace tandem::runs
