// Templates against the texts of transformers (scripts/make_jinja_goldens.py), their limits and
// errors, and templates that are random, cut or hostile.
#include "actors/jinja/template.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/jinja/json_value.h"
#include "runtime/base/file.h"
#include "runtime/base/rng.h"

namespace tandem::jinja {
namespace {

using Variables = std::vector<std::pair<std::string, Value>>;

std::tm day() {  // 26 July 2024, as in the goldens
  std::tm day{};
  day.tm_mday = 26;
  day.tm_mon = 6;
  day.tm_year = 124;
  day.tm_wday = 5;
  day.tm_yday = 207;
  return day;
}

std::string golden_file(const std::string& name) {
  const auto text = read_file(TANDEM_SOURCE_DIR "/tests/golden/jinja/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

const Dict& goldens() {
  static const Value read = *parse_json_value(golden_file("cases.json"));
  return read.as_dict();
}

Variables variables_of(const Value& dict) {
  Variables variables;
  for (const auto& [name, value] : dict.as_dict().items())
    variables.emplace_back(name.text(), value);
  return variables;
}

// The text, or "error at WHERE: MESSAGE".
std::string rendered(std::string_view text, const Variables& variables = {},
                     const Limits& limits = {}) {
  const auto parsed = Template::parse(text, "T");
  const auto result =
      parsed ? parsed->render(variables, day(), limits) : Result<Rendered>(parsed.error());
  if (result) return result->text;
  EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
  return "error at " + result.error().where + ": " + result.error().message;
}

// Compares a rendering with a case of the goldens: its text and generations, or that it is refused.
void compare(std::string_view text, const Dict& expected, const Variables& variables) {
  const auto parsed = Template::parse(text, "T");
  const auto result = parsed ? parsed->render(variables, day()) : Result<Rendered>(parsed.error());
  if (const Value* const error = expected.find_text("error")) {
    EXPECT_FALSE(result) << text << "\nis refused by transformers: " << error->text();
    return;
  }
  ASSERT_TRUE(result) << text << "\n" << render(result.error());
  EXPECT_EQ(result->text, expected.find_text("text")->text()) << text;
  std::vector<Span> spans;
  if (const Value* const given = expected.find_text("generations"))
    for (const Value& span : given->as_sequence().items)
      spans.push_back({static_cast<std::size_t>(span.as_sequence().items[0].as_int()),
                       static_cast<std::size_t>(span.as_sequence().items[1].as_int())});
  EXPECT_EQ(result->generations, spans) << text;
}

TEST(Template, RendersSnippetsAsTransformersDoes) {
  Variables variables = variables_of(*goldens().find_text("variables"));
  for (const char* name : {"messages", "tools", "documents", "add_generation_prompt"})
    variables.emplace_back(name, std::string_view(name) == "messages"                ? make_list({})
                                 : std::string_view(name) == "add_generation_prompt" ? Value(false)
                                                                                     : Value());
  const Values& snippets = goldens().find_text("snippets")->as_sequence().items;
  EXPECT_GT(snippets.size(), 200u);
  for (const Value& snippet : snippets)
    compare(snippet.as_dict().find_text("template")->text(), snippet.as_dict(), variables);
}

TEST(Template, RendersConversationsAsTransformersDoes) {
  std::size_t compared = 0;
  for (const auto& [name, cases] : goldens().find_text("templates")->as_dict().items()) {
    const std::string text = golden_file(name.text());
    for (const Value& one : cases.as_sequence().items) {
      compare(text, one.as_dict(), variables_of(*one.as_dict().find_text("inputs")));
      ++compared;
    }
  }
  EXPECT_GT(compared, 100u);
}

TEST(Template, AnErrorHasItsLine) {
  EXPECT_EQ(rendered("a\nb {{ x.y }}"), "error at T:2: 'x' is undefined");
  EXPECT_EQ(rendered("{% macro m() %}\n\n{{ 1 // 0 }}{% endmacro %}{{ m() }}"),
            "error at T:3: integer division or modulo by zero");
  EXPECT_EQ(rendered("\n\n{% if x %}"), "error at T:3: the template ends, and `endif` is missing");
  EXPECT_EQ(rendered("{% include 'x' %}"),
            "error at T:1: the tag `include` is not supported: a chat template is one text");
  EXPECT_EQ(rendered("{{ raise_exception('roles must alternate') }}"),
            "error at T:1: the template refuses this conversation: roles must alternate");
  EXPECT_EQ(rendered("{{ {}.x.y }}"), "error at T:1: 'dict object' has no attribute 'x'");
  EXPECT_EQ(rendered("{{ 9223372036854775807 + 1 }}"),
            "error at T:1: an integer has more than 64 bits, more than Tandem computes with");
  EXPECT_EQ(rendered("{{ [].append }}"), "");
  EXPECT_EQ(rendered("\n{{ range | format('a') }}"),
            "error at T:2: a value of the type 'builtin_function_or_method' cannot be printed");
  EXPECT_EQ(rendered("{{ [].append(1) }}"),
            "error at T:1: access to attribute 'append' of 'list' object is unsafe.");
}

// Each of these would go on for ever, or take all memory.
TEST(Template, JR1ALimitIsNamed) {
  const Limits limits{.steps = 200'000, .output_bytes = 1 << 20, .allocated_bytes = 8 << 20};
  const auto refused = [&](std::string_view text, std::string_view why) {
    const std::string result = rendered(text, {}, limits);
    EXPECT_TRUE(result.starts_with("error at T:1: ")) << text << "\n" << result.substr(0, 200);
    EXPECT_NE(result.find(why), std::string::npos) << text << "\n" << result.substr(0, 200);
  };
  const char* const steps = "more than 200000 steps";
  const char* const memory = "makes more than 8 MiB of values";
  refused("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
          steps);
  refused(
      "{% macro m(n) %}{% for i in range(9) %}{{ m(n + 1) }}{% endfor %}{% endmacro %}{{ m(0) }}",
      "nested more than 800 levels deep");
  refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested more than 800 levels deep");
  refused("{{ 'x' * 1000000000000 }}", memory);
  refused("{{ [0] * 1000000000000 }}", memory);
  refused("{{ 'ab'.ljust(1000000000) }}", memory);
  refused("{{ ('x' * 100000).replace('x', 'y' * 100000) }}", memory);
  refused("{{ '%999999999d' % 1 }}", "a width or precision of a format");
  refused("{{ '{:999999999}'.format(1) }}", "a width or precision of a format");
  refused("{% for a in range(100) %}{{ 'x' * 20000 }}{% endfor %}",
          "the text is longer than 1024 KiB");
  refused(
      "{% set ns = namespace(x='ab') %}{% for a in range(60) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}",
      memory);
  refused(
      "{% set ns = namespace(x=[1]) %}{% for a in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% "
      "endfor %}"
      "{{ ns.x }}",
      "items within it");
  refused(
      "{{ ([0] * 5000) | batch(1) | map('tojson') | map('list') | map('sort') | list | unique | "
      "list }}",
      "unhashable type");
  refused(
      "{{ range(0, 90000) | map('string') | list | sort | unique | list | sort | join | list | "
      "sort }}",
      steps);
}

// JV-1, JV-2: a value cannot be deeper than is safe, and a circle through a namespace is freed.
TEST(Template, JV1DeepValuesAreRefusedAndJV2CirclesAreFreed) {
  EXPECT_EQ(
      rendered("{% set ns = namespace(x=[]) %}{% for a in range(200) %}{% set ns.x = [ns.x] %}"
               "{% endfor %}"),
      "error at T:1: a value is nested more than 100 levels deep");
  EXPECT_EQ(
      rendered("{% set ns = namespace() %}{% set ns.self = [ns] %}{{ ns.self[0] is sameas ns }}"
               "{% for a in 'ab' %}{% set ns.loop = loop %}{{ loop.changed(ns.loop) }}{% endfor %}"
               "{% macro m() %}{{ ns.m is defined }}{% endmacro %}{% set ns.m = m %}{{ ns.m() }}"
               "{{ ns.loop.index }}"),
      "TrueTrueFalseTrue2");
}

// JP-1: depth is bounded for parentheses, chains, blocks and lists.
TEST(Template, JP1ADeepTextIsRefused) {
  for (const auto& [open, close, count] :
       std::vector<std::tuple<std::string, std::string, int>>{{"(", ")", 100'000},
                                                              {"[", "]", 100'000},
                                                              {"not ", "", 100'000},
                                                              {"-", "", 100'000},
                                                              {"1 + ", "", 100'000},
                                                              {"x.", "", 100'000},
                                                              {"1 if 1 else ", "", 100'000}}) {
    std::string text = "{{ ";
    for (int i = 0; i < count; ++i) text += open;
    text += open == "x." ? "x" : "1";
    for (int i = 0; i < count; ++i) text += close;
    EXPECT_TRUE(rendered(text + " }}").starts_with("error at T:1: ")) << open;
  }
  std::string blocks;
  for (int i = 0; i < 50'000; ++i) blocks += "{% if x %}";
  EXPECT_TRUE(rendered(blocks).starts_with("error at T:1: "));
  EXPECT_EQ(rendered("{{ " + std::string(100, '(') + "1" + std::string(100, ')') + " }}"), "1");
}

// JX-2
TEST(Template, JX2TheDateIsAnInput) {
  const auto parsed = Template::parse("{{ strftime_now('%d %b %Y') }}", "T");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->render({}, day())->text, "26 Jul 2024");
  const auto without = parsed->render({}, std::nullopt);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().message, "strftime_now() was called, and no date is set");
  EXPECT_TRUE(parsed->reads("strftime_now"));
  EXPECT_FALSE(parsed->reads("messages"));
}

TEST(Template, ItsTextsAreKnown) {
  const auto parsed = Template::parse("a{{ 'b' ~ x }}{% if y == 'c' %}d{% endif %}", "T");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->texts(), (std::vector<std::string_view>{"a", "b", "c", "d"}));
}

TEST(JsonValue, KeepsTheOrderOfMembersAndRefusesLargeIntegers) {
  EXPECT_EQ(rendered("{{ x }}", {{"x", *parse_json_value(R"({"b": 1, "a": [1.5, null]})")}}),
            "{'b': 1, 'a': [1.5, None]}");
  EXPECT_EQ(parse_json_value("18446744073709551616").error().message,
            "an integer of the JSON has more than 64 bits");
  EXPECT_EQ(parse_json_value("9223372036854775808").error().message,
            "an integer of the JSON has more than 64 bits");
  EXPECT_EQ(parse_json_value("{").error().message, "this is not JSON");
}

// JX-1: pieces of templates in a random order, and golden templates that are cut, changed in a byte
// or given random inputs, end within their limits. Under the sanitizers this finds bad accesses.
TEST(Template, JX1AnyTextEndsWithinItsLimits) {
  const std::uint64_t seed = 25;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Rng rng(seed);
  const Limits limits{.steps = 20'000, .output_bytes = 1 << 16, .allocated_bytes = 1 << 20};
  const Variables variables = variables_of(*goldens().find_text("variables"));
  std::vector<std::string> texts = {golden_file("chatml_tools.jinja"),
                                    golden_file("strict_turns.jinja"), golden_file("macros.jinja")};
  for (const Value& snippet : goldens().find_text("snippets")->as_sequence().items)
    texts.push_back(snippet.as_dict().find_text("template")->text());
  constexpr std::string_view kPieces[] = {"{{ ",
                                          " }}",
                                          "{% ",
                                          " %}",
                                          "{%- ",
                                          " -%}",
                                          "{# ",
                                          " #}",
                                          "x",
                                          "users",
                                          "dict",
                                          "(",
                                          ")",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          ":",
                                          ",",
                                          ".",
                                          "|",
                                          "~",
                                          " + ",
                                          " * ",
                                          " ** ",
                                          "9",
                                          "'s'",
                                          "\"",
                                          "if ",
                                          " else ",
                                          "for ",
                                          " in ",
                                          "set ",
                                          "macro ",
                                          "endif",
                                          "endfor",
                                          "endmacro",
                                          "loop",
                                          "not ",
                                          "is ",
                                          "namespace(",
                                          "|sort",
                                          "|tojson",
                                          "|map('upper')",
                                          ".split(",
                                          "%",
                                          "\n",
                                          "\\",
                                          "\xf0\x9f\x98\x80",
                                          "\xff",
                                          "recursive ",
                                          "call ",
                                          "endcall",
                                          "caller()",
                                          "filter upper",
                                          "endfilter",
                                          "generation",
                                          "endgeneration",
                                          "raw"};
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    if (rng.below(2) == 0) {
      for (std::uint64_t pieces = rng.below(30); pieces > 0; --pieces)
        text += kPieces[rng.below(std::size(kPieces))];
    } else {
      text =
          texts[rng.below(i % 20 == 0 ? texts.size() : texts.size() - 3) + (i % 20 == 0 ? 0 : 3)];
      if (rng.below(2) == 0) text.resize(rng.below(text.size() + 1));
      for (std::uint64_t changes = rng.below(3); changes > 0 && !text.empty(); --changes)
        text[rng.below(text.size())] = "{}%()[]'\"|.,:~- \n0ax"[rng.below(20)];
      if (rng.below(4) == 0)
        text.insert(rng.below(text.size() + 1), kPieces[rng.below(std::size(kPieces))]);
    }
    const std::string result = rendered(text, variables, limits);
    EXPECT_LE(result.size(), limits.output_bytes + text.size() + 10'000);
  }
}

}  // namespace
}  // namespace tandem::jinja
