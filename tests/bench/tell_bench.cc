// tell: messages from outside to an actor of the same process, handled one by one on its executor.
#include <benchmark/benchmark.h>

#include <latch>

#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/check.h"

namespace tandem::bench {
namespace {

constexpr std::int64_t kBatch = 50'000;  // below the mailbox's limit

struct Number {
  std::int64_t value = 0;
};
struct Last {
  std::latch* handled;
};

class Adder {
 public:
  using Inbox = std::variant<Number, Last>;
  void handle(actor::Context&, Number number) { sum_ += number.value; }
  void handle(actor::Context&, Last last) {
    benchmark::DoNotOptimize(sum_);
    last.handled->count_down();
  }

 private:
  std::int64_t sum_ = 0;
};

void tell(benchmark::State& state) {
  actor::ThreadedExecutor executor(1, 1);
  actor::System system(executor, {});
  const auto adder = system.spawn<Adder>("adder", [] { return std::make_unique<Adder>(); });
  for (auto _ : state) {
    for (std::int64_t i = 1; i < kBatch; ++i)
      CHECK(adder.tell(Number{i}) == actor::Delivery::kAccepted);
    std::latch handled(1);
    CHECK(adder.tell(Last{&handled}) == actor::Delivery::kAccepted);
    handled.wait();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
  executor.stop();
}
BENCHMARK(tell)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem::bench

BENCHMARK_MAIN();
