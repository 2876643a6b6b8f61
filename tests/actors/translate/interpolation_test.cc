#include "actors/translate/interpolation.h"

#include <gtest/gtest.h>

#include "actors/translate/read_yaml.h"
#include "runtime/base/json.h"

namespace tandem::translate {
namespace {

std::string resolved_lines(const std::string& yaml) {
  const auto config = read_yaml(yaml, "a.yaml");
  if (!config) return config.error().message;
  const auto resolved = resolve(*config);
  if (!resolved) return resolved.error().message + " @ " + resolved.error().where;
  std::string all;
  for (const auto& [key, value] : resolved->values) all += key + "=" + dump_json(value) + " ";
  for (const Note& note : resolved->unknown) all += "! " + note.key + " " + note.what + " ";
  return all;
}

TEST(Interpolation, ResolvesReferences) {
  EXPECT_EQ(resolved_lines("a: {b: 3, c: '${a.b}', d: '${.b}', e: 'x-${a.b}-${.c}'}"),
            "a.b=3 a.c=3 a.d=3 a.e=\"x-3-3\" ");
  EXPECT_EQ(resolved_lines("a: ['${b}', {c: '${b}'}]\nb: [1]"), "a=[[1],{\"c\":[1]}] b=[1] ");
  EXPECT_EQ(resolved_lines("a: '${..c}'\nc: 1"), "a=1 c=1 ");
}

TEST(Interpolation, KnowsOmegaConfsResolvers) {
  EXPECT_EQ(resolved_lines("a: '${oc.env:HOME}/x'\nb: '${oc.env:USER,me}'\nc: '${oc.env:USER}'"),
            "a=\"$HOME/x\" b=\"me\" ! c the environment variable USER is not known here ");
  EXPECT_EQ(
      resolved_lines("a: 5\nb: '${oc.select:a,7}'\nc: '${oc.select:x.y,7}'\nd: '${oc.select:x}'"),
      "a=5 b=5 c=7 d=null ");
  EXPECT_EQ(resolved_lines("a: 512\nb: '${mul:${a}, 4}'\nc: '${mul:${a}, 0.5}'"),
            "a=512 b=2048 c=256 ");
}

TEST(Interpolation, TellsWhatLeadsNowhere) {
  EXPECT_EQ(resolved_lines("a: '${b.c}'\nd: 1"), "d=1 ! a `${b.c}` is not given ");
  EXPECT_EQ(resolved_lines("a: '${now:%Y}'"), "! a `${now:%Y}` is not understood ");
  EXPECT_EQ(resolved_lines("a: '${unclosed'"), "a=\"${unclosed\" ");
}

TEST(Interpolation, ACircleIsAnErrorWithItsPath) {
  EXPECT_EQ(resolved_lines("a: '${b}'\nb: '${c}'\nc: '${a}'"),
            "values refer to each other in a circle: `a` -> `b` -> `c` -> `a` @ a.yaml:1");
  EXPECT_EQ(resolved_lines("x: 1\na: 'p${a}'"),
            "values refer to each other in a circle: `a` -> `a` @ a.yaml:2");
}

// Each value doubles the one before: without a bound a file of a kilobyte would fill the memory.
TEST(Interpolation, BoundsWhatReferencesRepeat) {
  std::string yaml = "a0: xxxxxxxxxx\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "${a" + std::to_string(i - 1) + "}";
    yaml += "a" + std::to_string(i) + ": '" + before + before + "'\n";
  }
  EXPECT_NE(resolved_lines(yaml).find("in a circle"), std::string::npos);
  std::string chain = "a0: 1\n";
  for (int i = 1; i < 2000; ++i)
    chain = "a" + std::to_string(i) + ": '${a" + std::to_string(i - 1) + "}'\n" + chain;
  EXPECT_NE(resolved_lines(chain).find("in a circle"), std::string::npos);
}

}  // namespace
}  // namespace tandem::translate
