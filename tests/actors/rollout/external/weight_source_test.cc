// The folder that a rollout writes for its server; the other ways are tested with servers.
#include "actors/rollout/external/weight_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "actors/model/safetensors.h"

namespace tandem::rollout {
namespace {

namespace fs = std::filesystem;

struct ByFolder {
  fs::path folder = fs::path(testing::TempDir()) / ("source-" + std::to_string(getpid()));
  device::Manifest manifest;
  std::vector<std::byte> arena;

  ByFolder() {
    manifest.add("a", device::DType::kF32, {3});
    manifest.add("b", device::DType::kBF16, {2, 2});
    arena.resize(manifest.bytes_total);
    for (std::size_t i = 0; i < arena.size(); ++i) arena[i] = static_cast<std::byte>(i);
  }
  ~ByFolder() { fs::remove_all(folder); }

  std::unique_ptr<WeightSource> source() const {
    auto made = make_weight_source(WeightTransfer::kDisk, {.manifest = manifest, .folder = folder});
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  Result<OfferedWeights> offer(WeightSource& source, const std::string& name) const {
    std::promise<Result<OfferedWeights>> done;
    source.offer(arena, name, [&](auto offered) { done.set_value(std::move(offered)); });
    return done.get_future().get();
  }
};

TEST(FolderSource, HasOneVersionAtATimeUnderItsNameAndLeavesNothing) {
  const ByFolder by;
  fs::create_directories(by.folder / "left-by-another");
  {
    const auto source = by.source();
    EXPECT_FALSE(fs::exists(by.folder / "left-by-another"));
    for (const std::string name : {"us-0-1", "us-1-2"}) {
      const auto offered = by.offer(*source, name);
      ASSERT_TRUE(offered) << offered.error().message;
      EXPECT_EQ(offered->folder, by.folder / name);
      const auto file = model::SafetensorsFile::open(offered->folder / "model.safetensors");
      ASSERT_TRUE(file) << file.error().message;
      EXPECT_EQ(file->entries().at("a").dtype, "F32");
      EXPECT_EQ(file->entries().at("b").dtype, "BF16");
      EXPECT_EQ(file->entries().at("b").shape, (std::vector<std::int64_t>{2, 2}));
      EXPECT_EQ(std::distance(fs::directory_iterator(by.folder), {}), 1);
    }
    source->withdraw();
    EXPECT_TRUE(fs::is_empty(by.folder));
  }
  EXPECT_FALSE(fs::exists(by.folder));
}

TEST(FolderSource, ATensorsBytesAreThoseOfTheArena) {
  const ByFolder by;
  const auto source = by.source();
  ASSERT_TRUE(by.offer(*source, "v"));
  const auto file = model::SafetensorsFile::open(by.folder / "v/model.safetensors");
  ASSERT_TRUE(file);
  std::vector<float> values(3);
  ASSERT_TRUE(file->read("a", values));
  EXPECT_EQ(std::memcmp(values.data(), by.arena.data(), 12), 0);
}

// A rollout that is killed leaves a version, as large as the model.
TEST(FolderSource, FoldersOfRolloutsThatHaveDiedOnThisHostAreRemoved) {
  const ByFolder by;
  const auto source_at = [&](const char* folder) {
    return make_weight_source(WeightTransfer::kDisk, {.manifest = by.manifest,
                                                      .folder = by.folder / folder,
                                                      .timeout = std::chrono::milliseconds(50)});
  };
  const auto leave = [&](const char* folder) {
    fs::create_directories(by.folder / folder / "version");
    std::ofstream(by.folder / (std::string(folder) + ".lock")) << "4711";
  };
  for (const char* left : {"tandem-b/rollout-1@here", "tandem-a/rollout-0@here",
                           "tandem-a/rollout-0@there", "other/rollout-0@here", "tandem-a/somebody"})
    leave(left);
  auto alive = source_at("tandem-b/rollout-0@here");
  ASSERT_TRUE(alive) << alive.error().message;
  ASSERT_TRUE(by.offer(**alive, "v"));
  const auto later = source_at("tandem-b/rollout-2@here");
  ASSERT_TRUE(later) << later.error().message;
  for (const char* gone : {"tandem-b/rollout-1@here", "tandem-a/rollout-0@here"})
    EXPECT_FALSE(fs::exists(by.folder / gone)) << gone;
  for (const char* kept : {"tandem-a/rollout-0@there", "other/rollout-0@here", "tandem-a/somebody",
                           "tandem-b/rollout-0@here/v"})
    EXPECT_TRUE(fs::exists(by.folder / kept)) << kept;
  const auto second = source_at("tandem-b/rollout-0@here");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kTimedOut) << "another start may find it free";
  EXPECT_TRUE(fs::exists(by.folder / "tandem-b/rollout-0@here/v"));
}

TEST(FolderSource, AVersionThatCannotBeWrittenSaysWhereAndWhatToDo) {
  const ByFolder by;
  const auto source = by.source();
  fs::remove_all(by.folder);
  std::ofstream(by.folder) << "in the way";
  const auto offered = by.offer(*source, "v");
  ASSERT_FALSE(offered);
  EXPECT_EQ(offered.error().where, by.folder / "v");
  EXPECT_NE(offered.error().help.find("rollout.engine.weights_dir"), std::string::npos);
  source->withdraw();
  const auto second = make_weight_source(WeightTransfer::kDisk,
                                         {.manifest = by.manifest, .folder = by.folder / "x"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tandem::rollout
