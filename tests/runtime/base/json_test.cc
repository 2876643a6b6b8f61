#include "runtime/base/json.h"

#include <gtest/gtest.h>

#include "runtime/base/rng.h"

namespace tandem {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string nested_objects(std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += R"({"a[{":)";
  return text + "1" + std::string(depth, '}');
}

TEST(Json, NestingIsBounded) {
  EXPECT_TRUE(parse_json(nested(kNestingMax)).is_array());
  EXPECT_TRUE(parse_json(nested_objects(kNestingMax)).is_object());
  for (const std::string& text :
       {nested(kNestingMax + 1), nested_objects(kNestingMax + 1), nested(400'000),
        std::string(400'000, '['), nested_objects(100'000)}) {
    EXPECT_TRUE(parse_json(text).is_discarded());
    EXPECT_EQ(json_over_limit(text), "nested more than 64 deep");
  }
}

TEST(Json, BracketsWithinStringsAndSideBySideAreNoNesting) {
  const std::string brackets = "\"" + std::string(1000, '[') + R"(\"[[\\")";
  EXPECT_TRUE(parse_json(brackets).is_string());
  std::string list = "[";
  for (int i = 0; i < 1000; ++i) list += "[],{},";
  EXPECT_EQ(parse_json(list + "[]]").size(), 2001u);
  EXPECT_EQ(json_over_limit("{"), std::nullopt) << "not JSON, but within the limits";
  EXPECT_TRUE(parse_json("{").is_discarded());
}

// Checks that scan_object() finds the same fields as a parse of the whole text.
void expect_same_as_parsed(const std::string& text) {
  JsonField fields[] = {{.key = "prompt"}, {.key = "answer"}, {.key = "prompt"}};
  const JsonField::Type type = scan_object(text, fields);
  const nlohmann::json value = parse_json(text);
  ASSERT_EQ(type, value.type()) << text;
  if (!value.is_object()) return;
  for (const JsonField& field : fields) {
    const auto at = value.find(field.key);
    ASSERT_EQ(field.type, at == value.end() ? JsonField::Type::discarded : at->type()) << text;
    ASSERT_EQ(field.text, at != value.end() && at->is_string() ? at->get<std::string>() : "")
        << text;
  }
}

TEST(Json, AScanFindsWhatAParseFinds) {
  for (const std::string text :
       {"", "{}", "[]", "null", "7", "\"prompt\"", R"(["prompt", "a"])", R"({"prompt": "a"})",
        R"({"prompt": "a", "prompt": "b", "answer": null})",
        R"({"prompt": 1, "answer": {"prompt": 2}})",
        R"({"answer": [{"prompt": "inner"}], "prompt": "\u00e9\ud83d\ude00\n\"", "x": 1e5})",
        R"({"prompt": "a"} {"prompt": "b"})", R"({"prompt": "a",})", R"({"prompt": 1e999})",
        R"({"prompt": true, "answer": -1})", R"({"prompt": 1.5, "answer": 18446744073709551615})"})
    expect_same_as_parsed(text);
  expect_same_as_parsed("{\"prompt\": \"\xff\"}");
  for (const std::size_t depth : {kNestingMax, kNestingMax + 1}) {
    expect_same_as_parsed(nested(depth));
    expect_same_as_parsed(nested_objects(depth));
  }
}

TEST(Json, AScanOfDamagedTextFindsWhatAParseFinds) {
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

TEST(Json, WhatLeavesIsUtf8WhateverEntered) {
  const nlohmann::json value{{"error", "half of é: \xc3"}};
  EXPECT_EQ(dump_json(value), "{\"error\":\"half of é: \uFFFD\"}");
  EXPECT_EQ(dump_json(value, 2), "{\n  \"error\": \"half of é: \uFFFD\"\n}");
}

}  // namespace
}  // namespace tandem
