// Passes on the messages that an exchange sends to one of the peers that a test plays.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "actors/messages/exchange.h"
#include "runtime/actor/ref.h"
#include "runtime/wire/codec.h"

namespace tandem::exchange {

struct StageLinks {                                  // as all links of the stage are now
  std::uint64_t bytes_max = actor::kBytesUnlimited;  // the largest message that is taken
  bool full = false;
};

// Gives each message that the exchange sends to one actor to `take`.
template <class Inbox>
class Mailbag final : public actor::Target<Inbox> {
 public:
  Mailbag(const StageLinks& link, std::function<void(const Inbox&)> take)
      : link_(link), take_(std::move(take)) {}
  actor::Delivery post(Inbox message) override {
    if (link_.full) return actor::Delivery::kFull;
    if (bytes(message) > link_.bytes_max) return actor::Delivery::kTooLarge;
    take_(message);
    return actor::Delivery::kAccepted;
  }
  std::uint64_t bytes_max() const override { return link_.bytes_max; }
  Error too_large(const Inbox& message) const override {
    return {ErrorCode::kInvalid, std::to_string(bytes(message)) + " bytes"};
  }

 private:
  static std::uint64_t bytes(const Inbox& message) {
    if constexpr (std::is_same_v<Inbox, messages::ExchangeNotices>)
      return 0;
    else
      return std::visit([](const auto& m) { return wire::encode(m).size(); }, message);
  }
  const StageLinks& link_;
  const std::function<void(const Inbox&)> take_;
};

}  // namespace tandem::exchange
