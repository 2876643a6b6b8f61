// The store as PyTorch's clients use it, and clients that it has to cut off.
#include "runtime/weights/torch_store.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/runtime/weights/store_client.h"

namespace tandem::weights {
namespace {

struct Serving {
  std::unique_ptr<TorchStore> store = *TorchStore::listen();
  StoreClient client() const { return {store->endpoint().host, store->endpoint().port}; }
};

TEST(TorchStore, KeepsKeysForAllOfItsClients) {
  const Serving serving;
  StoreClient one = serving.client(), other = serving.client();
  ASSERT_TRUE(one.greeted() && other.greeted());
  EXPECT_EQ(one.add("init/", 1), 1);
  EXPECT_EQ(other.add("init/", 1), 2);
  EXPECT_EQ(other.get("init/"), "2") << "a sum is a text";
  EXPECT_EQ(one.check({"/a", "init/"}), false);
  EXPECT_TRUE(one.set("/a", std::string("\0\1\2", 3)));
  EXPECT_TRUE(one.set("/empty", ""));
  EXPECT_EQ(one.get("/a"), std::string("\0\1\2", 3)) << "behind what it has set itself";
  EXPECT_EQ(other.get("/empty"), "");
  EXPECT_EQ(other.check({"/a", "init/"}), true);
  serving.store->set("/ours", "id");
  EXPECT_EQ(other.get("/ours"), "id");
  EXPECT_EQ(one.add("/number", -5), -5);
  EXPECT_EQ(one.add("/number", 3), -2);
}

TEST(TorchStore, AClientWaitsForAKeyUntilItIsThere) {
  const Serving serving;
  StoreClient getter = serving.client(), waiter = serving.client();
  ASSERT_TRUE(getter.send('\3' + std::string("\5\0\0\0\0\0\0\0/late", 13)));
  getter.deadline(100);
  EXPECT_EQ(getter.receive(1), std::nullopt) << "nobody has set it";
  getter.deadline(10'000);
  serving.store->set("/late", "x");
  EXPECT_EQ(getter.receive(9), std::string("\1\0\0\0\0\0\0\0x", 9));
  bool waited = false;
  std::thread thread([&] { waited = waiter.wait({"/late", "/later"}); });
  StoreClient other = serving.client();
  EXPECT_EQ(other.check({"/later"}), false);
  EXPECT_TRUE(other.set("/later", "y"));
  thread.join();
  EXPECT_TRUE(waited);
}

// Each request after a wait is heard, also where the key was set at once.
TEST(TorchStore, AClientGoesOnBehindItsWaits) {
  const Serving serving;
  StoreClient one = serving.client();
  for (int i = 0; i < 200; ++i) {
    const std::string key = "/" + std::to_string(i);
    std::thread setter([&] { serving.store->set(key, "v"); });
    EXPECT_EQ(one.get(key), "v");
    EXPECT_EQ(one.check({key}), true);
    setter.join();
  }
}

TEST(TorchStore, AClientThatGoesWhileItWaitsLeavesNothing) {
  const Serving serving;
  for (std::size_t i = 0; i < kTorchStoreClientsMax + 10; ++i) {
    StoreClient leaver = serving.client();
    ASSERT_TRUE(leaver.greeted()) << i << ": its place was not given back";
    ASSERT_TRUE(leaver.send('\3' + std::string("\5\0\0\0\0\0\0\0/none", 13)));
  }
}

TEST(TorchStore, WhateverIsNoRequestIsCutOff) {
  const Serving serving;
  const std::string eight(8, '\xff');
  for (const std::string& bytes : {std::string(1, '\7'), '\1' + eight, '\3' + eight, '\5' + eight,
                                   '\6' + std::string(8, '\0'), '\0' + std::string("GET ")}) {
    StoreClient odd = serving.client();
    ASSERT_TRUE(odd.greeted());
    ASSERT_TRUE(odd.send(bytes));
    EXPECT_EQ(odd.receive(1), std::nullopt);
  }
  StoreClient first = serving.client();
  EXPECT_EQ(first.add("x", 1), 1) << "the others go on";
}

TEST(TorchStore, IsBounded) {
  const Serving serving;
  StoreClient one = serving.client();
  const std::string large(kTorchStoreTextMax, 'v');
  std::size_t kept = 0;
  while (one.set("/" + std::to_string(kept), large) && one.check({"init/"})) ++kept;
  EXPECT_LE(kept * large.size(), kTorchStoreBytesMax);
  EXPECT_GT(kept * large.size(), kTorchStoreBytesMax / 2);
}

// Two processes of PyTorch's make a group at the store, and compute together. Only where a Python
// with PyTorch is named.
TEST(TorchStore, ServesPyTorchs) {
  const char* const python = std::getenv("TANDEM_TORCH_PYTHON");
  if (!python) GTEST_SKIP() << "TANDEM_TORCH_PYTHON names no interpreter";
  const Serving serving;
  const std::string command =
      std::string(python) + " " TANDEM_SOURCE_DIR "/tests/runtime/weights/torch_clients.py " +
      serving.store->endpoint().host + " " + std::to_string(serving.store->endpoint().port);
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(TorchStore, EndsWhileClientsWait) {
  auto serving = std::make_unique<Serving>();
  StoreClient one = serving->client();
  ASSERT_TRUE(one.send('\3' + std::string("\1\0\0\0\0\0\0\0x", 9)));
  serving.reset();
  EXPECT_EQ(one.receive(1), std::nullopt);
}

}  // namespace
}  // namespace tandem::weights
