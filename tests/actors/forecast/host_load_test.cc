// Tests actors/forecast/host_load.h.
#include "actors/forecast/host_load.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"

namespace tandem::forecast {
namespace {

struct Work {
  double s = 0;
};

// An actor that does its work and writes down when it ends.
class Worker {
 public:
  using Inbox = std::variant<Work>;
  Worker(HostLoad& host, double threads, std::vector<double>& ends)
      : host_(host), threads_(threads), ends_(ends) {}
  ~Worker() { host_.leave(worker_); }
  void handle(actor::Context& cx, Work work) {
    if (worker_ == WorkerId{}) worker_ = host_.join(cx, threads_);
    piece_ = host_.begin(worker_, work.s, [this](actor::Context& then) {
      ends_.push_back(seconds(then.now() - Time{}));
    });
  }

 private:
  HostLoad& host_;
  const double threads_;
  std::vector<double>& ends_;
  WorkerId worker_;
  PieceId piece_;
};

struct World {
  explicit World(double cores) : host(executor, cores), system(executor, {}) {}
  actor::Ref<Worker::Inbox> start(const std::string& name, double threads, double work_s) {
    auto worker = system.spawn<Worker>(
        name, [this, threads] { return std::make_unique<Worker>(host, threads, ends); });
    (void)worker.tell(Work{work_s});
    return worker;
  }
  void run_to(double s) {
    executor.run_until([] { return false; }, Time{} + duration_of(s) - executor.now());
  }

  actor::SimulatedExecutor executor{1};
  std::vector<double> ends;
  HostLoad host;
  actor::System system;
};

TEST(HostLoad, WorkThatIsUnderWayIsSlowedAtOnce) {
  World world(1);
  world.start("a", 1, 1);
  world.executor.at(Time{} + duration_of(0.5), [&] { world.start("b", 1, 2); });
  world.run_to(10);
  // Half of a's work is left, and takes a second beside b.
  EXPECT_EQ(world.ends, (std::vector<double>{1.5, 3}));
}

TEST(HostLoad, AnActorThatEndsLeavesTheCoresToTheOthers) {
  World world(1);
  world.start("a", 1, 1);
  world.start("b", 1, 5);
  world.executor.at(Time{} + duration_of(1), [&] { world.system.stop("b"); });
  world.run_to(10);
  EXPECT_EQ(world.ends, (std::vector<double>{1.5}));
}

TEST(HostLoad, WithoutSharedCoresNothingIsSlower) {
  World world(0);
  world.start("a", 1000, 1);
  world.start("b", 1000, 2);
  world.run_to(10);
  EXPECT_EQ(world.ends, (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace tandem::forecast
