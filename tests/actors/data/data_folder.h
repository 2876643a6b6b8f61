// A folder of data files, removed at the end of the test, and what a source of records gives.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "actors/data/record_source.h"

namespace tandem::data {

class DataFolder {
 public:
  DataFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem-data-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~DataFolder() { std::filesystem::remove_all(root_); }
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
    return root_ / name;
  }

 private:
  std::filesystem::path root_;
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Given {
  std::vector<std::string> rows, places;
  std::optional<Error> error;  // the end, where it is none
};

inline Given all_of(Result<std::unique_ptr<RecordSource>> source) {
  Given given;
  if (!source) {
    given.error = source.error();
    return given;
  }
  for (;;) {
    const auto row = (*source)->next();
    if (!row) given.error = row.error();
    if (!row || !*row) return given;
    given.rows.emplace_back(**row);
    given.places.emplace_back((*source)->place());
  }
}

}  // namespace tandem::data
