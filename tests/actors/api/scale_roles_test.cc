#include "actors/api/scale_roles.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tandem::api {
namespace {

using controller::Nothing;
using controller::ScaleRole;

const std::vector<ScaleRole> kBoth = {{"job-1", messages::Role::kReward, 2},
                                      {"job-1", messages::Role::kRollout, 3}};

Error stands(const ScaleRole& scale) {
  return {ErrorCode::kTimedOut, name(scale.role) + " stands", "controller.sqlite"};
}

TEST(ScaleRoles, OnesThatAreNotJournalledYetStandAndAreAllNamed) {
  std::vector<std::string> asked;
  const auto done = scale_roles(kBoth, [&](const ScaleRole& scale) -> Result<Nothing> {
    asked.push_back(name(scale.role));
    return stands(scale);
  });
  EXPECT_EQ(asked, (std::vector<std::string>{"reward", "rollout"}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kTimedOut);
  EXPECT_EQ(done.error().message, "reward stands; rollout stands");
  EXPECT_EQ(done.error().where, "controller.sqlite");
}

TEST(ScaleRoles, OneThatStandsIsNamedThoughTheNextIsDone) {
  const auto done = scale_roles(kBoth, [&](const ScaleRole& scale) -> Result<Nothing> {
    if (scale.role == messages::Role::kRollout) return Nothing{};
    return stands(scale);
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "reward stands");
}

TEST(ScaleRoles, ARefusalEndsItAndNamesThoseThatStand) {
  int asked = 0;
  const std::vector<ScaleRole> three{kBoth[0], kBoth[1], kBoth[0]};
  const auto done = scale_roles(three, [&](const ScaleRole& scale) -> Result<Nothing> {
    if (++asked == 1) return stands(scale);
    return Error{ErrorCode::kInvalid, "the job is over"};
  });
  EXPECT_EQ(asked, 2);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(done.error().message, "the job is over; reward stands");
}

TEST(ScaleRoles, AllThatAreDoneAreDone) {
  EXPECT_TRUE(scale_roles(kBoth, [](const ScaleRole&) -> Result<Nothing> { return Nothing{}; }));
}

}  // namespace
}  // namespace tandem::api
