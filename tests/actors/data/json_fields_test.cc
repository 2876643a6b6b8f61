#include "actors/data/json_fields.h"

#include <gtest/gtest.h>

#include "runtime/base/rng.h"
#include "runtime/base/text.h"

namespace tandem::data {
namespace {

// Checks that scan_object() finds the same fields as a parse of the whole text.
void expect_same_as_parsed(const std::string& text) {
  JsonField fields[] = {{.key = "prompt"}, {.key = "answer"},   {.key = "prompt"},
                        {.key = "a.b"},    {.key = "x.answer"}, {.key = "a.b.a"}};
  const JsonField::Type type = scan_object(text, fields);
  const nlohmann::json value = parse_json(text);
  ASSERT_EQ(type, value.type()) << text;
  if (!value.is_object()) return;
  for (const JsonField& field : fields) {
    const nlohmann::json* const at = find_path(value, field.key);
    const JsonField::Type found = at ? at->type() : JsonField::Type::discarded;
    const bool minus_zero = found == JsonField::Type::number_integer && *at == 0;
    ASSERT_EQ(field.type, minus_zero ? JsonField::Type::number_unsigned : found)
        << field.key << text;
    ASSERT_EQ(field.text, at && at->is_string() ? at->get<std::string>() : "") << field.key << text;
  }
}

TEST(JsonFields, AScanFindsWhatAParseFinds) {
  for (const std::string text :
       {"", "{}", "[]", "null", "7", "\"prompt\"", R"(["prompt", "a"])", R"({"prompt": "a"})",
        R"({"prompt": "a", "prompt": "b", "answer": null})",
        R"({"prompt": 1, "answer": {"prompt": 2}})",
        R"({"answer": [{"prompt": "inner"}], "prompt": "\u00e9\ud83d\ude00\n\"", "x": 1e5})",
        R"({"prompt": "a"} {"prompt": "b"})", R"({"prompt": "a",})", R"({"prompt": 1e999})",
        R"({"prompt": true, "answer": -1})", R"({"prompt": 1.5, "answer": 18446744073709551615})"})
    expect_same_as_parsed(text);
  expect_same_as_parsed("{\"prompt\": \"\xff\"}");
  expect_same_as_parsed("\xef\xbb\xbf{\"prompt\": \"a\"}");
  expect_same_as_parsed(R"({"prompt": ")" + std::string(2 << 20, 'x') + "\"}");
  for (const char* number : {"0", "-0", "-0.0", "01", "1.", "1e-400", "-9223372036854775808",
                             "-9223372036854775809", "18446744073709551616", "1e308", "1e309"})
    expect_same_as_parsed(R"({"prompt": )" + std::string(number) + "}");
  for (const char* escape : {"\\ud800", "\\udc00", "\\udc00\\ud800", "\\ud800\\u0041", "\\ud800x",
                             "\\u0000", "\\ud83d\\ude00", "\\uffff", "\\x", "\\u00g0"})
    expect_same_as_parsed(R"({"prompt": ")" + std::string(escape) + "\"}");
  for (const std::size_t depth : {kNestingMax, kNestingMax + 1}) {
    expect_same_as_parsed(std::string(depth, '[') + std::string(depth, ']'));
    std::string objects = "1";
    for (std::size_t i = 0; i < depth; ++i) objects = R"({"a[{": )" + objects + "}";
    expect_same_as_parsed(objects);
  }
}

TEST(JsonFields, AScanOfDamagedTextFindsWhatAParseFinds) {
  const std::string whole =
      R"({"prompt": "1+\u0031\n=", "x": {"answer": [1, -2.5e3, true, null]}, "answer": "é", )"
      R"("prompt": "last"})";
  constexpr std::string_view kBytes = "{}[]\",:\\u0e+-. \n\x01\xc3\xff";
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::string text = whole;
    for (std::uint64_t changes = 1 + rng.below(2); changes > 0; --changes) {
      const std::size_t at = rng.below(text.size());
      const char byte = kBytes[rng.below(kBytes.size())];
      if (const auto what = rng.below(3); what == 0)
        text[at] = byte;
      else if (what == 1)
        text.insert(at, 1, byte);
      else
        text.erase(at, 1);
    }
    expect_same_as_parsed(text);
    if (HasFatalFailure()) return;
  }
}

// An object of few names, so that members often have the same name, or that of a path.
std::string random_object(Rng& rng, int depth) {
  static constexpr std::string_view kNames[] = {"a",      "b", "a.b",      "b.a",   "a.b.a",
                                                "prompt", "x", "x.answer", "answer"};
  std::string text = "{";
  for (std::uint64_t members = rng.below(5); members > 0; --members) {
    const std::uint64_t what = rng.below(6);
    const std::string value = what < 3 && depth > 0 ? random_object(rng, depth - 1)
                              : what == 3           ? "[" + random_object(rng, 0) + "]"
                              : what == 4           ? "null"
                                                    : '"' + std::to_string(rng.below(9)) + '"';
    text += (text.size() > 1 ? ", \"" : "\"") + std::string(kNames[rng.below(std::size(kNames))]) +
            "\": " + value;
  }
  return text + "}";
}

TEST(JsonFields, AScanFollowsPathsAsAParseDoes) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    expect_same_as_parsed(random_object(rng, 4));
    if (HasFatalFailure()) return;
  }
}

TEST(JsonFields, TextIsUtf8WhereValidUtf8ChangesNothing) {
  // Bytes at the bounds of what leads and follows in a sequence.
  constexpr std::string_view kBytes =
      "a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xff";
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    Rng rng(seed);
    std::string text;
    for (std::uint64_t n = rng.below(6); n > 0; --n) text += kBytes[rng.below(kBytes.size())];
    ASSERT_EQ(is_utf8(text), valid_utf8(text) == text) << seed;
  }
}

}  // namespace
}  // namespace tandem::data
