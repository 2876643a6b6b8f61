#include "actors/exchange/worker_roles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tandem::exchange {
namespace {

using messages::Role;

// WorkersFacts::all() goes over the roles of training, so that a row of another role would be
// passed by when leases expire and actors drain; a role without a row would never get work.
TEST(WorkerRoles, AreTheRolesOfTrainingButForTheLearner) {
  std::vector<Role> rows{Role::kLearner},
      roles(std::begin(messages::kTrainingRoles), std::end(messages::kTrainingRoles));
  for (const WorkerRole& row : kWorkerRoles) {
    rows.push_back(row.role);
    EXPECT_TRUE(row.lease && row.load) << name(row.role);
  }
  std::ranges::sort(rows);
  std::ranges::sort(roles);
  EXPECT_EQ(rows, roles);
}

}  // namespace
}  // namespace tandem::exchange
