#include "actors/runs/sample_index.h"

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kSampleMarks = 8 * kMarkBytes;

class SampleIndexTest : public testing::Test {
 protected:
  void append(const std::string& text) const { folder_.append(run_ / "samples.jsonl", text); }
  json page(const SampleQuery& query) {
    EXPECT_TRUE(index_.refresh(run_));
    auto page = index_.page(run_, query);
    EXPECT_TRUE(page.has_value());
    return page ? std::move(*page) : json();
  }
  static std::vector<int> numbers(const json& page) {
    std::vector<int> numbers;
    for (const json& sample : page) numbers.push_back(sample["seq"]);
    return numbers;
  }

  const RunFolder folder_;
  const fs::path run_ = folder_.run("a-1");
  SampleIndex index_;
};

using Numbers = std::vector<int>;

TEST_F(SampleIndexTest, APageReadsItsOwnLines) {  // SX-1
  std::string text;
  for (int i = 1; i <= 20'000; ++i)
    text += R"({"step":)" + std::to_string(i / 8) + R"(,"completion":")" + std::string(200, 'x') +
            "\"}\n";
  append(text);
  EXPECT_EQ(page({.limit = 2}).size(), 2U);
  EXPECT_LE(index_.bytes_read(), text.size() + 1000 + kSampleMarks);
  const std::uint64_t before = index_.bytes_read();
  EXPECT_EQ(numbers(page({.step = 10, .limit = 3})), (Numbers{87, 86, 85}));
  EXPECT_LE(index_.bytes_read() - before, 1000 + kSampleMarks);

  index_.keep(run_, true);
  SampleIndex next;
  ASSERT_TRUE(next.refresh(run_));
  EXPECT_EQ(next.size(), 20'000U);
  EXPECT_LE(next.bytes_read(), kSampleMarks);
}

TEST_F(SampleIndexTest, PagesGoBackFromTheNewest) {  // SX-2
  for (int i = 1; i <= 10; ++i) append("{\"step\":" + std::to_string(i) + "}\n");
  EXPECT_EQ(numbers(page({.limit = 3})), (Numbers{10, 9, 8}));
  append("{\"step\":11}\n");
  EXPECT_EQ(numbers(page({.before = 8, .limit = 3})), (Numbers{7, 6, 5}));
  EXPECT_EQ(numbers(page({.before = 3, .limit = 5})), (Numbers{2, 1}));
  EXPECT_TRUE(page({.before = 1}).empty());
  EXPECT_EQ(numbers(page({.before = 1000, .limit = 1})), Numbers{11});
}

TEST_F(SampleIndexTest, KindsAreToldApart) {
  append(
      "{\"step\":1,\"reward\":1}\n{\"step\":1,\"eval\":\"last\",\"reward\":0}\n"
      "{\"step\":2,\"error\":\"hung\"}\n{\"step\":2,\"eval\":\"last\",\"error\":\"hung\"}\n");
  EXPECT_EQ(numbers(page({})), (Numbers{4, 3, 2, 1}));
  EXPECT_EQ(numbers(page({.evaluation = false})), (Numbers{3, 1}));
  EXPECT_EQ(numbers(page({.evaluation = true})), (Numbers{4, 2}));
  EXPECT_EQ(numbers(page({.evaluation = true, .failed = true})), Numbers{4});
  EXPECT_EQ(numbers(page({.step = 1, .evaluation = false})), Numbers{1});
}

TEST_F(SampleIndexTest, DamagedLinesAndIndexesAreNoSamples) {
  append("{\"step\":1}\n\xff\xfe\nnull\n{\"prompt\":\"\xc3\x28\"}\n{\"step\":3}\n{\"step\":4");
  const json found = page({});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front()["step"], 3);
  EXPECT_EQ(found.back()["step"], 1);
  index_.keep(run_, true);
  folder_.replace(run_ / "samples.index", "rubbish");
  SampleIndex next;
  ASSERT_TRUE(next.refresh(run_));
  EXPECT_EQ(next.size(), index_.size());
  fs::remove(run_ / "samples.jsonl");
  EXPECT_TRUE(page({}).empty());
}

}  // namespace
}  // namespace tandem::runs
