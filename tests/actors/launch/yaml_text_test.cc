#include "actors/launch/yaml_text.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

namespace tandem::launch {
namespace {

TEST(YamlText, AValueBeginsEachOfItsLinesWhereItsGapIs) {
  EXPECT_EQ(filled("a:\n  - @x@\n", {{"x", std::string("b: 1\nc: 2")}}), "a:\n  - b: 1\n    c: 2");
}

TEST(YamlText, LinesWithoutTextAreLeftOut) {
  EXPECT_EQ(filled("\na: 1\n  @x@\n\nb: 2\n", {{"x", std::string()}}), "a: 1\nb: 2");
  EXPECT_EQ(filled("a: \"@x@\"\n", {{"x", std::string()}}), "a: \"\"");
}

TEST(YamlText, SeveralGapsOfALineAndValuesThatLookLikeGaps) {
  const GapValues values{{"x", std::string("@y@")}, {"y", std::string("z")}};
  EXPECT_EQ(filled("a: @x@-@y@:1\n", values), "a: @y@-z:1");
  EXPECT_DEATH(filled("a: @w@\n", values), "");
  EXPECT_DEATH(filled("a: @x\n", values), "");
}

TEST(YamlText, TextsReadBackAsTheyAre) {
  for (const std::string text :
       {"", "on", "1", "a: b # c", "it's \"it\"", "back\\slash", "two\nlines\n", "\ttab\r",
        "\xc3\xa9 \xe2\x80\xa8 \xc2\x85 \xef\xbb\xbf \xf0\x9f\x98\x80", "\x01\x7f", " before",
        "after\n\n", "a\n\n  b: |\nc\n", "---\nkey: @x@\n", "no end"}) {
    EXPECT_EQ(YAML::Load("a: " + quoted(text))["a"].Scalar(), text);
    EXPECT_EQ(YAML::Load("a: " + block(text) + "\nb: 1")["a"].Scalar(), text) << block(text);
    EXPECT_EQ(quoted(text).find('\n'), std::string::npos);
  }
}

TEST(YamlText, LinesOfAsciiStayReadable) {
  EXPECT_EQ(block("a: 1\n\nb: \"2\"\n"), "|\n  a: 1\n\n  b: \"2\"");
  EXPECT_EQ(block("\xc3\xa9\n"), "\"\xc3\xa9\\u000a\"");
}

}  // namespace
}  // namespace tandem::launch
