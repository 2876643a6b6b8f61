#include "actors/learner/gang.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::learner {
namespace {

// The header is broadcast first, with a fixed size, so that the followers know how long the content
// is.
struct Header {
  std::uint32_t command = 0;
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};

}  // namespace

// `error.code` is dropped: whatever broke one call, the gang has to start again.
Error broken_gang(const Error& error) {
  return {.message = "the learner's gang broke: " + error.message, .where = error.where};
}

Gang::Gang(std::unique_ptr<collective::Collective> collective, Duration timeout)
    : collective_(std::move(collective)), timeout_(timeout) {}

Result<void> Gang::command(GangCommand command, std::string_view content) {
  CHECK(rank() == 0);
  if (ranks() == 1) return {};
  CHECK(content.size() <= kCommandBytesMax);
  Header header{static_cast<std::uint32_t>(command), 0, content.size()};
  Result<void> sent =
      collective_->broadcast(std::as_writable_bytes(std::span(&header, 1)), 0, timeout_);
  if (sent && !content.empty()) {
    std::string copy(content);
    sent = collective_->broadcast(std::as_writable_bytes(std::span(copy)), 0, timeout_);
  }
  if (!sent) return broken_gang(sent.error());
  return {};
}

Result<Gang::Received> Gang::await_command() {
  CHECK(rank() > 0);
  Header header;
  Result<void> got = collective_->await_broadcast(std::as_writable_bytes(std::span(&header, 1)),
                                                  "rank 0's next command");
  if (!got) return broken_gang(got.error());
  if (header.command > static_cast<std::uint32_t>(GangCommand::kStop) ||
      header.bytes > kCommandBytesMax)
    return Error{.message = "rank 0 of the learner's gang sent a command that does not exist"};
  Received received{static_cast<GangCommand>(header.command), std::string(header.bytes, '\0')};
  if (header.bytes > 0)
    got = collective_->broadcast(std::as_writable_bytes(std::span(received.content)), 0, timeout_);
  if (!got) return broken_gang(got.error());
  return received;
}

Result<void> Gang::sum(std::span<float> values) {
  if (ranks() == 1) return {};
  if (Result<void> done = collective_->all_reduce_sum(values, timeout_); !done)
    return broken_gang(done.error());
  return {};
}

Result<void> Gang::reduce(std::span<double> sums, double& maximum) {
  if (ranks() == 1) return {};
  // The sums are gathered as bytes and added here, instead of by the collective's float sums, so
  // that doubles are added in rank order.
  std::vector<double> mine(sums.begin(), sums.end());
  mine.push_back(maximum);
  const Result<std::vector<std::string>> all =
      gather({reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double)});
  if (!all) return all.error();
  std::fill(sums.begin(), sums.end(), 0.0);
  for (const std::string& blob : *all) {
    if (blob.size() != mine.size() * sizeof(double))
      return broken_gang({.message = "a rank reduces another number of sums"});
    std::memcpy(mine.data(), blob.data(), blob.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += mine[i];
    // The condition is written so that a NaN on either side stays: comparisons with NaN are false.
    if (!std::isnan(maximum) && !(mine.back() <= maximum)) maximum = mine.back();
  }
  return {};
}

Result<void> Gang::barrier() {
  if (ranks() == 1) return {};
  if (Result<void> met = collective_->barrier(timeout_); !met) return broken_gang(met.error());
  return {};
}

// Values are compared with rank 0's; every rank sees all of them, so all ranks fail alike.
Result<void> Gang::agree(std::string_view value, std::string_view what) {
  if (ranks() == 1) return {};
  const Result<std::vector<std::string>> all = gather(value);
  if (!all) return all.error();
  for (std::size_t r = 0; r < all->size(); ++r)
    if ((*all)[r] != (*all)[0])
      return Error{.message = "ranks 0 and " + std::to_string(r) +
                              " of the learner's gang do not agree about " + std::string(what)};
  return {};
}

Result<std::vector<std::string>> Gang::gather(std::string_view blob) {
  Result<std::vector<std::string>> all = collective_->all_gather(blob, timeout_);
  if (!all) return broken_gang(all.error());
  return all;
}

}  // namespace tandem::learner
