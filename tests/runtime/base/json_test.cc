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
  JsonField fields[] = {{.key = "prompt"}, {.key = "answer"},   {.key = "prompt"},
                        {.key = "a.b"},    {.key = "x.answer"}, {.key = "a.b.a"}};
  const JsonField::Type type = scan_object(text, fields);
  const nlohmann::json value = parse_json(text);
  ASSERT_EQ(type, value.type()) << text;
  if (!value.is_object()) return;
  for (const JsonField& field : fields) {
    const nlohmann::json* const at = find_path(value, field.key);
    ASSERT_EQ(field.type, at ? at->type() : JsonField::Type::discarded) << field.key << text;
    ASSERT_EQ(field.text, at && at->is_string() ? at->get<std::string>() : "") << field.key << text;
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

TEST(Json, AScanFollowsPathsAsAParseDoes) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    expect_same_as_parsed(random_object(rng, 4));
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
