#include "tests/fuzz/seeds.h"

#include <string>

#include "actors/controller/durable_events.h"
#include "actors/exchange/state/journal_event.h"
#include "actors/learner/trainer_checkpoint.h"
#include "actors/messages/broadcast.h"
#include "actors/messages/learner.h"
#include "actors/messages/payload.h"
#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "actors/messages/reward.h"
#include "actors/messages/rollout.h"
#include "actors/runs/batch_log.h"
#include "actors/runs/packed.h"
#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/link/link_traffic.h"
#include "runtime/link/remote.h"
#include "runtime/link/session.h"
#include "runtime/node/agent_messages.h"
#include "runtime/payload/bulk_messages.h"
#include "runtime/weights/tcp_messages.h"
#include "runtime/wire/codec.h"

namespace tandem::fuzz {
namespace {

using Folder = std::filesystem::path;

void put(const Folder& folder, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(folder);
  CHECK(write_file(folder / name, std::as_bytes(std::span(bytes))).has_value());
}

// As Pieces::bytes() takes them.
std::string piece(std::string_view bytes) {
  std::string out{static_cast<char>(bytes.size() & 0xff), static_cast<char>(bytes.size() >> 8)};
  return out.append(bytes);
}

std::string number(std::uint64_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A seed for each alternative of a variant, with the values that it has by default. `kind` is the
// byte by which the target chooses the type.
template <class Variant, std::size_t... I>
void put_alternatives(const Folder& folder, const std::string& name, char kind,
                      std::index_sequence<I...>) {
  (put(folder, name + "_" + std::to_string(I),
       std::string(1, kind) + wire::encode(Variant(std::in_place_index<I>))),
   ...);
}
template <class Variant>
void put_alternatives(const Folder& folder, const std::string& name, char kind) {
  put_alternatives<Variant>(folder, name, kind,
                            std::make_index_sequence<std::variant_size_v<Variant>>());
}

// The bytes that choose are the places in the table of wire_fuzz.cc.
void write_wire(const Folder& folder) {
  using namespace messages;
  put_alternatives<RolloutInbox>(folder, "rollout", 0);
  put_alternatives<RolloutEvents>(folder, "rollout_events", 1);
  put_alternatives<RewardEvents>(folder, "reward_events", 3);
  put_alternatives<LearnerInbox>(folder, "learner", 4);
  put_alternatives<LearnerEvents>(folder, "learner_events", 5);
  put_alternatives<node::AgentInbox>(folder, "agent", 12);
  put_alternatives<node::AgentEvents>(folder, "agent_events", 13);
  const GroupPayload group{
      .trajectories = {Trajectory{.tokens = {1, 2, 3}, .logprobs = {-1, -2, -3}}}};
  put(folder, "group_payload", std::string(1, 11) + wire::encode(group));
  const RewardEvents scores = GroupsScored{
      .groups = {{.group = {4}, .scores = {Scored{.value = 1, .extra = "{}"}, ScoreFailed{}}}}};
  put(folder, "groups_scored", std::string(1, 3) + wire::encode(scores));
}

void write_link(const Folder& folder) {
  using namespace link;
  const Hello hello{.name = "peer", .incarnation = {1}, .pid = 1, .build = "b"};
  const SessionKey key{{7}, {1}, 1};
  Session session(key, {});
  const ParcelHead head{.to = {"port", {1}}, .ask = 3};
  std::string parcel;
  wire::WireWriter out(parcel);
  encode_to(out, head);
  out.array(2);
  out.unsigned_integer(0);
  out.array(1);
  out.text("a note");
  (void)session.send(parcel);
  (void)session.send("refuse");
  const std::string frames = session.next_packet({}).value();
  const std::string introduced =
      piece(packet_of(PacketKind::kHello, wire::encode(Introduction{hello, 1})));
  const std::string beat =
      piece(packet_of(PacketKind::kHeartbeat, wire::encode(link::Heartbeat{5, "idle", {}})));
  const std::string bye = piece(packet_of(PacketKind::kBye));
  put(folder, "server_frames", '\0' + introduced + beat + piece(frames) + bye);
  put(folder, "server_again", '\0' + introduced + introduced + bye + introduced);
  put(folder, "server_stranger", '\0' + piece(frames) + beat);
  put(folder, "server_fence", '\0' + introduced + piece(Session::fence({{7}, {2}, 0})));
  put(folder, "session",
      "\1\7" + piece(frames) + "\4" + piece(frames) + "\2" + piece(Session::fence({{7}, {1}, 2})));
  put(folder, "parcel", "\2" + parcel);
}

void write_bulk(const Folder& folder) {
  using namespace payload;
  const auto message = [](BulkMessage it, std::string_view body = {}) {
    return piece(wire::encode(it)) + piece(body);
  };
  const auto bytes = std::string("abcdefgh");
  const std::uint64_t checksum = checksum64(std::as_bytes(std::span(bytes.data(), 8)));
  const PutOpen put_one{.request = {1}, .sizes = {8}, .checksums = {checksum}};
  const wire::PayloadRef kept{"vm", 0, 0, 30, 0};
  put(folder, "put", message(put_one, bytes));
  put(folder, "put_in_pieces", message(put_one, "abc") + message(Chunk{{1}, 3}, "defgh"));
  put(folder, "put_and_abort", message(put_one, "abc") + message(Abort{{1}}));
  put(folder, "get", message(GetOpen{{2}, {kept, kept}}) + message(Ack{{2}, 1}));
  put(folder, "wrong_checksum", message(PutOpen{{3}, {1, 2}, {0, 0}}, "xyz"));
  put(folder, "put_twice",
      message(PutOpen{{1}, {8}, {checksum}, 7}, bytes) +
          message(PutOpen{{2}, {8}, {checksum}, 7}, bytes) + message(Ask{{2}}));
  put(folder, "answers", message(Stored{{4}, {kept}}) + message(Failed{{4}, {.message = "no"}}));
}

void write_weights(const Folder& folder) {
  using namespace weights;
  const auto message = [](WeightRequest it) { return piece(wire::encode(it)) + piece(""); };
  const WeightFetch fetch{.copy = 1, .version = {3}, .checksum = 0, .offset = 0, .bytes = 1024};
  WeightFetch late = fetch;
  late.offset = 3072;
  put(folder, "watch", '\0' + message(WeightWatch{.probe = 1}));
  put(folder, "fetch",
      '\0' + message(WeightWatch{.probe = 1, .copy = 1}) + message(fetch) + message(late) +
          message(WeightWatch{.probe = 2, .copy = 0}));
  put(folder, "request", "\1" + wire::encode(WeightRequest(fetch)));
  put(folder, "offers",
      "\2" + wire::encode(WeightReply(WeightOffers{.probe = 1, .versions = {{{3}, 17}}})));
  put(folder, "chunk", "\2" + wire::encode(WeightReply(WeightChunk{.copy = 1, .offset = 4})));
}

template <std::size_t... I>
void write_journal(const Folder& folder, std::index_sequence<I...>) {
  using exchange::JournalEvent;
  const auto row = [](const JournalEvent& event) {
    const std::string bytes = wire::encode(event);
    std::string out;
    for (int shift = 0; shift < 32; shift += 8)
      out += static_cast<char>(bytes.size() >> shift & 0xff);
    return out + bytes;
  };
  (put(folder, "event_" + std::to_string(I), row(JournalEvent(std::in_place_index<I>))), ...);
  put(folder, "several",
      row(exchange::GroupAdmitted{.group = {1}}) + row(exchange::GroupAdmitted{.group = {2}}) +
          row(exchange::EvaluationBegan{}));
}

// Rows as controller_journal_fuzz.cc takes them.
template <std::size_t... I>
void write_controller_journal(const Folder& folder, std::index_sequence<I...>) {
  using namespace controller;
  const auto rows = [](const std::vector<DurableEvent>& events) {
    std::string out;
    for (const DurableEvent& event : events) out += piece(wire::encode(event));
    return out;
  };
  (put(folder, "event_" + std::to_string(I), rows({DurableEvent(std::in_place_index<I>)})), ...);
  const messages::Role role{"counter"};
  const JobTaken job{.job = "j", .run_dir = "/runs/j", .yaml = "name: j\n", .wanted = {{"r", 2}}};
  const auto started = [&](const std::string& actor, std::uint64_t incarnation) {
    return ActorStarted{actor, role, 0, {incarnation}, {{"vm", {"GPU-0"}, {500, 1000, 1 << 20}}}};
  };
  const auto ended = [](std::uint64_t incarnation, ActorEnd how) {
    return ActorEnded{.actor = "j/counter/0",
                      .incarnation = {incarnation},
                      .how = how,
                      .cause = "killed",
                      .died = Time{static_cast<std::int64_t>(incarnation)}};
  };
  const std::string name = "j/counter/0";
  put(folder, "story",
      rows({NodeJoined{"vm"}, IncarnationsReserved{1000}, job, JobServes{"j", {"ipc:///s"}},
            started(name, 1), ended(1, ActorEnd::kDied), started(name, 2),
            ActorLeaves{name, {2}, Leaving::kMoved, "vm"}, ended(2, ActorEnd::kReplaced),
            RoleScaled{"j", role, 3}, started(name, 3), NodeCordoned{"vm", "new driver"},
            GpuCordoned{"vm", "GPU-0", "actors die there"}}));
  put(folder, "over",
      rows({job, started(name, 1), JobOver{"j", messages::JobOutcome::kFailed, "it died", true},
            ended(1, ActorEnd::kDropped), JobLeft{"j"}, NodeLeft{"vm"}, NodeUncordoned{"vm"}}));
  put(folder, "death_of_what_has_finished",
      rows({job, started(name, 1), ended(1, ActorEnd::kFinished), ended(2, ActorEnd::kDied)}));
  put(folder, "actor_named_as_its_job", rows({job, started("j", 1), JobLeft{"j"}}));
}

void write_checkpoint(const Folder& folder) {
  const learner::TrainerState state{
      .step = {5}, .optimizer_steps = 5, .seed = 17, .older_checksums = {1, 2}};
  put(folder, "state", wire::encode(state));
}

// Frames as batch_log_fuzz.cc takes them.
void write_batch_log(const Folder& folder) {
  const auto frame = [](char kind, char part, char step, const std::string& content) {
    return std::string{kind, part, step} + piece(runs::packed(content));
  };
  const auto batch = [](std::string_view payload) {
    return wire::encode(runs::RecordedBatch{.step = {.step = {3}, .groups = {{.group = {1}}}},
                                            .payloads = {std::string(payload)}});
  };
  const std::string job = frame(1, 0, 0, wire::encode(runs::RecordedJob{"1", "cpu", "name: a\n"}));
  put(folder, "batch", '\0' + job + frame(3, 0, 3, batch("tokens")));
  put(folder, "parts",
      '\0' + job + frame(2, 0, 3, batch("a")) + frame(3, 1, 3, batch("b")) +
          frame(2, 0, 4, batch("no end")) + frame(3, 0, 5, batch("c")));
  put(folder, "twice", '\0' + job + frame(3, 0, 3, batch("a")) + frame(3, 0, 3, batch("b")));
  put(folder, "no_job", '\0' + frame(3, 0, 3, batch("tokens")));
  put(folder, "spoiled_body", '\0' + job + frame(0x43, 0, 3, batch("tokens")));
  put(folder, "spoiled_head", '\0' + job + frame('\203', 0, 3, batch("tokens")));
  put(folder, "more_payloads",
      '\0' + job + frame(3, 0, 3, wire::encode(runs::RecordedBatch{.payloads = {"a", "b"}})));
  put(folder, "file", "\1TANDEMB1");
}

// The bytes of a step are those that payload_fuzz.cc takes.
void write_payload(const Folder& folder) {
  const std::string mark = "\n--\n";
  const std::string kept = {0, 100, 7};
  const std::string other = {0, 50, 8};
  const std::string zero(1, '\0');
  put(folder, "puts", mark + kept + other + "\3" + zero + "\5" + kept + "\6\377");
  put(folder, "reads",
      mark + kept + "\1" + zero + number(0) + "\144" + "\1" + zero + number(~std::uint64_t{0}) +
          "\1");
  put(folder, "made_up", mark + kept + "\2" + zero + number(0) + "\144" + number(17));
  put(folder, "huge",
      mark + "\7" + number(std::uint64_t{1} << 63) + number(std::uint64_t{1} << 63));
  put(folder, "found", "segment-00000007" + mark + kept + "\4\7" + other);
}

}  // namespace

void write_seeds(const Folder& corpus) {
  write_wire(corpus / "wire");
  write_link(corpus / "link");
  write_bulk(corpus / "bulk");
  write_weights(corpus / "weights");
  write_journal(corpus / "journal",
                std::make_index_sequence<std::variant_size_v<exchange::JournalEvent>>());
  write_controller_journal(
      corpus / "controller_journal",
      std::make_index_sequence<std::variant_size_v<controller::DurableEvent>>());
  write_checkpoint(corpus / "checkpoint");
  write_payload(corpus / "payload");
  write_batch_log(corpus / "batch_log");
}

}  // namespace tandem::fuzz
