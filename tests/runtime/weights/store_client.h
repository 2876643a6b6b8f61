// A client of PyTorch's TCPStore, written from the wire as PyTorch's own speaks it
// (runtime/weights/torch_store.h). Blocking, with a deadline for each answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/file.h"

namespace tandem::weights {

class StoreClient {
 public:
  StoreClient(const std::string& host, std::uint16_t port);  // VALIDATE and PING, as theirs does

  // Nothing: the store cut the connection, or did not answer in time.
  std::optional<std::int64_t> add(const std::string& key, std::int64_t more);
  std::optional<std::string> get(const std::string& key);
  bool set(const std::string& key, const std::string& value);  // false: it could not be sent
  std::optional<bool> check(const std::vector<std::string>& keys);
  bool wait(const std::vector<std::string>& keys);

  bool greeted() const { return greeted_; }
  bool send(const std::string& bytes);
  std::optional<std::string> receive(std::size_t bytes);
  void deadline(int milliseconds);  // of each answer from here on; 10 s before

 private:
  OwnedFd fd_;
  bool greeted_ = false;
};

}  // namespace tandem::weights
