#include "actors/translate/read_shell.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace tandem::translate {
namespace {

// The values of a script as lines "key = value", its notes as "! note" and its files as "@ file".
std::string read_lines(const std::string& script) {
  const auto shell = read_shell(script, "run.sh");
  if (!shell) return "error: " + shell.error().message;
  std::string all;
  for (const ForeignValue& value : shell->config.values())
    all += value.key + " = " + dump_json(value.value) + "\n";
  for (const NamedFile& file : shell->files) all += "@ " + file.path + "\n";
  for (const Note& note : shell->config.notes())
    all += "! " + note.where + " " + note.key + ": " + note.what + "\n";
  return all;
}

TEST(ReadShell, ReadsOverrides) {
  EXPECT_EQ(read_lines("python3 -m verl.trainer.main_ppo a.b=1 +c.d=2.5 ++e=true f=null g='x y' "
                       "h=[1,2] i=\"['p','q']\" k='[\"r\",\"s\"]' l= m=1e-6 n=http://a:1"),
            "a.b = 1\nc.d = 2.5\ne = true\nf = null\ng = \"x y\"\nh = [1,2]\ni = [\"p\",\"q\"]\n"
            "k = [\"r\",\"s\"]\nl = \"\"\nm = 1e-06\nn = \"http://a:1\"\n");
}

// FC-1: a later value takes the earlier one's place.
TEST(ReadShell, FC1ALaterValueWinsAndATildeRemoves) {
  EXPECT_EQ(read_lines("python3 m.py a=1 b=2 a=3 ~b"), "a = 3\n");
  EXPECT_EQ(read_lines("python3 m.py a.b=1 a.c=2 d=3 ~a"), "d = 3\n");
}

TEST(ReadShell, ReadsFlags) {
  EXPECT_EQ(read_lines("python -m openrlhf.cli.train_ppo_ray --a-b 5e-7 --c --d 0 1 --e=x --f -1 "
                       "--g.h 'i j' --c2"),
            "a_b = 5e-07\nc = true\nd = [0,1]\ne = \"x\"\nf = -1\ng.h = \"i j\"\nc2 = true\n");
}

TEST(ReadShell, KnowsLaunchersAndFiles) {
  EXPECT_EQ(read_lines("accelerate launch --config_file z.yaml --num_processes=7 src/grpo.py "
                       "--config a.yaml --lr 1"),
            "launcher.config_file = \"z.yaml\"\nlauncher.num_processes = 7\nlr = 1\n@ a.yaml\n");
  EXPECT_EQ(read_lines("uv run rl @ a.toml --max_steps 5"), "max_steps = 5\n@ a.toml\n");
  EXPECT_EQ(read_lines("ray job submit --address=\"http://h:1\" -- python3 -m p.q a=1"),
            "launcher.address = \"http://h:1\"\na = 1\n");
  EXPECT_EQ(read_lines("python -m torch.distributed.run --nproc_per_node 4 t.py --x 1"),
            "launcher.nproc_per_node = 4\nx = 1\n");
  EXPECT_EQ(read_lines("uv run t.py --config b.yaml g.n=8 h.i=2"), "g.n = 8\nh.i = 2\n@ b.yaml\n");
}

TEST(ReadShell, TakesTheCommandWithTheMostArguments) {
  EXPECT_EQ(read_lines("python prepare.py --out /d\npython3 -m m a=1 b=2 c=3"),
            "a = 1\nb = 2\nc = 3\n");
  const std::string two = "python -m x a=1 b=2 c=3 d=4 e=5\npython -m y a=1 b=2 c=3 d=4 e=5 f=6";
  EXPECT_NE(read_lines(two).find("! run.sh:1 : a second command starts a program"),
            std::string::npos);
  EXPECT_NE(read_lines("echo hello\ncd /x").find("error: no command"), std::string::npos);
}

TEST(ReadShell, TellsWhatItDoesNotKnow) {
  EXPECT_EQ(read_lines("python -m m a=1 b=$(nproc) c=$D strange"),
            "a = 1\n! run.sh:1 b: `$(nproc)` is the output of a command\n"
            "! run.sh:1 c: `D` is not set in the script\n"
            "! run.sh:1 : the argument `strange` is not understood\n");
  EXPECT_EQ(read_lines("python -m m --a $B --c 1"),
            "c = 1\n! run.sh:1 a: `B` is not set in the script\n");
}

}  // namespace
}  // namespace tandem::translate
