// The body of a message of another process: of an agent, a rank, an actor of a user's, in any
// language. The first byte chooses the type. Checked: a value that decodes, encodes to bytes that
// decode again, and to the same bytes; an error is kInvalid, and says what and where.
#include "actors/messages/broadcast.h"
#include "actors/messages/learner.h"
#include "actors/messages/payload.h"
#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "actors/messages/reward.h"
#include "actors/messages/rollout.h"
#include "runtime/base/check.h"
#include "runtime/node/agent_messages.h"
#include "runtime/wire/codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

template <class T>
void round_trip(std::string_view bytes) {
  const Result<T> first = wire::decode<T>(bytes);
  if (!first) {
    CHECK(first.error().code == ErrorCode::kInvalid);
    CHECK(!first.error().message.empty() && !first.error().where.empty());
    return;
  }
  const std::string encoded = wire::encode(*first);
  const Result<T> second = wire::decode<T>(encoded);
  CHECK(second.has_value());
  CHECK(wire::encode(*second) == encoded);
}

constexpr void (*kTypes[])(std::string_view) = {round_trip<messages::RolloutInbox>,
                                                round_trip<messages::RolloutEvents>,
                                                round_trip<messages::RewardInbox>,
                                                round_trip<messages::RewardEvents>,
                                                round_trip<messages::LearnerInbox>,
                                                round_trip<messages::LearnerEvents>,
                                                round_trip<messages::BroadcastInbox>,
                                                round_trip<messages::BroadcastEvents>,
                                                round_trip<messages::StartRank>,
                                                round_trip<messages::StartActor>,
                                                round_trip<messages::AskJson>,
                                                round_trip<messages::GroupPayload>,
                                                round_trip<node::AgentInbox>,
                                                round_trip<node::AgentEvents>,
                                                round_trip<messages::RankFailed>,
                                                round_trip<messages::RankPreempted>,
                                                round_trip<FurtherError>};

}  // namespace

void wire(std::string_view input) {
  Pieces pieces(input);
  kTypes[pieces.byte() % std::size(kTypes)](pieces.rest());
}

}  // namespace tandem::fuzz
