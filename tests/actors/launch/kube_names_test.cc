#include "actors/launch/kube_names.h"

#include <gtest/gtest.h>

namespace tandem::launch {
namespace {

TEST(KubeNames, OfAJob) {
  for (const char* text : {"a", "arithmetic-grpo", "a1", "a-1-b"}) EXPECT_EQ(not_a_name(text), "");
  for (const char* text : {"", "1a", "-a", "a-", "A", "a_b", "a.b", "a b", "a\n", "\xc3\xa9"})
    EXPECT_NE(not_a_name(text), "") << text;
  EXPECT_EQ(not_a_name(std::string(42, 'a')), "");
  EXPECT_NE(not_a_name(std::string(43, 'a')), "");
}

TEST(KubeNames, OfOtherObjects) {
  for (const char* text : {"1a", "team-a"}) EXPECT_EQ(not_a_label(text), "");
  for (const char* text : {"", "a.b", "A", "a-"}) EXPECT_NE(not_a_label(text), "") << text;
  EXPECT_NE(not_a_label(std::string(64, 'a')), "");
  for (const char* text : {"shared.data", "fast-1"}) EXPECT_EQ(not_an_objects_name(text), "");
  for (const char* text : {"", ".a", "a.", "a/b", "a: b"})
    EXPECT_NE(not_an_objects_name(text), "") << text;
  EXPECT_NE(not_an_objects_name(std::string(254, 'a')), "");
}

TEST(KubeNames, Quantities) {
  for (const char* text : {"1", "16Gi", "500m", "0.5", "1.5Ti", "100G", "8k"})
    EXPECT_EQ(not_a_quantity(text), "");
  for (const char* text :
       {"", "0", "0.0Gi", "Gi", "-1", "16GiB", "16 Gi", "16gi", "1.2.3", ".5", "1.", "1e3"})
    EXPECT_NE(not_a_quantity(text), "") << text;
}

TEST(KubeNames, Images) {
  for (const char* text : {"tandem", "registry.example:5000/a/tandem:1.0", "t@sha256:01"})
    EXPECT_EQ(not_an_image(text), "");
  for (const char* text : {"", "a b", "a\"b", "a\nb", "a\\b"})
    EXPECT_NE(not_an_image(text), "") << text;
}

}  // namespace
}  // namespace tandem::launch
