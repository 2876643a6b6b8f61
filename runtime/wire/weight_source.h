// Where the versions of one incarnation of a weight publisher can be fetched over TCP, and the keys
// that are needed for it. A process that has a WeightSource may read the weights; so it travels on
// private links alone and is never written to a file or a log.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/wire/fields.h"

namespace tandem::wire {

inline constexpr std::size_t kSourceTextMax = 512;  // bytes of each field; a longer one is refused

struct WeightSource {
  std::string host;  // host_identity() of the publisher (runtime/weights/weights_config.h)
  // "10.0.0.2:41234", where subscribers dial. The endpoint and both keys are empty where the
  // publisher does not serve other hosts.
  std::string endpoint;
  // Both keys are made anew by each publisher, so that they end with it.
  std::string server_key;  // CURVE public key (Z85) of the publisher
  std::string client_key;  // CURVE secret key (Z85) that all subscribers share
  bool operator==(const WeightSource&) const = default;
};
TANDEM_WIRE(WeightSource, host, endpoint, server_key, client_key)

}  // namespace tandem::wire
