// The shape of the folder: every operator has its three files, and nothing that is compiled for an
// instruction set can be linked into code that runs without it.
//
// Tests kernels/backend.h.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace tandem::kernels {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(TANDEM_SOURCE_DIR) / "kernels";

std::set<std::string> stems(const char* folder, const char* extension) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder / folder)) {
    if (entry.path().extension() == extension) names.insert(entry.path().stem());
  }
  return names;
}

TEST(Sources, EveryOperatorHasContractCheckAndArithmetic) {
  std::set<std::string> arithmetic = stems("cpu", ".cc");
  for (const char* shared : {"attention_chunk", "backend", "table", "tile"}) {
    EXPECT_EQ(arithmetic.erase(shared), 1u) << shared;
  }
  EXPECT_EQ(arithmetic, stems("ops", ".h"));
  EXPECT_EQ(arithmetic, stems("ops", ".cc"));
}

// The words of a file: a list of CMake's, and the rest of it.
std::set<std::string> words_of(const char* name) {
  std::ifstream file(kFolder / name);
  std::string text(std::istreambuf_iterator<char>(file), {});
  for (char& c : text)
    if (c == '(' || c == ')') c = ' ';
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

// The list has every operator, so each is compiled for the CPU and for the module.
TEST(Sources, EveryOperatorIsInTheOneList) {
  const std::set<std::string> listed = words_of("operators.cmake");
  for (const std::string& stem : stems("ops", ".h"))
    EXPECT_TRUE(listed.contains(stem)) << stem << " is not compiled";
}

TEST(Sources, EveryOperatorHasItsCudaArithmetic) {
  std::set<std::string> arithmetic = stems("cuda", ".cu");
  const std::set<std::string> listed = words_of("cuda/sources.cmake");
  for (const std::string part : {"attention_bf16", "attention_bf16_backward"}) {
    EXPECT_EQ(arithmetic.erase(part), 1u) << part;
    EXPECT_TRUE(listed.contains("kernels/cuda/" + part + ".cu")) << part << ".cu is not compiled";
  }
  EXPECT_EQ(arithmetic, stems("ops", ".h"));
}

// A weak symbol (an inline function or template that was not inlined) outside the instruction set's
// own namespace could be the copy that the linker keeps for everybody.
TEST(Sources, ObjectsOfAnInstructionSetShareNoWeakSymbols) {
  int symbols = 0;
  for (const std::string isa : {"avx2", "avx512", "avx512bf16"}) {
    const fs::path objects = fs::path(TANDEM_BINARY).parent_path() /
                             ("kernels/cpu/CMakeFiles/tandem_kernels_" + isa + ".dir");
    const std::string command = "nm -C " + objects.string() + "/*.o";
    FILE* listing = popen(command.c_str(), "r");
    ASSERT_NE(listing, nullptr);
    std::array<char, 4096> line;
    while (std::fgets(line.data(), static_cast<int>(line.size()), listing) != nullptr) {
      const std::string text = line.data();
      if (text.size() < 20) continue;
      ++symbols;
      const char kind = text[17];
      const bool weak = kind == 'W' || kind == 'V' || kind == 'u';
      EXPECT_FALSE(weak && text.find("cpu_" + isa + "::") == std::string::npos)
          << isa << ": " << text;
    }
    EXPECT_EQ(pclose(listing), 0);
  }
  EXPECT_GT(symbols, 100);
}

}  // namespace
}  // namespace tandem::kernels
