// A cluster under attack (attacks.py): every attack is held, and the job trains on to the weights
// that it would have had undisturbed.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

constexpr int kAttackedSteps = 60;
constexpr int kHeldAt = 20;  // the attacks come while the job can neither end nor stand still

const Words kRepeatable = sets({"async.schedule=fixed_lag", "data.val_files=[]"});

TEST(Attacks, AreHeldAndTheJobTrainsOnAsUndisturbed) {
  Home calm;
  const auto undisturbed = calm.train(kSmallId, small_job(kAttackedSteps) + kRepeatable);

  Home home;
  home.up();
  const Finished submitted =
      home.run(Words{"submit"} + small_job(kAttackedSteps) + kRepeatable + held(home, kHeldAt));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  ASSERT_EQ(home.run({"wait", kSmallId, "--for", "Running", "--timeout", "90s"}).code, 0);
  const Finished attacked =
      home.start_program({"python3", "-B", std::string(TANDEM_SOURCE_DIR) + "/tests/e2e/attacks.py",
                          home.path().string(), kSmallId})
          .wait();
  EXPECT_EQ(attacked.code, 0) << attacked.text();
  let_go(home);
  EXPECT_EQ(home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"}).code, 0);
  const auto result = home.result_of(kSmallId);
  EXPECT_EQ(result["steps"], kAttackedSteps);
  EXPECT_EQ(result["weights_sha256"], undisturbed["weights_sha256"]);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  home.down();
  home.expect_nothing_left();
}

// A state folder or token that others may read is refused, or made private, before anything
// listens.
TEST(Attacks, ATokenThatOthersCanReadIsRefused) {
  Home home;
  home.up();
  home.down();
  const auto token = home.path() / "token";
  std::filesystem::permissions(token, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  const Finished refused = home.run({"up", "--port", "0"});
  EXPECT_EQ(refused.code, 1) << refused.text();
  EXPECT_NE(refused.text().find("others may read"), std::string::npos) << refused.text();
}

TEST(Attacks, WithoutTheTokenACommandEndsWith4) {
  Home home;
  home.up();
  const std::string token = (home.path() / "token").string();
  std::filesystem::rename(token, token + ".away");
  const Finished refused = home.run({"get", "jobs"});
  EXPECT_EQ(refused.code, 4) << refused.text();
  EXPECT_NE(refused.text().find("TANDEM_TOKEN"), std::string::npos) << refused.text();
  std::filesystem::rename(token + ".away", token);
  EXPECT_EQ(home.run({"get", "jobs"}).code, 0);
  home.down();
}

}  // namespace
}  // namespace tandem::e2e
