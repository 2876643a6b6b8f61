// Socket gangs for tests: all ranks in this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/collective/collective.h"
#include "runtime/collective/socket.h"

namespace tandem::collective {

inline constexpr Duration kLong = std::chrono::seconds(30);  // ends a test that hangs

using Gang = std::vector<std::unique_ptr<Collective>>;

inline GangSpec spec_of(int size, std::string secret = "job-1/learner/0.3") {
  return {.size = size, .secret = std::move(secret)};
}

// Rank 0 and the others may be told different things of their liveness. They meet by TCP.
inline Gang make_socket_gang(int size, const GangLiveness& of_rank_0 = {},
                             const GangLiveness& of_others = {},
                             Privacy privacy = Privacy::kSealed) {
  GangListener listener = GangListener::listen().value();
  const link::Endpoint address = listener.endpoint();
  GangSpec spec = spec_of(size), others = spec_of(size);
  spec.liveness = of_rank_0;
  others.liveness = of_others;
  spec.privacy = others.privacy = privacy;
  Gang gang(static_cast<std::size_t>(size));
  std::vector<std::thread> diallers;
  for (int rank = 1; rank < size; ++rank) {
    diallers.emplace_back([&, rank] {
      gang[static_cast<std::size_t>(rank)] = dial_gang(address, rank, others, kLong).value();
    });
  }
  gang[0] = std::move(listener).accept(spec, kLong).value();
  for (std::thread& dialler : diallers) dialler.join();
  return gang;
}

// Runs `body` once per rank, each on a thread of its own.
inline void on_each_rank(Gang& gang, const std::function<void(Collective&)>& body) {
  std::vector<std::thread> threads;
  for (auto& rank : gang) threads.emplace_back([&] { body(*rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tandem::collective
