#include "actors/main/state_folder.h"

#include <gtest/gtest.h>

#include "runtime/wire/codec.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::app {
namespace {

class StateFolderTest : public testing::Test {
 protected:
  std::unique_ptr<StateFolder> claim() {
    auto claimed = StateFolder::claim(folder_.home);
    EXPECT_TRUE(claimed.has_value()) << claimed.error().message;
    return claimed ? *std::move(claimed) : nullptr;
  }
  nlohmann::json file() const {
    const auto text = read_file(folder_.home / "controller.json");
    return text ? parse_json(*text) : nlohmann::json();
  }
  // What a controller that was killed leaves.
  void die_with(const nlohmann::json& content) {
    ASSERT_TRUE(write_file_atomic(folder_.home / "controller.json", content.dump()).has_value());
  }

  const runs::RunFolder folder_;
};

const nlohmann::json kDead{
    {"pid", 4711}, {"control", "127.0.0.1:7420"}, {"http", "127.0.0.1:7422"}, {"nonce", "a nonce"}};

// The second controller dies before it is up; the third finds what the first one left.
TEST_F(StateFolderTest, PortsAndNonceOutliveAStartThatFailed) {
  die_with(kDead);
  for (int start = 0; start < 2; ++start) {
    const auto folder = claim();
    EXPECT_EQ(folder->former().control, 7420);
    EXPECT_EQ(folder->former().http, 7422);
    EXPECT_EQ(folder->former().nonce, "a nonce");
    EXPECT_FALSE(file().contains("pid")) << "nobody is sent to the dead controller's address";
    EXPECT_FALSE(file().contains("http"));
  }
  {
    const auto folder = claim();
    ASSERT_TRUE(folder->announce({{"pid", 1}}).has_value());
  }
  EXPECT_TRUE(file().is_null()) << "a controller that ends in order leaves no file";
  EXPECT_EQ(claim()->former().http, 0);
}

// The journal of a controller that lives for weeks does not grow with what happened.
TEST_F(StateFolderTest, RowsOfChangesThatAreOverGo) {
  const auto folder = claim();
  controller::DurableState expected;
  for (std::uint64_t step = 1; step <= 60; ++step) {
    std::vector<controller::DurableEvent> changes;
    for (std::uint64_t i = 1; i <= 500; ++i) {
      changes.push_back(controller::NodeJoined{"node-" + std::to_string(i)});
      changes.push_back(controller::IncarnationsReserved{500 * step + i});
      if (i > 3) changes.push_back(controller::NodeLeft{"node-" + std::to_string(i)});
    }
    for (const auto& change : changes) expected.apply(change);
    ASSERT_TRUE(folder->remember(changes));
  }
  const auto kept = folder->journal().state(controller::kDurableSchema);
  ASSERT_TRUE(kept);
  EXPECT_LT(kept->rows.size(), 6000u) << "of 90,000 changes";
  controller::DurableState read;
  for (const runs::StateRow& row : kept->rows)
    read.apply(wire::decode<controller::DurableEvent>(row.body).value());
  EXPECT_EQ(read, expected);
  EXPECT_EQ(folder->remembered(), expected);
}

TEST_F(StateFolderTest, AFileOfAnotherFormIsNoFormerController) {
  for (const nlohmann::json& odd :
       {nlohmann::json::array(), nlohmann::json("text"), nlohmann::json{{"http", 5}, {"nonce", {}}},
        nlohmann::json{{"http", "nowhere"}, {"control", "unix:/tmp/a"}}}) {
    die_with(odd);
    const auto folder = claim();
    EXPECT_EQ(folder->former().http, 0) << odd;
    EXPECT_EQ(folder->former().control, 0) << odd;
  }
}

TEST_F(StateFolderTest, WhatIsRememberedIsThatOfTheNextWithoutDamagedRows) {
  {
    const auto folder = claim();
    const std::vector<controller::DurableEvent> events{
        controller::JobTaken{.job = "a-1", .run_dir = "/a", .yaml = "x"},
        controller::NodeJoined{"vm"}};
    ASSERT_TRUE(folder->remember(events));
    EXPECT_FALSE(StateFolder::claim(folder_.home).has_value()) << "one at a time";
  }
  {
    const auto folder = claim();
    EXPECT_EQ(folder->remembered().jobs().size(), 1u);
    EXPECT_TRUE(folder->remembered().nodes().contains("vm"));
    EXPECT_EQ(folder->forgotten(), "");
    const runs::StateRow damaged{"job_taken", "b-1", "no event"};
    ASSERT_TRUE(folder->journal().append({damaged}, controller::kDurableSchema, 1).has_value());
    const runs::StateRow other{"job_taken", "c-1", "of another version"};
    ASSERT_TRUE(folder->journal().append({other}, controller::kDurableSchema + 1, 1).has_value());
  }
  const auto folder = claim();
  EXPECT_EQ(folder->remembered().jobs().size(), 1u);
  EXPECT_NE(folder->forgotten(), "");
  const auto rows = folder->journal().state(controller::kDurableSchema + 1);
  EXPECT_EQ(rows->rows.size(), 1u) << "rows of another version are left for it";
}

// A row that was lost between two others leaves rows that all can be read.
TEST_F(StateFolderTest, RowsThatAreNotThoseThatWereWrittenAreToldByTheHash_CC7) {
  const std::vector<controller::DurableEvent> events{
      controller::JobTaken{.job = "a-1", .run_dir = "/a", .yaml = "x"},
      controller::NodeJoined{"vm"}};
  ASSERT_TRUE(claim()->remember(events));
  {
    const auto folder = claim();  // writes the fewest rows and their hash
    EXPECT_EQ(folder->forgotten(), "");
    const auto kept = folder->journal().state(controller::kDurableSchema);
    ASSERT_TRUE(kept);
    ASSERT_EQ(kept->rows.size(), 3u);
    EXPECT_EQ(kept->rows.back().kind, "state_hash");
    const std::vector<runs::StateRow> without{kept->rows[0], kept->rows[2]};
    ASSERT_TRUE(folder->journal().replace_state(without, controller::kDurableSchema, 1));
  }
  {
    const auto folder = claim();
    EXPECT_NE(folder->forgotten(), "");
    EXPECT_EQ(folder->remembered().jobs().size(), 1u) << "the rest is taken up";
  }
  EXPECT_EQ(claim()->forgotten(), "") << "it is said once";
}

TEST_F(StateFolderTest, ManyChangesLeaveFewRows) {
  {
    const auto folder = claim();
    for (int i = 0; i < 5000; ++i) {
      const std::vector<controller::DurableEvent> events{
          controller::NodeJoined{"node-" + std::to_string(i % 7)}};
      ASSERT_TRUE(folder->remember(events));
    }
    const auto kept = folder->journal().state(controller::kDurableSchema);
    ASSERT_TRUE(kept);
    EXPECT_LT(kept->rows.size(), 1200u);
    EXPECT_EQ(folder->remembered().nodes().size(), 7u);
  }
  EXPECT_EQ(claim()->remembered().nodes().size(), 7u);
}

}  // namespace
}  // namespace tandem::app
