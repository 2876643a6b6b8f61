// Writes those seeds of tests/fuzz/corpus that are binary: examples of each kind of message,
// encoded by the code that sends them.
#pragma once

#include <filesystem>

namespace tandem::fuzz {

// Adds files to the folders of the targets in `corpus`. A file that is there already is replaced.
void write_seeds(const std::filesystem::path& corpus);

}  // namespace tandem::fuzz
