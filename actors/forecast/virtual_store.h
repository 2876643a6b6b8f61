// The payload store of a forecast: it knows how many tokens each payload stands for, and has none
// of them. Used by the one thread of the simulated executor.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "actors/exchange/run_record.h"

namespace tandem::forecast {

class VirtualPayloads final : public exchange::PayloadStore {
 public:
  wire::PayloadRef put(std::int64_t tokens);
  std::int64_t tokens_of(const wire::PayloadRef& payload) const;  // 0: it has gone

  bool holds(const wire::PayloadRef& payload) const override;
  void release(const wire::PayloadRef& payload) override { tokens_.erase(payload.offset); }
  bool recover(const wire::PayloadRef&) override { return false; }
  void settle() override {}
  Result<std::string> read(const wire::PayloadRef&) override {
    return Error{ErrorCode::kNotFound, "a forecast has no texts"};
  }

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::int64_t> tokens_;  // by offset
};

}  // namespace tandem::forecast
