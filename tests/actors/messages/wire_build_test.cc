#include "actors/messages/wire_build.h"

#include <gtest/gtest.h>

namespace tandem::messages {
namespace {

TEST(WireBuild, names_the_protocol_and_the_hash_of_the_schema) {
  const std::string build = wire_build();
  EXPECT_TRUE(build.starts_with("tandem-wire " + std::to_string(kWireProtocol) + "/")) << build;
  EXPECT_EQ(build.substr(build.find('/') + 1).size(), 16u) << build;
  EXPECT_EQ(build, wire_build());
}

}  // namespace
}  // namespace tandem::messages
