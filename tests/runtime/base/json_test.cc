#include "runtime/base/json.h"

#include <gtest/gtest.h>

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

TEST(Json, APathNamesAMemberOrAMemberOfAMember) {
  const auto found = [](const char* text, const char* path) {
    const nlohmann::json value = parse_json(text);
    const nlohmann::json* const at = find_path(value, path);
    return at ? dump_json(*at) : "nothing";
  };
  EXPECT_EQ(found(R"({"a": {"b": 1}})", "a.b"), "1");
  EXPECT_EQ(found(R"({"a": {"b": 1}, "a.b": 2})", "a.b"), "2") << "a literal dot wins";
  EXPECT_EQ(found(R"({"a": {"b": 1}, "a.b": null})", "a.b"), "1") << "a null is as absent";
  EXPECT_EQ(found(R"({"a": {"b.c": 1, "b": {"c": 2}}})", "a.b.c"), "1");
  EXPECT_EQ(found(R"({"a": {"b": {"c": 2}}})", "a.b.c"), "2");
  EXPECT_EQ(found(R"({"a": {"b": null}})", "a.b"), "null");
  EXPECT_EQ(found(R"({"a": 3, "b": 4})", "a.b"), "nothing");
  EXPECT_EQ(found(R"({"a": [{"b": 4}]})", "a.b"), "nothing");
  EXPECT_EQ(found(R"({"a.b": {"c": 4}})", "a.b.c"), "nothing");
  EXPECT_EQ(found("[1]", "a"), "nothing");
}

TEST(Json, AValueIsSetWhereItsPathIsFoundAgain) {
  for (const char* text : {R"({"a": {"b": 1}})", R"({"a": {"b": 1}, "a.b": 2})",
                           R"({"a": {"b": 1}, "a.b": null})", R"({"a": 3})", "{}"}) {
    nlohmann::json value = parse_json(text);
    set_path(value, "a.b", "new");
    ASSERT_NE(find_path(value, "a.b"), nullptr) << text;
    EXPECT_EQ(*find_path(value, "a.b"), "new") << text;
  }
}

TEST(Json, WhatLeavesIsUtf8WhateverEntered) {
  const nlohmann::json value{{"error", "half of é: \xc3"}};
  EXPECT_EQ(dump_json(value), "{\"error\":\"half of é: \uFFFD\"}");
  EXPECT_EQ(dump_json(value, 2), "{\n  \"error\": \"half of é: \uFFFD\"\n}");
}

}  // namespace
}  // namespace tandem
