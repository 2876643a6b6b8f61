// Gives each file of tests/fuzz/corpus once to the target whose folder it is in: what was found
// stays mended, in builds without libFuzzer too. A target without a file, and a folder without a
// target, are faults of the corpus. With --seeds it writes the binary seeds of the corpus instead.
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/seeds.h"

namespace {

int complain(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return 1;
}

int run(const std::filesystem::path& corpus) {
  namespace fs = std::filesystem;
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(corpus))
    folders.insert(entry.path().filename().string());
  for (const auto& target : tandem::fuzz::targets()) {
    const std::string name(target.name);
    if (folders.erase(name) == 0) return complain(name + " has no corpus");
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(corpus / name)) {
      const auto input = tandem::read_file(entry.path());
      if (!input) return complain(tandem::render(input.error()));
      // The last line says which input ended the process.
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);
      target.run(*input);
      ++files;
    }
    if (files == 0) return complain(name + " has an empty corpus");
  }
  if (!folders.empty()) return complain(*folders.begin() + " is no target");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  tandem::log::mute();
  const bool writes = count == 3 && std::string(arguments[1]) == "--seeds";
  if (!writes && count != 2) return complain("usage: fuzz_corpus [--seeds] CORPUS");
  if (!writes) return run(arguments[1]);
  tandem::fuzz::write_seeds(arguments[2]);
  return 0;
}
