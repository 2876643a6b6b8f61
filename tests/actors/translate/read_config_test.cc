// Tests actors/translate/read_config.h, actors/translate/read_yaml.h, actors/translate/read_toml.h.
#include "actors/translate/read_config.h"

#include <gtest/gtest.h>

#include "actors/translate/read_toml.h"
#include "actors/translate/read_yaml.h"
#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::translate {
namespace {

std::string config_lines(const ForeignConfig& config) {
  std::string all;
  for (const ForeignValue& value : config.values())
    all += value.key + "=" + dump_json(value.value) + " ";
  for (const Note& note : config.notes()) all += "! " + note.what + " ";
  return all;
}

// The error of a file's reading, without its folder; or its values.
std::string read_of(const job::JobFolder& folder, const std::string& name) {
  const auto config = read_config(folder.root() / name);
  if (config) return config_lines(*config);
  std::string where = config.error().where;
  if (const auto at = where.find(folder.root().string()); at != where.npos)
    where.erase(at, folder.root().string().size() + 1);
  return config.error().message + " @ " + where + " help: " + config.error().help;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReadConfig, YamlBecomesDottedKeysWithPlaces) {
  const auto config =
      read_yaml("a:\n  b: 1\n  c: [x, {y: 2}]\n  d: {}\ne: null\nf: 1e-6\n'n': yes\n", "a.yaml");
  ASSERT_TRUE(config);
  EXPECT_EQ(config_lines(*config), "a.b=1 a.c=[\"x\",{\"y\":2}] a.d={} e=null f=1e-06 n=\"yes\" ");
  EXPECT_EQ(config->find("a.c")->where, "a.yaml:3");
  EXPECT_TRUE(config->has_section("a"));
  EXPECT_FALSE(config->has_section("e"));
  EXPECT_EQ(read_yaml("[1, 2]", "a.yaml").error().message, "the file holds no `key: value`");
  EXPECT_EQ(read_yaml("a: 1\na: 2\n", "a.yaml").error().where, "a.yaml:2:1");
}

TEST(ReadConfig, TomlBecomesDottedKeysWithPlaces) {
  const auto config = read_toml(
      "a = 1\n[b]\nc.d = 2.5\ne = [1, 2]\nf = 1979-05-27\n[[g]]\nid = 'x'\n[h]\n", "a.toml");
  ASSERT_TRUE(config);
  EXPECT_EQ(config_lines(*config),
            "a=1 b.c.d=2.5 b.e=[1,2] b.f=\"1979-05-27\" g=[{\"id\":\"x\"}] h={} ");
  EXPECT_EQ(config->find("b.e")->where, "a.toml:4");
  EXPECT_EQ(read_toml("a = \n", "a.toml").error().where, "a.toml:1:5");
  EXPECT_EQ(read_toml("[:a]\n", "a.toml").error().where, "a.toml:1:2");
  EXPECT_TRUE(says(read_toml("a = [" + std::string(1000, '['), "a.toml").error().message, "TOML"));
}

// RD-1
TEST(ReadConfig, RD1FilesOfDefaultsComeFirst) {
  const job::JobFolder folder;
  folder.write("base/a.yaml", "x: 1\ny: {z: 2, w: 3}\n");
  folder.write("r/b.yaml", "defaults: ../base/a.yaml\ny: {z: 5}\n");
  EXPECT_EQ(read_of(folder, "r/b.yaml"), "x=1 y.z=5 y.w=3 ");
  folder.write("r/c.yaml", "defaults: [b.yaml, other, _self_]\nx: 9\n");
  EXPECT_EQ(read_of(folder, "r/c.yaml"), "x=9 y.z=5 y.w=3 ");
  folder.write("r/d.yaml", "defaults: gone.yaml\nx: 9\n");
  EXPECT_EQ(read_of(folder, "r/d.yaml"),
            "x=9 ! the file `gone.yaml` of `defaults` is not there, and its values are missing ");
  folder.write("r/e.yaml", "defaults: [ppo_trainer, {a: b}, _self_]\nx: 9\n");
  EXPECT_TRUE(says(read_of(folder, "r/e.yaml"), "x=9"));
}

TEST(ReadConfig, FilesOfACommandAreLookedForAboveTheScript) {
  const job::JobFolder folder;
  folder.write("recipes/a.yaml", "lr: 1\nn: 2\n");
  folder.write("scripts/deep/run.sh", "python grpo.py --config recipes/a.yaml --n 3\n");
  EXPECT_EQ(read_of(folder, "scripts/deep/run.sh"), "lr=1 n=3 ");
  folder.write("run", "#!/bin/sh\npython grpo.py --config gone.yaml --n 3\n");
  EXPECT_EQ(read_of(folder, "run"),
            "n=3 ! the file `gone.yaml` is not there, and its values are missing ");
}

TEST(ReadConfig, ACircleOfFilesIsAnError) {
  const job::JobFolder folder;
  folder.write("a.yaml", "defaults: b.yaml\n");
  folder.write("b.yaml", "defaults: ./a.yaml\n");
  const std::string said = read_of(folder, "a.yaml");
  EXPECT_TRUE(says(said, "files build on each other in a circle @ a.yaml")) << said;
  EXPECT_TRUE(says(said, "help: remove it from `defaults`")) << said;
  folder.write("c.yaml", "defaults: c.yaml\n");
  EXPECT_TRUE(says(read_of(folder, "c.yaml"), "circle"));
  for (int i = 0; i < 40; ++i)
    folder.write("n" + std::to_string(i) + ".yaml",
                 "defaults: n" + std::to_string(i + 1) + ".yaml\n");
  EXPECT_TRUE(says(read_of(folder, "n0.yaml"), "more than 32 files"));
}

TEST(ReadConfig, RefusesWhatIsNoConfiguration) {
  const job::JobFolder folder;
  EXPECT_TRUE(says(read_of(folder, "none.yaml"), "No such file"));
  folder.write("binary.yaml", std::string("a: 1\n\x00\x01\xff", 8));
  EXPECT_TRUE(says(read_of(folder, "binary.yaml"), "the file is not UTF-8 text @ binary.yaml:2"));
  folder.write("binary.sh", std::string("python \xff\xfe"));
  EXPECT_TRUE(says(read_of(folder, "binary.sh"), "not UTF-8"));
  folder.write("large.yaml", std::string(10 << 20, 'a'));
  EXPECT_TRUE(says(read_of(folder, "large.yaml"), "1048576")) << read_of(folder, "large.yaml");
  folder.write("deep.yaml", std::string(100000, '['));
  EXPECT_TRUE(says(read_of(folder, "deep.yaml"), "nested more than 64 deep"));
  folder.write("cut.yaml", "a:\n  b: [1, 2\nc: 3\n");
  const std::string cut = read_of(folder, "cut.yaml");
  EXPECT_TRUE(says(cut, "not valid YAML") && says(cut, "cut.yaml:")) << cut;
  folder.write("two.yaml", "a: 1\n---\nb: 2\n");
  EXPECT_TRUE(says(read_of(folder, "two.yaml"), "more than one YAML document"));
  folder.write("empty.yaml", "");
  EXPECT_TRUE(says(read_of(folder, "empty.yaml"), "holds no"));
  std::string aliases = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'j'; ++name) {
    aliases += std::string(1, name) + ": &" + name + " [";
    for (int i = 0; i < 10; ++i)
      aliases += "*" + std::string(1, static_cast<char>(name - 1)) + ", ";
    aliases += "]\n";
  }
  folder.write("aliases.yaml", aliases);
  EXPECT_TRUE(says(read_of(folder, "aliases.yaml"), "more than 20000 values"));
}

}  // namespace
}  // namespace tandem::translate
