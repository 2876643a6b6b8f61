#include "runtime/sandbox/layers.h"

#include <gtest/gtest.h>

namespace tandem::sandbox {
namespace {

const Layers kAll{.namespaces = Namespaces::kOfRoot,
                  .landlock_abi = 7,
                  .seccomp = true,
                  .own_uid = true,
                  .pids_group = true,
                  .memory_group = true};

Layers without_namespaces() {
  Layers layers = kAll;
  layers.namespaces = Namespaces::kNone;
  layers.no_namespaces = "starting a process: Operation not permitted";
  return layers;
}

TEST(Layers, AreToldInOneLineWithWhatLacks) {
  EXPECT_EQ(text(kAll), "namespaces, own uid, Landlock 7, seccomp, rlimits, cgroups pids+memory");
  Layers layers = without_namespaces();
  layers.own_uid = layers.pids_group = layers.memory_group = false;
  EXPECT_EQ(text(layers),
            "Landlock 7, seccomp, rlimits, memory watched; lacks: namespaces (starting a process: "
            "Operation not permitted)");
  EXPECT_EQ(text(*plan_of(SandboxMode::kStrict, kAll)), "strict: " + text(kAll));
}

TEST(Layers, StrictRefusesWithLess_XB1) {
  EXPECT_TRUE(plan_of(SandboxMode::kStrict, kAll));
  Layers no_landlock = kAll, no_seccomp = kAll, no_cgroups = kAll;
  no_landlock.landlock_abi = 0;
  no_seccomp.seccomp = false;
  no_cgroups.pids_group = no_cgroups.memory_group = false;
  for (const Layers& less : {without_namespaces(), no_landlock, no_seccomp}) {
    const auto plan = plan_of(SandboxMode::kStrict, less);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
    EXPECT_NE(plan.error().help.find("`auto`"), std::string::npos) << plan.error().help;
  }
  EXPECT_NE(plan_of(SandboxMode::kStrict, no_landlock).error().message.find("lacks Landlock"),
            std::string::npos);
  EXPECT_TRUE(plan_of(SandboxMode::kStrict, no_cgroups)) << "rlimits stand in for them";
}

TEST(Layers, AutoTakesWhatThereIsDownToAMinimum_XB1) {
  EXPECT_TRUE(plan_of(SandboxMode::kAuto, without_namespaces()));
  Layers no_landlock = kAll, neither = without_namespaces(), no_seccomp = kAll;
  no_landlock.landlock_abi = neither.landlock_abi = 0;
  no_seccomp.seccomp = false;
  EXPECT_TRUE(plan_of(SandboxMode::kAuto, no_landlock));
  EXPECT_FALSE(plan_of(SandboxMode::kAuto, neither));
  const auto refused = plan_of(SandboxMode::kAuto, no_seccomp);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().help.find("`off`"), std::string::npos) << refused.error().help;
}

TEST(Layers, ASandboxWithALinkNeedsNamespaces_XB1) {
  EXPECT_TRUE(may_have_sockets(*plan_of(SandboxMode::kAuto, kAll)));
  const auto may = may_have_sockets(*plan_of(SandboxMode::kAuto, without_namespaces()));
  ASSERT_FALSE(may);
  EXPECT_NE(may.error().message.find("lacks namespaces"), std::string::npos);
}

TEST(Layers, DecideHowAllProcessesEnd) {
  Layers layers = kAll;
  const auto end = [&] { return plan_of(SandboxMode::kAuto, layers)->end; };
  EXPECT_EQ(end(), EndOfAll::kPidNamespace);
  layers.namespaces = Namespaces::kNone;
  EXPECT_EQ(end(), EndOfAll::kUid);
  layers.own_uid = false;
  EXPECT_EQ(end(), EndOfAll::kLandlockDomain);
  layers.landlock_abi = kLandlockAbiOfScopes - 1;
  EXPECT_EQ(end(), EndOfAll::kNoForks);
}

}  // namespace
}  // namespace tandem::sandbox
