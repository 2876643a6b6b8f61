#include "actors/translate/shell_words.h"

#include <gtest/gtest.h>

namespace tandem::translate {
namespace {

// A command as text: words between bars, "quoted", ${name}, $(command), $((arithmetic)).
std::string shown_word(const ShellWord& word) {
  std::string text;
  for (const WordPart& part : word.parts) switch (part.kind) {
      case WordPart::Kind::kText:
        text += part.quoted ? "\"" + part.text + "\"" : part.text;
        break;
      case WordPart::Kind::kVariable:
        text += "${" + part.text + "}";
        break;
      case WordPart::Kind::kCommand:
        text += "$(" + part.text + ")";
        break;
      case WordPart::Kind::kArithmetic:
        text += "$((" + part.text + "))";
        break;
    }
  return text;
}

std::string cut(const std::string& script) {
  const auto commands = shell_commands(script, "run.sh");
  if (!commands) return commands.error().message + " @ " + commands.error().where;
  std::string all;
  for (const ShellCommand& command : *commands) {
    all += std::to_string(command.line) + (command.conditional ? "?" : "") + ":";
    if (command.array) all += " " + *command.array + (command.append ? "+=(" : "=(");
    for (const ShellWord& word : command.words) all += " " + shown_word(word);
    all += "\n";
  }
  return all;
}

TEST(ShellWords, CutsCommandsAtLinesSemicolonsAndOperators) {
  EXPECT_EQ(cut("a b; c | d && e || f &\n\n  g"), "1: a b\n1: c\n1: d\n1?: e\n1?: f\n3: g\n");
  EXPECT_EQ(cut("(a b)\n"), "1: a b\n");
  EXPECT_EQ(cut(""), "");
}

TEST(ShellWords, KnowsQuotesAndContinuations) {
  EXPECT_EQ(cut("a 'b  c'\"d $e\" \\\n  f\\ g"), "1: a \"b  c\"\"d \"${e} f\" \"g\n");
  EXPECT_EQ(cut("x='[\"console\",\"wandb\"]'"), "1: x=\"[\"console\",\"wandb\"]\"\n");
  EXPECT_EQ(cut(R"(echo "a\"b\$c\n")"), "1: echo \"a\"b$c\\n\"\n");
  EXPECT_EQ(cut("echo ''"), "1: echo \"\"\n");
  EXPECT_EQ(cut("echo $'a b' $\"c\""), "1: echo \"a b\" \"c\"\n");
}

TEST(ShellWords, CommentsBeginWhereAWordWould) {
  EXPECT_EQ(cut("a # b\n#c\nd#e '#f'"), "1: a\n3: d#e \"#f\"\n");
  EXPECT_EQ(cut("a \\\n  # within a continuation\n b"), "1: a\n3: b\n");
}

TEST(ShellWords, KeepsExpansionsAsTheyAreWritten) {
  EXPECT_EQ(cut("${A:-\"${B}/c d\"}/$E$1$@"), "1: ${A:-\"${B}/c d\"}/${E}${1}${@}\n");
  EXPECT_EQ(cut("$(date +%s \"a)b\") `ls`"), "1: $(date +%s \"a)b\") $(ls)\n");
  EXPECT_EQ(cut("$(((a + b) * 2)) $((1 << 2))"), "1: $(((a + b) * 2)) $((1 << 2))\n");
  EXPECT_EQ(cut("100% $ x"), "1: 100% $ x\n");
}

TEST(ShellWords, ReadsListsOverSeveralLines) {
  EXPECT_EQ(cut("ARGS=(\n --a 1 # one\n --b \"$C\"\n)\nARGS+=(x)\nNAME= ()"),
            "1: ARGS=( --a 1 --b \"\"${C}\n5: ARGS+=( x\n6: NAME=\n");
}

TEST(ShellWords, LeavesRedirectionsAndHereDocumentsOut) {
  EXPECT_EQ(cut("a b > out.txt 2>&1 | tee -a log"), "1: a b\n1: tee -a log\n");
  EXPECT_EQ(cut("a < in &>> both"), "1: a\n");
  EXPECT_EQ(cut("cat <<EOF\nx=1 'not closed\nEOF\nb <<-'END'\n\tc\n\tEND\nd"),
            "1: cat\n4: b\n7: d\n");
  EXPECT_EQ(cut("a <<< 'b c'; d"), "1: a\n1: d\n");
}

TEST(ShellWords, AnErrorHasTheLineWhereItBegins) {
  EXPECT_EQ(cut("a\nb 'c\nd"), "`'` is not closed @ run.sh:2");
  EXPECT_EQ(cut("a \"b"), "`\"` is not closed @ run.sh:1");
  EXPECT_EQ(cut("a ${b"), "`${` is not closed @ run.sh:1");
  EXPECT_EQ(cut("a $(b 'c)"), "`$(` is not closed @ run.sh:1");
  EXPECT_EQ(cut("a `b"), "``` is not closed @ run.sh:1");
  EXPECT_EQ(cut("A=(b\nc"), "the list of `A` is not closed @ run.sh:1");
}

TEST(ShellWords, BoundsTheNumberOfWords) {
  std::string many;
  for (std::size_t i = 0; i <= kShellWordsMax; ++i) many += "a\n";
  EXPECT_NE(cut(many).find("more than 20000 words @ run.sh:"), std::string::npos);
}

// Any prefix of a script ends in commands or in an error, and never in a hang or beyond the text.
TEST(ShellWords, TakesEveryPrefix) {
  const std::string script =
      "A=(1 \"$B\" '3')\nif [ -n \"${X:-\"y\"}\" ]; then\n  `z` $((1+2)) <<E\nE\nfi 2>&1 \\\n#\n";
  for (std::size_t length = 0; length <= script.size(); ++length)
    EXPECT_FALSE(cut(script.substr(0, length)).empty() && length > 20) << length;
}

}  // namespace
}  // namespace tandem::translate
