#include "runtime/link/curve.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace tandem::link {
namespace {

namespace fs = std::filesystem;

class CurveFiles : public testing::Test {
 protected:
  CurveFiles() {
    std::string pattern = testing::TempDir() + "curve.XXXXXX";
    home_ = ::mkdtemp(pattern.data());
  }
  ~CurveFiles() override { fs::remove_all(home_); }
  fs::path home_;
};

TEST_F(CurveFiles, AreMadeOnceAndFitTogether) {
  const CurveServer server = controller_keys(home_).value();
  const CurveClient node = node_keys(home_).value();
  EXPECT_EQ(node.server_key, curve_keys_of(server.secret_key)->public_key);
  EXPECT_EQ(server.clients, std::vector{node.own.public_key});
  EXPECT_EQ(controller_keys(home_)->secret_key, server.secret_key);
  const CurveClient inherited = parse_curve_client(to_text(node)).value();
  EXPECT_EQ(inherited.own.secret_key, node.own.secret_key);
  EXPECT_EQ(inherited.server_key, node.server_key);
}

TEST_F(CurveFiles, AnotherHostNeedsTheFolderKeysAlone) {
  const CurveServer server = controller_keys(home_).value();
  const fs::path other = home_ / "other";
  fs::create_directory(other);
  fs::copy(home_ / "keys", other / "keys");
  EXPECT_EQ(node_keys(other)->own.public_key, server.clients[0]);
  for (const auto& entry : fs::directory_iterator(other / "keys")) {
    std::ifstream file(entry.path());
    std::string text;
    file >> text;
    EXPECT_NE(text, server.secret_key);
  }
}

TEST_F(CurveFiles, WhatIsMissingDamagedOrOpenToOthersIsNamed) {
  EXPECT_EQ(node_keys(home_).error().code, ErrorCode::kUnauthorised);
  ASSERT_TRUE(controller_keys(home_));
  ASSERT_EQ(::chmod((home_ / "keys/node.secret").c_str(), 0644), 0);
  EXPECT_EQ(node_keys(home_).error().code, ErrorCode::kUnauthorised);
  ASSERT_EQ(::chmod((home_ / "keys/node.secret").c_str(), 0600), 0);
  std::ofstream(home_ / "keys/controller.public") << "nonsense\n";
  EXPECT_EQ(node_keys(home_).error().code, ErrorCode::kUnauthorised);
  ASSERT_TRUE(controller_keys(home_));  // writes the public key again
  EXPECT_TRUE(node_keys(home_));
  std::ofstream(home_ / "controller.secret") << "nonsense\n";
  EXPECT_EQ(controller_keys(home_).error().where, (home_ / "controller.secret").string());
}

}  // namespace
}  // namespace tandem::link
