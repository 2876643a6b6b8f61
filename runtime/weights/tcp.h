// The weight family over TCP: the publisher's versions lie in shared memory (shm.h), and a server
// in its process (tcp_server.h) sends them to the subscribers that dial it. CURVE refuses strangers
// and damaged messages; the checksum is computed over the bytes as they arrive.
//
// Threading: a subscriber has a thread of its own, which writes into the buffer of the copy that is
// under way and hashes there, so decoding is never interrupted. The thread has left the buffer when
// begin(), cancel() and the destructor return, and when progress() ends the copy.
#pragma once

#include <memory>

#include "runtime/weights/weight_ends.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// Serves as config.serving says, and on loopback where it is not set.
Result<std::unique_ptr<WeightPublisher>> make_tcp_publisher(const WeightsConfig& config);
std::unique_ptr<WeightSubscriber> make_tcp_subscriber(const WeightsConfig& config);

// The subscriber of kAuto: of the type `fallback` until look_at() tells where the publisher is;
// then shared memory on the publisher's host, and TCP elsewhere.
std::unique_ptr<WeightSubscriber> make_auto_subscriber(const WeightsConfig& config,
                                                       WeightsType fallback);

}  // namespace tandem::weights
