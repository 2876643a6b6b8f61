// Each form of an option and of an argument, in a verb of this test.
#include "actors/cli/options.h"

#include <gtest/gtest.h>

#include "actors/cli/grammar.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/cli/parsing.h"

namespace tandem::cli {
namespace {

using Words = std::vector<std::string>;

struct Paint {
  static VerbHelp help() {
    return {.name = "paint",
            .group = VerbGroup::kLook,
            .description = "Paints",
            .examples = {"tandem paint wall"}};
  }

  void options(Options& options) {
    const auto take_secret = [this](const std::string& text) -> Result<void> {
      order += "secret ";
      if (text == "wrong") return Error{ErrorCode::kInvalid, "a wrong secret"};
      secret = text;
      return {};
    };
    const auto take_layers = [this](const Words& words) -> Result<void> {
      order += "layers ";
      layers = words;
      return {};
    };
    options.add("WALL", wall, "The wall").required();
    const Option note = options.add("NOTE", notes, "Notes").value("...").as_written();
    options.add("--coats", coats, "How many").value("N").between(1, 3);
    options.add("--litres", litres, "How much").value("L").between(0.5, 2.0);
    options.add("--tone", tone, "The tone").value("TONE").excludes(note);
    options.add("--brush", brushes, "A brush").value("BRUSH").one_each();
    options.add("--door", door, "A door").value("PATH");
    options.one_of("-c,--colour", colour, {Kind::kRuns, Kind::kJobs}, "A colour").value("C");
    options.read("--secret", take_secret, "A secret").value("TEXT").offers("runs");
    options.read_words("--layers", take_layers, "Layers").words(1, 2).value("A [B]");
    options.flag("--dry", dry, "Does nothing");
    options.hidden_flag("--gloss", gloss, "Hidden");
    options.check([this]() -> Result<void> {
      order += "last";
      if (dry && gloss) return Error{ErrorCode::kInvalid, "both"};
      return {};
    });
  }

  Result<int> run(const VerbContext&) { return 7; }

  std::filesystem::path wall;
  std::optional<std::filesystem::path> door;
  Words notes, brushes, layers;
  std::int64_t coats = 1;
  std::optional<double> litres;
  std::optional<std::string> tone;
  Kind colour = Kind::kNodes;
  std::string secret, order;
  bool dry = false, gloss = false;
};

std::vector<Verb> table() { return {make_verb<Paint>()}; }

TEST(Options, WhatIsNotGivenKeepsItsDefault) {
  const auto paint = parsed<Paint>({"paint", "north"});
  EXPECT_EQ(paint.wall, "north");
  EXPECT_EQ(paint.coats, 1);
  EXPECT_FALSE(paint.litres);
  EXPECT_FALSE(paint.door);
  EXPECT_EQ(paint.colour, Kind::kNodes);
  EXPECT_EQ(paint.order, "last") << "what was not given is not read";
}

TEST(Options, ValuesAreOfTheTypesOfTheFields) {
  const auto paint =
      parsed<Paint>({"paint", "north", "a b", "--coats=3", "--litres", "0.5", "--brush", "x",
                     "--brush", "y", "--door", "in", "-c", "jobs", "--dry"});
  EXPECT_EQ(paint.coats, 3);
  EXPECT_EQ(paint.litres, 0.5);
  EXPECT_EQ(paint.brushes, (Words{"x", "y"}));
  EXPECT_EQ(paint.door, "in");
  EXPECT_EQ(paint.colour, Kind::kJobs);
  EXPECT_EQ(paint.notes, Words{"a b"});
  EXPECT_TRUE(paint.dry);
}

TEST(Options, AValueThatLooksLikeAListStaysWhole) {
  EXPECT_EQ(parsed<Paint>({"paint", "north", "[1,2]", "[a]"}).notes, (Words{"[1,2]", "[a]"}));
}

TEST(Options, ChecksRunInTheirOrderAfterTheLineIsParsed) {
  const auto paint = parsed<Paint>({"paint", "n", "--layers", "a", "b", "--secret", "s"});
  EXPECT_EQ(paint.order, "secret layers last") << "the order of the declarations";
  EXPECT_EQ(paint.secret, "s");
  EXPECT_EQ(paint.layers, (Words{"a", "b"}));
  expect_refused({"paint", "n", "--dry", "--gloss"}, table, "both", "");
  expect_refused({"paint", "n", "--dry", "--gloss", "--secret", "wrong"}, table, "a wrong secret",
                 "");
  expect_refused({"paint", "n", "--secret", "wrong", "--coats", "9"}, table, "--coats",
                 "tandem paint --help");
}

TEST(Options, RestrictionsNameTheOption) {
  const std::string help = "tandem paint --help";
  expect_refused({"paint"}, table, "WALL is required", help);
  expect_refused({"paint", "n", "--coats", "4"}, table, "not in range 1 to 3", help);
  expect_refused({"paint", "n", "--coats", "many"}, table, "--coats", help);
  expect_refused({"paint", "n", "--litres", "2.5"}, table, "--litres", help);
  expect_refused({"paint", "n", "-c", "actors"}, table, "actors not in {runs,jobs}", help);
  expect_refused({"paint", "n", "a", "--tone", "t"}, table, "NOTE excludes --tone", help);
}

TEST(Options, TheGrammarHasWhatWasDeclared) {
  const GrammarDoc grammar = grammar_doc(table);
  ASSERT_EQ(grammar.commands.size(), 1u);
  const CommandDoc& paint = grammar.commands[0];
  EXPECT_EQ(paint.group, "Look into it");
  EXPECT_EQ(paint.usage, "tandem paint [OPTIONS] WALL [NOTE ...]");
  const auto option = [&paint](const std::string& name) {
    for (const OptionDoc& one : paint.options)
      if (one.names.back() == name) return one;
    return OptionDoc{};
  };
  EXPECT_EQ(option("--colour").names, (Words{"-c", "--colour"}));
  EXPECT_EQ(option("--colour").choices, (Words{"runs", "jobs"}));
  EXPECT_EQ(option("--secret").offers, "runs");
  EXPECT_EQ(option("--dry").value, "");
  EXPECT_TRUE(option("--gloss").names.empty()) << "it is hidden";
}

TEST(Options, TheHelpHasNoHiddenOption) {
  const std::string help = run({"paint", "--help"}, {.verbs = table}).out;
  EXPECT_NE(help.find("--dry"), std::string::npos) << help;
  EXPECT_EQ(help.find("--gloss"), std::string::npos) << help;
}

}  // namespace
}  // namespace tandem::cli
