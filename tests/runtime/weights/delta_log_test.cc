// Ways from one version to another, and what a server keeps. Tests runtime/weights/delta_log.h and
// DeltaTrials of delta_maker.h.
#include "runtime/weights/delta_log.h"

#include <gtest/gtest.h>

#include "runtime/weights/delta_maker.h"

namespace tandem::weights {
namespace {

WeightOffer of(std::int64_t version, std::uint64_t lineage = 0) {
  return {.version = {version}, .checksum = 100 * lineage + static_cast<std::uint64_t>(version)};
}
DeltaOffer step(WeightOffer base, WeightOffer next, std::uint64_t bytes = 10) {
  return {.name = {.base = base, .next = next}, .bytes = bytes};
}
std::vector<std::int64_t> way(const std::vector<DeltaOffer>& offered, WeightOffer from,
                              WeightOffer to) {
  std::vector<std::int64_t> versions;
  for (const DeltaOffer& one : changes_between(offered, from, to, 100))
    versions.push_back(one.name.next.version.value);
  return versions;
}

TEST(DeltaLog, ChangesLeadFromVersionToVersion) {
  const std::vector<DeltaOffer> offered{step(of(1), of(2)), step(of(2), of(3)), step(of(3), of(5)),
                                        step(of(2, 1), of(3, 1))};
  using Way = std::vector<std::int64_t>;
  EXPECT_EQ(way(offered, of(1), of(5)), (Way{2, 3, 5}));
  EXPECT_EQ(way(offered, of(3), of(5)), Way{5});
  EXPECT_EQ(way(offered, of(5), of(5)), Way{}) << "it is there";
  EXPECT_EQ(way(offered, of(0), of(5)), Way{}) << "the base is not known";
  EXPECT_EQ(way(offered, of(5), of(3)), Way{}) << "backwards";
  EXPECT_EQ(way(offered, of(1, 1), of(3)), Way{}) << "of another lineage";
  EXPECT_EQ(way(offered, of(2, 1), of(3, 1)), Way{3});
}

TEST(DeltaLog, ChangesThatAreNotSmallerThanTheVersionAreNoWay) {
  const std::vector<DeltaOffer> offered{step(of(1), of(2), 50), step(of(2), of(3), 49),
                                        step(of(3), of(4), 1)};
  EXPECT_EQ(way(offered, of(1), of(3)).size(), 2u);
  EXPECT_EQ(way(offered, of(1), of(4)).size(), 0u);
}

TEST(DeltaLog, ACircleOrAnImpossibleSizeIsNoWay) {
  EXPECT_TRUE(way({step(of(2), of(3)), step(of(3), of(2))}, of(1), of(3)).empty());
  EXPECT_TRUE(way({step(of(3), of(3))}, of(1), of(3)).empty());
  EXPECT_TRUE(way({step(of(1), of(2), ~0ull), step(of(2), of(3), 2)}, of(1), of(3)).empty());
}

TEST(DeltaLog, KeepsTheNewestWithinItsBound) {
  DeltaLog log(100);
  for (std::int64_t i = 0; i < 10; ++i)
    log.add({.name = step(of(i), of(i + 1)).name, .bytes = std::vector<std::byte>(30)});
  ASSERT_EQ(log.offers().size(), 3u);
  EXPECT_EQ(log.offers()[0].name, step(of(7), of(8)).name);
  EXPECT_EQ(log.offers()[0].bytes, 30u);
  EXPECT_FALSE(log.find(step(of(6), of(7)).name));
  EXPECT_TRUE(log.find(step(of(9), of(10)).name));
  log.add({.name = step(of(10), of(11)).name, .bytes = std::vector<std::byte>(101)});
  EXPECT_TRUE(log.offers().empty()) << "one that is too large alone";
}

TEST(DeltaLog, VersionsThatChangeTooMuchAreComparedEverMoreRarely) {
  DeltaTrials trials;
  int compared = 0;
  for (int version = 0; version < 1000; ++version)
    if (trials.next()) {
      ++compared;
      trials.done(false);
    }
  EXPECT_LT(compared, 25);
  while (!trials.next()) {
  }
  trials.done(true);
  EXPECT_TRUE(trials.next()) << "one that changed little: so may the next";
}

}  // namespace
}  // namespace tandem::weights
