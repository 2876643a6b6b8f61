#include "runtime/link/program_build.h"

#include <gtest/gtest.h>

namespace tandem::link {
namespace {

const ProgramBuild kOurs{.version = "tandem 0.1.0", .id = "1a2b3c4d5e6f7081", .cuda_module = "aa"};

bool joins(const ProgramBuild& theirs) {
  return one_program(kOurs, "controller", theirs, "node/gpu-3@7").has_value();
}

TEST(ProgramBuild, PB_1_only_one_build_of_one_version_joins) {
  EXPECT_TRUE(joins(kOurs));
  EXPECT_TRUE(joins({})) << "a user's program";
  ProgramBuild theirs = kOurs;
  theirs.id = "9f8e";
  EXPECT_FALSE(joins(theirs));
  theirs = kOurs;
  theirs.version = "tandem 0.2.0";
  EXPECT_FALSE(joins(theirs));
}

TEST(ProgramBuild, PB_1_modules_are_compared_where_both_have_one) {
  ProgramBuild theirs = kOurs;
  theirs.cuda_module.clear();
  EXPECT_TRUE(joins(theirs));
  theirs.cuda_module = "bb";
  EXPECT_FALSE(joins(theirs));
}

TEST(ProgramBuild, PB_1_the_error_names_both_sides_with_their_builds) {
  const auto refused =
      one_program(kOurs, "controller", {.version = "tandem 0.2.0", .id = "9f8e"}, "node/gpu-3@7");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "controller is tandem 0.1.0 build 1a2b3c4d5e6f with the CUDA module aa, and "
            "node/gpu-3@7 is tandem 0.2.0 build 9f8e");
}

}  // namespace
}  // namespace tandem::link
