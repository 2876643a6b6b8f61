// The words by which an agent tells a process which actor it holds and where to dial: arguments of
// this binary's own ranks, and the environment variable TANDEM_ACTOR of a user's program
// (runtime/node/agent_messages.h). Keys for a controller that is reached by TCP are no words, which
// others could read; they are inherited (SpawnSpec::secret).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/link/curve.h"
#include "runtime/link/port_range.h"
#include "runtime/node/agent_messages.h"

namespace tandem::rank {

// How this rank reaches its controller, and where other hosts may reach this rank.
struct RankNetwork {
  link::Dial controller;
  std::string bind;       // an address of this host; empty: other hosts' processes do not come
  std::string advertise;  // the address by which those reach `bind`; empty: `bind` itself
  link::PortRange ports;  // of `bind`, at which this rank may listen
};

struct RankWords {
  node::RankId id;
  RankNetwork network;
  std::int64_t parent = 0;  // the pid of the agent, with which the process dies
  Duration alone_max = node::kNodeGraceDefault;  // without a link, until a controller tells its own
};

// Nine words: actor, incarnation, rank, and those of node::rank_words(). Reads the inherited
// secret where the controller is dialled by TCP, hence once per process. Errors: kInvalid.
Result<RankWords> parse_rank_words(std::span<const std::string> words);

// The words in the text of TANDEM_ACTOR.
std::vector<std::string> split_rank_words(std::string_view text);
// The text of these words.
std::string join_rank_words(std::span<const std::string> words);

// The words of this process, from TANDEM_ACTOR, which is taken out of the environment: it is not
// for the children of this process. Errors: kInvalid; no job has started this process.
Result<RankWords> words_of_variable();

}  // namespace tandem::rank
