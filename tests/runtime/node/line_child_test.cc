#include "runtime/node/line_child.h"

#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "runtime/node/daemon.h"

namespace tandem::node {
namespace {

using namespace std::chrono_literals;

// The kernel takes the end of the thread that started a program for that of its process.
TEST(LineChild, OutlivesTheThreadThatAsksForIt) {
  link::IoThread io;
  std::promise<std::string> said;
  std::unique_ptr<LineChild> child;
  std::thread([&] {
    child = process_spawner(io)({.argv = {"cat"}},
                                {.line = [&](const std::string& l) { said.set_value(l); },
                                 .ended = [&](const ChildEnd& end) { said.set_value(end.why); }})
                .value();
  }).join();
  child->write_line("still here");
  auto answer = said.get_future();
  ASSERT_EQ(answer.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(answer.get(), "still here");
}

// A shell script that waits for the program that does the work.
TEST(LineChild, EndsWithAllThatItHasStarted) {
  link::IoThread io;
  std::promise<std::string> said;
  auto child =
      process_spawner(io)({.argv = {"sh", "-c", "sh -c 'sleep 1000 & echo $!; wait' & wait"}},
                          {.line = [&](const std::string& l) { said.set_value(l); },
                           .ended = [](const ChildEnd&) {}})
          .value();
  auto grandchild = said.get_future();
  ASSERT_EQ(grandchild.wait_for(100s), std::future_status::ready);
  const ProcessEnd end(std::stoi(grandchild.get()));
  EXPECT_FALSE(end.wait_until(steady_now()));
  child.reset();
  EXPECT_TRUE(end.wait_until(steady_now() + 100s));
  end.signal(SIGKILL);
}

}  // namespace
}  // namespace tandem::node
