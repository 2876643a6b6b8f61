// A connection of a gang: bytes in order both ways, over a non-blocking socket, as they are or
// sealed. Sealed bytes travel in records, a length and then so many bytes with their seal
// (runtime/base/sealing.h). Internal to runtime/collective.
//
// One thread at a time sends and one receives; the two may differ.
//
//   GS-1  Sealed bytes are received as they were sent, or not at all: a connection in which
//         anything was changed, repeated or put in ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/sealing.h"

namespace tandem::collective {

enum class Transfer { kDone, kWouldBlock, kClosed };

// Milliseconds for poll(), rounded up, at least 0.
int poll_timeout_ms(Time deadline);

// As the functions of Stream, on a socket whose bytes travel as they are.
Transfer send_some(int fd, std::span<const std::byte>& bytes);
Transfer receive_some(int fd, std::span<std::byte>& bytes);
Transfer receive_all(int fd, std::span<std::byte> bytes, Time deadline);

struct StreamKeys {
  SealKey sending{}, receiving{};
};

class Stream {
 public:
  Stream() = default;  // empty: no connection
  explicit Stream(OwnedFd fd) : fd_(std::move(fd)) {}

  explicit operator bool() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }
  // All bytes that follow are sealed, both ways.
  void seal(const StreamKeys& keys);

  // Transfers as many bytes as the socket takes or gives without waiting, and cuts them off the
  // front of the span. kDone: the span is empty, and the socket has all that was sent. kWouldBlock:
  // call it again when the socket is ready, also with an empty span. kClosed: the connection has
  // ended.
  Transfer send_some(std::span<const std::byte>& bytes);
  Transfer receive_some(std::span<std::byte>& bytes);
  // Fills all of `bytes`, waiting as needed. kWouldBlock: the deadline came first.
  Transfer receive_all(std::span<std::byte> bytes, Time deadline);

 private:
  struct Sending {
    explicit Sending(const SealKey& key) : sealer(key) {}
    Sealer sealer;
    std::vector<std::byte> record;
    std::span<const std::byte> rest;  // of `record`, which the socket has not taken yet
  };
  struct Receiving {
    explicit Receiving(const SealKey& key) : opener(key) {}
    Opener opener;
    std::vector<std::byte> record;    // with its length in front
    std::size_t received = 0;         // bytes of it
    std::vector<std::byte> plain;     // of a record that was longer than what was asked for
    std::span<const std::byte> rest;  // of `plain`
  };
  Transfer send_sealed(std::span<const std::byte>& bytes);
  Transfer receive_record();
  bool open_record(std::span<std::byte>& bytes);

  OwnedFd fd_;
  std::optional<Sending> sending_;      // only if sealed
  std::optional<Receiving> receiving_;  // likewise
};

}  // namespace tandem::collective
