#include "runtime/base/text.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"
#include "runtime/base/rng.h"

namespace tandem {
namespace {

TEST(Text, WhatIsNotUtf8IsReplaced) {
  EXPECT_EQ(valid_utf8("plain, é, 日, 🙂"), "plain, é, 日, 🙂");
  EXPECT_EQ(valid_utf8("a\xffz"), "a\uFFFDz");
  EXPECT_EQ(valid_utf8("cut \xe6\x97"), "cut \uFFFD\uFFFD");
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "above U+10FFFF";
}

TEST(Text, CutsBetweenCharacters) {
  EXPECT_EQ(cut_utf8("日本", 6), "日本");
  EXPECT_EQ(cut_utf8("日本", 5), "日…");
  EXPECT_EQ(cut_utf8("日本", 2), "…");
  EXPECT_EQ(cut_utf8("a\xff", 4), "a\uFFFD");
  EXPECT_EQ(cut_utf8("a\xff", 3), "a…") << "replaced bytes count as they leave";
}

TEST(Text, NothingSteersATerminal) {
  const std::string foreign = "a\x1b[31mred\r\n\tb\x7f\u009b2J\u202egpj\u2066\u2028z\xff é 🙂";
  EXPECT_EQ(visible(foreign, Lines::kOne),
            "a\\u001b[31mred\\r\\n\\tb\\u007f\\u009b2J\\u202egpj\\u2066\\u2028z\uFFFD é 🙂");
  EXPECT_EQ(visible(foreign, Lines::kMany),
            "a\\u001b[31mred\\r\n\tb\\u007f\\u009b2J\\u202egpj\\u2066\\u2028z\uFFFD é 🙂");
}

TEST(Text, JsonMadeVisibleIsTheSameValue) {
  const nlohmann::json value{{"a\u202e", "\x1b[2J \u009b \u2069 é\n"}};
  const std::string shown = visible(dump_json(value, 2), Lines::kMany);
  EXPECT_EQ(shown.find("\u202e"), std::string::npos);
  EXPECT_EQ(parse_json(shown), value);
}

// Any bytes are valid text afterwards, and valid text is left alone.
TEST(TextProperty, RandomBytesBecomeValid) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    std::string bytes;
    for (std::uint64_t n = rng.below(40); n > 0; --n)
      bytes += static_cast<char>(rng.below(2) == 0 ? 0x80 + rng.below(128) : rng.below(256));
    const std::string valid = valid_utf8(bytes);
    EXPECT_EQ(valid_utf8(valid), valid);
    EXPECT_EQ(parse_json(nlohmann::json(valid).dump()), nlohmann::json(valid));
    const std::size_t bytes_max = rng.below(40);
    const std::string cut = cut_utf8(bytes, bytes_max);
    EXPECT_EQ(valid_utf8(cut), cut);
    EXPECT_LE(cut.size(), bytes_max + std::string_view("…").size());
    EXPECT_TRUE(cut == valid || valid.starts_with(cut.substr(0, cut.size() - 3))) << cut;
    EXPECT_EQ(visible(visible(bytes, Lines::kOne), Lines::kOne), visible(bytes, Lines::kOne));
  }
}

TEST(PercentEncoded, KeepsLettersDigitsAndFourMarks) {
  EXPECT_EQ(percent_encoded("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encoded("a b/\xC3\xB6?%"), "a%20b%2F%C3%B6%3F%25");
}

}  // namespace
}  // namespace tandem
