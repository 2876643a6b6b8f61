#include "actors/translate/shell_script.h"

#include <gtest/gtest.h>

namespace tandem::translate {
namespace {

// The last command of a script: its words with a bar between them; of an unknown one the reason.
std::string last_command(const std::string& script) {
  const auto commands = script_commands(script, "run.sh");
  if (!commands) return commands.error().message;
  if (commands->empty()) return "nothing";
  std::string all;
  for (const ScriptWord& word : commands->back().words) {
    if (!all.empty()) all += "|";
    all += word.text + (word.unknown.empty() ? "" : "<" + word.unknown + ">");
  }
  return all;
}

TEST(ShellScript, ExpandsVariables) {
  EXPECT_EQ(last_command("A=1\nB=\"$A 2\"\nrun a=$A b=${B} c=\"$B\""), "run|a=1|b=1|2|c=1 2");
  EXPECT_EQ(last_command("export A=x B='y z'\nrun \"$A$B\""), "run|xy z");
  EXPECT_EQ(last_command("A=1\nA+=2\nrun $A"), "run|12");
  EXPECT_EQ(last_command("A=/x/y/z.py\nrun ${A##*/} ${A%/*}"), "run|z.py|/x/y");
  EXPECT_EQ(last_command("V=7 run $V"), "run|…<`V` is not set in the script>");
}

TEST(ShellScript, KnowsDefaults) {
  EXPECT_EQ(last_command("run ${A:-8} ${B-\"c d\"} ${C:=5} $C"), "run|8|c d|5|5");
  EXPECT_EQ(last_command("A=\nrun [${A:-x}] [${A-x}] [${A:+y}] [${B:+y}]"), "run|[x]|[]|[]|[]");
  EXPECT_EQ(last_command(": \"${D:=\"$HOME/data\"}\"\nrun d=\"['$D/t.parquet']\""),
            "run|d=['$HOME/data/t.parquet']");
  EXPECT_EQ(last_command("R=${R:-\"${HOME}/verl\"}\nrun ${M:-\"${R}/m\"}"), "run|$HOME/verl/m");
}

TEST(ShellScript, KnowsListsAndArithmetic) {
  EXPECT_EQ(last_command("A=(--x 1 '--y z')\nA+=(w)\nrun ${A[@]} \"${A[@]}\" ${A[0]}"),
            "run|--x|1|--y z|w|--x|1|--y z|w|--x");
  EXPECT_EQ(last_command("p=$((1024 * 2))\nr=4096\nrun $(((p + r) * 2)) $((p<<1))"),
            "run|12288|…<`$((p<<1))` is not understood>");
}

TEST(ShellScript, ArgumentsOfTheScriptAreNone) {
  EXPECT_EQ(last_command("run a $@ \"$@\" b $*"), "run|a|b");
  EXPECT_EQ(last_command("run ${1:-x}"), "run|x");
  EXPECT_EQ(last_command("run $1"), "run|…<the script has no argument `$1` here>");
}

TEST(ShellScript, NothingIsGuessed) {
  EXPECT_EQ(last_command("A=$(nproc)\nrun n=$A"), "run|n=…<`$(nproc)` is the output of a command>");
  EXPECT_EQ(last_command("run ${A:0:3}"), "run|…<`${A:0:3}` is not understood>");
  EXPECT_EQ(last_command("run $SLURM_NNODES"), "run|…<`SLURM_NNODES` is not set in the script>");
  const std::string condition =
      "` is set under a condition, in a loop or in a function, at line 2>";
  EXPECT_EQ(last_command("A=1\nif x; then A=2; fi\nrun $A"), "run|…<`A" + condition);
  EXPECT_EQ(last_command("A=1\nx && A=2\nrun $A"), "run|…<`A" + condition);
  EXPECT_EQ(last_command("A=1\nf() { A=2; }\nrun $A"), "run|…<`A" + condition);
  EXPECT_EQ(last_command("for i in 1 2; do run $i; done"), "run|…<it is the variable of a loop>");
}

// A loop over arguments does not run, since there are none; and to set a variable to what it is
// changes nothing.
TEST(ShellScript, WhatAConditionCannotChangeStaysKnown) {
  EXPECT_EQ(
      last_command("L=1\nwhile [ $# -gt 0 ]; do case $1 in --l) L=\"$2\" ;; esac; done\nrun $L"),
      "run|1");
  EXPECT_EQ(last_command("A=1\nif x; then A=1; fi\nrun $A"), "run|1");
}

TEST(ShellScript, LooksIntoEvalAndShells) {
  EXPECT_EQ(last_command("C=\"run a=1 b='2 3'\"\neval \"$C\""), "eval|run a=1 b='2 3'");
  const auto commands =
      script_commands("eval \"run a=1 b='2 3'\"\nsrun -n 1 bash -c 'go $X d=4'", "s");
  ASSERT_TRUE(commands);
  ASSERT_EQ(commands->size(), 4u);
  EXPECT_EQ((*commands)[0].words[2].text, "b=2 3");
  EXPECT_EQ((*commands)[2].words[0].text, "go");
  EXPECT_EQ((*commands)[2].line, 2);
}

TEST(ShellScript, ValuesMayReferToEachOtherWithoutEnd) {
  EXPECT_EQ(last_command("A=B\nB=A\nrun $((A))"), "run|…<`$((A))` is not understood>");
  std::string deep = "run ";
  for (int i = 0; i < 200; ++i) deep += "${A" + std::to_string(i) + ":-";
  deep += "x" + std::string(200, '}');
  EXPECT_NE(last_command(deep).find("is not"), std::string::npos);
  EXPECT_NE(last_command("C='eval \"$C\"'\neval \"$C\""), "");
}

}  // namespace
}  // namespace tandem::translate
