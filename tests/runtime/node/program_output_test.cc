// The output of real shells, and their ends of every kind.
#include "runtime/node/program_output.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <filesystem>
#include <string>

namespace tandem::node {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

Result<std::unique_ptr<ProgramOutput>> start(const std::string& script,
                                             Duration silence_max = kPatience) {
  const auto input = open_regular("/proc/self/exe");
  return ProgramOutput::start({.argv = {"sh", "-c", script},
                               .environment = {{"WORD", "hello"}},
                               .silence_max = silence_max},
                              input.value().fd);
}

// All output, or the error at its end, with the output before it in `before`.
Result<std::string> all_of(ProgramOutput& output, std::string* before = nullptr) {
  std::string text;
  for (;;) {
    std::array<char, 1000> piece;
    const auto got = output.read(piece);
    if (before) *before = text;
    if (!got) return got.error();
    if (*got == 0) return text;
    text.append(piece.data(), *got);
  }
}

Error error_of(const std::string& script, Duration silence_max = kPatience) {
  auto output = start(script, silence_max);
  EXPECT_TRUE(output) << script;
  const auto text = all_of(**output);
  EXPECT_FALSE(text) << script;
  return text ? Error{} : text.error();
}

TEST(ProgramOutput, GivesWhatAProgramWritesAndItsOwnInput) {
  auto output = start("echo $WORD; head -c 4 /dev/stdin | tail -c 3; echo; seq 100000");
  ASSERT_TRUE(output) << render(output.error());
  const auto text = all_of(**output);
  ASSERT_TRUE(text) << render(text.error());
  EXPECT_TRUE(text->starts_with("hello\nELF\n1\n2\n"));
  EXPECT_TRUE(text->ends_with("\n100000\n"));
  EXPECT_EQ((*output)->bytes_read(), text->size());
  std::array<char, 8> more;
  EXPECT_EQ((*output)->read(more).value(), 0u) << "the end stays the end";
}

// PO-2
TEST(ProgramOutput, AFailureIsNeverAMereEndPO2) {
  auto output = start("echo row; echo first >&2; echo why >&2; exit 7");
  std::string before;
  const auto text = all_of(*output.value(), &before);
  ASSERT_FALSE(text);
  EXPECT_EQ(before, "row\n");
  EXPECT_EQ(text.error().message, "sh ended with code 7: first / why");
  EXPECT_EQ((*output)->exit_code(), 7);
  EXPECT_EQ(error_of("echo row; kill -9 $$").message, "sh was killed by signal 9 (Killed)");
}

// PO-1
TEST(ProgramOutput, ASilentProgramIsEndedWithItsChildrenPO1) {
  constexpr Duration kShort = std::chrono::milliseconds(50);
  const Error hangs = error_of("echo row; sleep 1000 & wait", kShort);
  EXPECT_EQ(hangs.code, ErrorCode::kTimedOut);
  EXPECT_NE(hangs.message.find("wrote nothing for"), std::string::npos) << hangs.message;
  EXPECT_EQ(error_of("exec >&-; sleep 1000", kShort).code, ErrorCode::kTimedOut)
      << "its output has ended, and it has not";
  // Words on stderr are no output.
  EXPECT_EQ(error_of("while :; do echo busy >&2; done", kShort).code, ErrorCode::kTimedOut);
}

TEST(ProgramOutput, AReaderThatStopsEndsTheProgram) {
  auto output = start("echo $$; while :; do echo more; done");
  std::array<char, 64> piece;
  const auto got = (*output)->read(piece);
  ASSERT_TRUE(got);
  const pid_t pid = std::stoi(std::string(piece.data(), *got));
  EXPECT_EQ(::kill(pid, 0), 0);
  output->reset();
  EXPECT_EQ(::kill(pid, 0), -1) << "it is reaped";
}

TEST(ProgramOutput, AProgramThatCannotStartIsNamed) {
  const auto input = open_regular("/proc/self/exe");
  const auto output = ProgramOutput::start(
      {.argv = {"/nowhere/duckdb"}, .environment = {}, .silence_max = kPatience}, input.value().fd);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().message, "cannot start /nowhere/duckdb: No such file or directory");
}

}  // namespace
}  // namespace tandem::node
