#include "actors/job/yaml_fault.h"

#include <gtest/gtest.h>

#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

// The place and the reason of a refused file, as they are shown.
std::string shown(const std::string& yaml) {
  const JobFolder folder;
  const auto job = folder.parse(yaml);
  EXPECT_FALSE(job) << yaml;
  return job ? "" : render(job.error());
}

void expect_place(const std::string& yaml, const std::string& place, const std::string& caret) {
  const std::string text = shown(yaml);
  EXPECT_NE(text.find("--> job.yaml:" + place + "\n"), std::string::npos) << text;
  EXPECT_NE(text.find(caret), std::string::npos) << text;
}

TEST(YamlFault, AnIndentationThatFitsNoSectionIsShownWithItsLine) {
  expect_place("name: a\nmodel:\n  path: x\n    init: random\n", "4:5",
               "  3 |   path: x\n  4 |     init: random\n    |     ^ indented by 4, the line above "
               "by 2\n");
  expect_place("name: a\nmodel:\n  path: x\n init: random\n", "4:2", "^ indented by 1");
  expect_place("name: a\nmodel:\n    path: x\n  init: random\n", "4:3", "^ indented by 2");
  expect_place("name: a\n model:\n  path: x\n", "2:2", "^ indented by 1, the line above by 0");
}

TEST(YamlFault, ALineWithoutAColonIsFoundThoughTheParserStopsBehindIt) {
  expect_place("name a\nseed: 3\n", "1:1", "  1 | name a\n    | ^ no `key: value`");
  expect_place("name: a\nseed 3\n\n# model\nmodel: {}\n", "2:1", "^ no `key: value`");
}

TEST(YamlFault, ABracketThatIsNotClosedIsShownWhereItOpens) {
  expect_place("name: a\ndata: { train_files: [a, '[' }\nseed: 3\n", "2:22",
               "^ this bracket is not closed");
}

TEST(YamlFault, OtherFaultsStandWhereTheParserStopped) {
  expect_place("name: a\nmodel: path: x\n", "2:12", "           ^");
}

TEST(YamlFault, TheExcerptIsSafeForATerminal) {
  const std::string text = shown("name: a\nseed 3 \x1b[2J\nmodel: {}\n");
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  const YamlFault behind{.line = 9, .column = 0, .note = "", .help = ""};
  EXPECT_EQ(yaml_excerpt("a: 1\n", behind), "");
}

}  // namespace
}  // namespace tandem::job
