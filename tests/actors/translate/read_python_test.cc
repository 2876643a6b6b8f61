// Tests actors/translate/read_python.h, actors/translate/python_tokens.h.
#include "actors/translate/read_python.h"

#include <gtest/gtest.h>

#include "actors/translate/dialects.h"
#include "actors/translate/read_config.h"
#include "actors/translate/translate.h"
#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::translate {
namespace {

// The values, then the notes about keys; the error, where there is one.
std::string read(const std::string& script) {
  const auto config = read_python(script, "train.py");
  if (!config) return "error: " + config.error().message + " @ " + config.error().where;
  std::string all;
  for (const ForeignValue& value : config->values())
    all += value.key + "=" + dump_json(value.value) + " ";
  for (const Note& note : config->notes())
    if (!note.key.empty() || note.what.find("is not read") != std::string::npos)
      all += "! " + note.key + ": " + note.what + " ";
  return all;
}

// The values of the arguments of one call.
std::string of_config(const std::string& arguments) {
  return read("c = GRPOConfig(" + arguments + ")");
}

constexpr const char* kScript = R"python(#!/usr/bin/env python3
# GRPOConfig(beta=9) in a comment, and "GRPOConfig(beta=9)" in a text, are no calls.
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer
from trl.rewards import accuracy_reward

MODEL = "Qwen/Qwen2.5-0.5B-Instruct"
rate = 1e-5

def reward_len(completions, **kwargs):
    """Short ones: GRPOConfig(beta=9)."""
    return [-abs(20 - len(c)) for c in completions]

dataset = load_dataset("trl-lib/tldr", split="train")
training_args = GRPOConfig(
    output_dir="Qwen2-0.5B-GRPO",
    learning_rate=rate,
    per_device_train_batch_size=8, num_generations=4,
    max_steps=2 * 100,
    lr_scheduler_kwargs={"min_lr_rate": 0.1},
    report_to=["wandb"],
    bf16=True,
)
trainer = GRPOTrainer(
    model=MODEL,
    reward_funcs=[reward_len, accuracy_reward],
    args=training_args,
    train_dataset=dataset,
    callbacks=[Loud()],
)
trainer.train()
)python";

// PY-1
TEST(ReadPython, PY1TheArgumentsOfTheCallsAreTheValues) {
  EXPECT_EQ(read(kScript),
            "output_dir=\"Qwen2-0.5B-GRPO\" learning_rate=1e-05 per_device_train_batch_size=8 "
            "num_generations=4 lr_scheduler_kwargs.min_lr_rate=0.1 report_to=[\"wandb\"] bf16=true "
            "model_name_or_path=\"Qwen/Qwen2.5-0.5B-Instruct\" "
            "reward_funcs=[\"reward_len\",\"accuracy_reward\"] dataset_name=\"trl-lib/tldr\" "
            "dataset_train_split=\"train\" "
            "! max_steps: `2 * 100` is computed by the script "
            "! : `callbacks=[Loud()]` is not read ");
  const auto config = read_python(kScript, "train.py");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("learning_rate")->where, "train.py:17");
}

TEST(ReadPython, Literals) {
  EXPECT_EQ(of_config("a=1_000, b=-.5, c=1., d=+2, e=None, f=False"),
            "a=1000 b=-0.5 c=1.0 d=2 e=null f=false ");
  EXPECT_EQ(of_config(R"(a='it''s', b="""two
lines""", c=r'\n', d='\u00e9\t\'', e=("x" "y"), f=(1,), g=[[1], (2, 3)], h=())"),
            "a=\"its\" b=\"two\\nlines\" c=\"\\\\n\" d=\"é\\t'\" e=\"xy\" f=[1] g=[[1],[2,3]] "
            "h=[] ");
  EXPECT_EQ(of_config("a={}, b={'c': {'d': 1}, 'e': 2}"), "a={} b.c.d=1 b.e=2 ");
  EXPECT_EQ(of_config("'out', x=1"), "output_dir=\"out\" x=1 ");
}

// PY-1
TEST(ReadPython, PY1WhatIsNoLiteralIsANoteWithItsKey) {
  for (const char* value : {"f'{x}'", "b'x'", "0x10", "3j", "1 + 1", "f(1, 2)", "x[0]", "'a' + 'b'",
                            "{1, 2}", "[x for x in y]", "'\\N{DEGREE SIGN}'", "os.cpu_count()",
                            "1 if a else 2", "x == 1", "'%d' % 3", "[f'{x}']", "- x"})
    EXPECT_EQ(of_config(std::string("a=") + value + ", b=1"),
              "b=1 ! a: `" + std::string(value) + "` is computed by the script ");
  EXPECT_EQ(of_config("a=1, **more"), "a=1 ! : `**more` is not read ");
}

// PY-1
TEST(ReadPython, PY1ANameIsItsLiteralWhereNothingElseGivesItAValue) {
  const auto value_of = [](const std::string& before) {
    return read(before + "\nc = GRPOConfig(beta=b)\n");
  };
  EXPECT_EQ(value_of("b = 0.5"), "beta=0.5 ");
  const std::string computed = "! beta: `b` is computed by the script ";
  for (const char* before :
       {"", "b = 0.5 * 2", "b = 0.5\nb = 0.6", "b = 0.5\nif x:\n  b = 0.6", "b = 0.5\nb += 1",
        "b = 0.5\nb **= 2", "b = 0.5\na, b = f()", "b = 0.5\nb, a = f()", "if x:\n  b = 0.5",
        "b = 0.5\nfor b in x: pass", "b = 0.5\ndef main(b=1): pass", "b = 0.5\nb: int = 2",
        "b = 0.5\nimport b", "b = 0.5\nf(b := 1)", "b = 0.5 \\\n * 2", "b == 0.5"})
    EXPECT_EQ(value_of(before), computed) << before;
  for (const char* below : {"for i, b in enumerate(x): pass",
                            "for i, (a, b) in x:\n  pass",
                            "[b for a, b in x]",
                            "from m import a, b",
                            "from m import (\n  a,\n  b,\n)",
                            "from m import a, \\\n  b",
                            "import a, b",
                            "from m import *",
                            "(a, b) = x",
                            "[a, b] = x",
                            "(a, (c, b)), d = x",
                            "c = (a, b) = x",
                            "y = x  # a\\b\n(a, b) = x",
                            "if x: (a, b) = y",
                            "with f() as (a, b):\n  pass",
                            "with f() as a, g() as b: pass",
                            "f(lambda a, b: a)",
                            "def f[T](a, b): pass",
                            "match x:\n  case [a, b]: pass",
                            "try: f()\nexcept E as b: pass"})
    EXPECT_EQ(value_of("b = 0.5\n" + std::string(below)), computed) << below;
  for (const char* below : {"from b import a", "f(a, b)", "x[b] = 1", "if (b) == 1: f()", "f(b=1)",
                            "for i in range(b): f(b)", "x = (b, 1)", "import a\nf(b)"})
    EXPECT_EQ(value_of("b = 0.5\n" + std::string(below)), "beta=0.5 ") << below;
}

// PY-1
TEST(ReadPython, PY1AListThatMayBeChangedIsNone) {
  const auto rewards = [](const std::string& below) {
    return read("names = ['a']\n" + below +
                "\nGRPOConfig()\nGRPOTrainer('m', reward_funcs=names)\n");
  };
  EXPECT_EQ(rewards(""), "model_name_or_path=\"m\" reward_funcs=[\"a\"] ");
  EXPECT_EQ(rewards("f(names=1)"), rewards(""));
  for (const char* below : {"names.append('b')", "names[0] = 'b'", "f(names)", "more = names"})
    EXPECT_EQ(rewards(below),
              "model_name_or_path=\"m\" ! reward_funcs: `names` is computed by the script ")
        << below;
  EXPECT_EQ(read("kind = {'a': 1}\nkind['a'] = 2\nGRPOConfig(k=kind)"),
            "! k: `kind` is computed by the script ");
}

TEST(ReadPython, RewardsAreNamesOfFunctions) {
  const auto rewards = [](const std::string& given, const std::string& before = "") {
    return read(before + "\nGRPOConfig()\nGRPOTrainer('m', " + given + ")");
  };
  EXPECT_EQ(rewards("f"), "model_name_or_path=\"m\" reward_funcs=[\"f\"] ");
  EXPECT_EQ(rewards("reward_funcs=[rewards.f, g]"),
            "model_name_or_path=\"m\" reward_funcs=[\"f\",\"g\"] ");
  EXPECT_EQ(rewards("['a/b', 'c']"), "model_name_or_path=\"m\" reward_funcs=[\"a/b\",\"c\"] ");
  EXPECT_EQ(rewards("funcs", "funcs = [f(), g]"),
            "model_name_or_path=\"m\" ! reward_funcs: `funcs` is computed by the script ");
  EXPECT_EQ(rewards("[f(2)]"),
            "model_name_or_path=\"m\" ! reward_funcs: `[f(2)]` is computed by the script ");
}

TEST(ReadPython, DataSets) {
  EXPECT_EQ(read("GRPOConfig()\nload_dataset('openai/gsm8k', 'main', split='train')"),
            "dataset_name=\"openai/gsm8k\" dataset_config=\"main\" dataset_train_split=\"train\" ");
  EXPECT_EQ(read("GRPOConfig()\nload_dataset('json', data_files='a.jsonl')"),
            "dataset_name=\"a.jsonl\" ");
  EXPECT_EQ(read("GRPOConfig()\nload_dataset('a')\nload_dataset('b')"),
            "! dataset_name: the script loads 2 data sets ");
}

TEST(ReadPython, ErrorsSayWhatToGive) {
  EXPECT_EQ(read("class GRPOConfig(Base): pass\nprint('GRPOConfig()')"),
            "error: the script calls `GRPOConfig` 0 times; its arguments are read where there is "
            "one call @ train.py");
  const auto none = read_python("", "train.py");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().help.find("give the YAML file"), std::string::npos) << none.error().help;
  EXPECT_EQ(read("a = 1\nb = 'open\n"), "error: a string has no end @ train.py:2");
  EXPECT_EQ(read("b = '''open\n"), "error: a string has no end @ train.py:1");
  // Cut off, or with brackets that do not fit: it ends, with what is there.
  EXPECT_EQ(of_config("a=1]").substr(0, 4), "a=1 ");
  EXPECT_EQ(read("GRPOConfig(a=1, b=[2").substr(0, 4), "a=1 ");
  EXPECT_EQ(read("GRPOConfig(a=" + std::string(5000, '[')).substr(0, 4), "! a:");
}

// PY-2
TEST(ReadPython, PY2TheRestOfTheScriptIsTold) {
  const job::JobFolder folder;
  for (const char* name : {"train.py", "train"}) {  // by its name, or by its first line
    folder.write(name, kScript);
    const auto config = read_config(folder.root() / name);
    ASSERT_TRUE(config) << render(config.error());
    const auto dialect = recognise(*config);
    ASSERT_TRUE(dialect) << render(dialect.error());
    EXPECT_EQ((*dialect)->name, "trl");
    const auto job = translate(*config, **dialect);
    ASSERT_TRUE(job) << render(job.error());
    bool told = false;
    for (const Finding& finding : job->findings)
      told = told || (finding.severity == Severity::kUnknown &&
                      finding.text.find("a script is not run") != std::string::npos);
    EXPECT_TRUE(told);
  }
}

}  // namespace
}  // namespace tandem::translate
