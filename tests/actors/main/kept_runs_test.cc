#include "actors/main/kept_runs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/json.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class KeptRuns : public testing::Test {
 protected:
  KeptRuns() {
    std::string pattern = testing::TempDir() + "kept_runs.XXXXXX";
    home_ = ::mkdtemp(pattern.data());
    ::setenv("TANDEM_HOME", home_.c_str(), 1);
    ::unsetenv("TANDEM_ADDRESS");
    for (const auto& [id, reward] : {std::pair("sums-1", 0.25), std::pair("words-1", 0.5)}) {
      fs::create_directories(home_ / "runs" / id);
      std::ofstream(home_ / "runs" / id / "result.json")
          << json{{"state", "Succeeded"}, {"steps", 5}, {"reward_mean", reward}};
    }
  }
  ~KeptRuns() override {
    ::unsetenv("TANDEM_HOME");
    fs::remove_all(home_);
  }
  Result<json> list(GetCommand command) {
    command.kind = Kind::kRuns;
    command.output = OutputForm::kJson;
    std::ostringstream out, err;
    const auto listed = list_kept_runs(command, {out, err, false, {}});
    if (!listed) return listed.error();
    return parse_json(out.str());
  }
  fs::path home_;
};

TEST_F(KeptRuns, AreListedFromTheirFiles) {
  const json all = list({.sort_by = "-reward_mean"}).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["id"], "words-1");
  EXPECT_EQ(all[0]["state"], "Succeeded");
  EXPECT_EQ(all[0]["step"], 5);
  EXPECT_EQ(list({.name = "sums-1"}).value()["id"], "sums-1");
  EXPECT_EQ(list({.job = "sums"}).value().size(), 1U);
  EXPECT_EQ(list({.name = "other"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(list({.sort_by = "height"}).error().code, ErrorCode::kInvalid);
}

TEST_F(KeptRuns, AnswerOnlyForThisHome) {
  Invocation get{.command = GetCommand{.kind = Kind::kRuns}};
  EXPECT_TRUE(lists_runs_of_this_home(get));
  get.address = "10.0.0.1:7070";
  EXPECT_FALSE(lists_runs_of_this_home(get)) << "another machine's runs were asked for";
  EXPECT_FALSE(lists_runs_of_this_home({.command = GetCommand{.kind = Kind::kJobs}}));
  ::setenv("TANDEM_ADDRESS", "10.0.0.1:7070", 1);
  EXPECT_FALSE(lists_runs_of_this_home({.command = GetCommand{.kind = Kind::kRuns}}));
  ::unsetenv("TANDEM_ADDRESS");
}

}  // namespace
}  // namespace tandem::app
