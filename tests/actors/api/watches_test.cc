// Tests the cost of many watches: one picture for all of them, and for each the states of the
// objects that exist.
#include "actors/api/watches.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace tandem::api {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class KeptLines final : public http::HttpStream {
 public:
  bool write(std::string line) override {
    lines.push_back(std::move(line));
    return true;
  }
  void close() override {}
  bool open() const override { return true; }
  std::size_t unsent_bytes() const override { return 0; }
  std::vector<std::string> lines;
};

json group(int number, const char* state, double age_s = 0) {
  return {{"job", "j-1"}, {"group", number}, {"state", state}, {"age_s", age_s}};
}

TEST(Watch, TellsWhatChangesAndNotTheTimeAlone) {
  Watch watch;
  KeptLines out;
  const auto told = [&](const json& items) {
    out.lines.clear();
    EXPECT_TRUE(watch.tell(watched_objects(items), out));
    return out.lines.size();
  };
  EXPECT_EQ(told({group(1, "rolling"), group(2, "rolling")}), 2u);
  EXPECT_EQ(told({group(1, "rolling", 5), group(2, "rolling", 5)}), 0u) << "older, and no more";
  EXPECT_EQ(told({group(1, "rolling", 5), group(2, "scored", 5)}), 1u);
  EXPECT_EQ(parse_json(out.lines[0]), group(2, "scored", 5));
  EXPECT_EQ(told({group(1, "rolling"), group(2, "rolling")}), 1u) << "back as before";
}

TEST(Watch, ForgetsWhatIsGone) {
  Watch watch;
  KeptLines out;
  for (int number = 0; number < 1000; ++number) {
    ASSERT_TRUE(
        watch.tell(watched_objects({group(number, "rolling"), group(number + 1, "rolling")}), out));
    ASSERT_EQ(watch.objects_remembered(), 2u);
  }
  EXPECT_EQ(out.lines.size(), 1001u);
}

TEST(WatchedRound, TakesOnePictureForAllWatchesOfARound) {
  int taken = 0;
  bool answers = true;
  WatchedRound watched([&]() -> Result<Picture> {
    ++taken;
    if (!answers) return Error{ErrorCode::kTimedOut, "no answer"};
    Picture picture;
    picture.cluster.nodes.emplace_back().name = "here";
    return picture;
  });
  for (int round = 1; round <= 3; ++round)
    for (int watch = 0; watch < 240; ++watch) {
      const Time time = Time{} + round * 1s;
      ASSERT_NE(watched.objects(time, "jobs", ""), nullptr);
      ASSERT_EQ(watched.objects(time, "nodes", "")->size(), 1u);
      ASSERT_EQ(watched.objects(time, "nodes", "here")->size(), 1u);
      EXPECT_EQ(watched.objects(time, "nodes", "there"), nullptr);
      EXPECT_EQ(taken, round);
    }
  answers = false;
  EXPECT_EQ(watched.objects(Time{} + 1h, "jobs", ""), nullptr);
}

}  // namespace
}  // namespace tandem::api
