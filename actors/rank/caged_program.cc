// The controller's frames may come before the program has, and wait then in the link. A controller
// that dies takes the relay's server with it, so that the program meets the next one as every rank
// does. Where the sandbox cannot be had, the controller is told once it is met, so that the job
// fails with the reason and is not started again.
#include "actors/rank/caged_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <utility>

#include "actors/messages/program.h"
#include "actors/rank/rank_failure.h"
#include "actors/rank/rank_session.h"
#include "runtime/base/file.h"
#include "runtime/base/home_path.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/link/relay.h"
#include "runtime/link/socket_folder.h"
#include "runtime/node/find_program.h"
#include "runtime/node/line_child.h"
#include "runtime/sandbox/probe.h"
#include "runtime/sandbox/tree.h"

namespace tandem::rank {
namespace {

constexpr const char* kSandboxVariable = "TANDEM_SANDBOX";
constexpr std::uint64_t kProcesses = 512;  // libraries start a thread for each CPU, or more
constexpr std::uint64_t kScratchBytes = 1024u << 20;
constexpr std::uint64_t kOpenFiles = 1024;
constexpr std::int64_t kDrainAtSignalMs = 3'600'000;  // SIGTERM has a grace of its own
constexpr Duration kKeepSockets = std::chrono::seconds(10);

struct Cage {
  CageSettings settings;
  std::vector<std::string> argv;  // the program's
};

Result<Cage> read_arguments(std::span<const char* const> arguments) {
  const auto json = arguments.size() < 2 ? nlohmann::json() : parse_json(arguments[0]);
  Cage cage;
  const auto mode =
      spelt<sandbox::SandboxMode>(json.is_object() ? json.value("mode", std::string()) : "");
  if (!mode || *mode == sandbox::SandboxMode::kOff)
    return Error{ErrorCode::kInvalid, "an agent starts the programs of actors, not a person"};
  cage.settings.mode = *mode;
  if (json.contains("memory_bytes")) cage.settings.memory_bytes = json["memory_bytes"];
  cage.settings.readable = json.value("readable", std::vector<std::string>());
  cage.settings.variables = json.value("variables", std::vector<std::string>());
  cage.argv.assign(arguments.begin() + 1, arguments.end());
  return cage;
}

// The socket is in a folder of its own, which the program sees, below one that is ours alone.
Result<link::Endpoint> place_of_socket(const link::SocketFolder& folder) {
  const std::filesystem::path inner = folder.path() / "link";
  if (mkdir(inner.c_str(), 0755) != 0 || chmod(inner.c_str(), 0755) != 0)
    return file_error("make the folder of a socket", inner);
  return link::Endpoint{.path = inner / "s"};
}

sandbox::Profile profile_of(const Cage& cage, const std::string& sockets) {
  sandbox::Profile profile{.memory_bytes = cage.settings.memory_bytes,
                           .processes = kProcesses,
                           .cpu_seconds = std::nullopt,
                           .file_bytes = kScratchBytes,
                           .scratch_bytes = kScratchBytes,
                           .open_files = kOpenFiles,
                           .readable = cage.settings.readable,
                           .sockets = sockets,
                           .hidden = {state_folder().string()}};
  for (const std::string& path : sandbox::readable_for_all(cage.argv, home_folder()))
    profile.readable.push_back(path);
  // The run directory, which lies beside the job's files, has what other actors wrote.
  std::error_code failed;
  if (const auto run = std::filesystem::current_path(failed); !failed)
    profile.hidden.push_back(run.string());
  return profile;
}

Result<node::ChildProgram> program_of(Cage cage, const RankWords& words,
                                      const link::Endpoint& link) {
  const auto found = node::find_program(cage.argv[0], getenv("PATH"));
  if (!found) return Error{ErrorCode::kNotFound, "there is no program " + cage.argv[0]};
  cage.argv[0] = *found;
  const auto plan = sandbox::plan_of(cage.settings.mode, sandbox::probe_layers());
  if (!plan) return plan.error();
  if (const auto may = sandbox::may_have_sockets(*plan); !may) return may.error();
  const std::string sockets = std::filesystem::path(link.path).parent_path().string();
  node::ChildProgram program{.argv = cage.argv,
                             .limits = {.memory_bytes = cage.settings.memory_bytes},
                             .sandbox = sandbox::Box{*plan, profile_of(cage, sockets)}};
  for (const std::string& name : cage.settings.variables)
    if (const char* const value = getenv(name.c_str())) program.env[name] = value;
  const std::vector<std::string> told{words.id.actor,
                                      std::to_string(words.id.incarnation.value),
                                      std::to_string(words.id.rank),
                                      to_string(link),
                                      "",
                                      "",
                                      "",
                                      "0",
                                      std::to_string(words.alone_max / std::chrono::seconds(1))};
  program.env[node::kActorVariable] = join_rank_words(told);
  program.env[kSandboxVariable] = text(*plan);
  return program;
}

// The program's output is the log's, as that of a program without a sandbox.
void copy_line(std::string line) {
  line += '\n';
  std::cout << line << std::flush;
}

int complain(const Error& error) {
  std::cerr << render(error) << "\n";
  return exit_code(error.code);
}

class CagedProgram {
 public:
  CagedProgram(RankWords words, link::SocketFolder folder, link::Endpoint at,
               Result<node::ChildProgram> program)
      : folder_(std::move(folder)),
        program_(std::move(program)),
        relay_(std::move(at), ActorId{words.id.actor, words.id.incarnation},
               [this](std::string frame) { return session_->to_controller()(std::move(frame)); }),
        id_(words.id),
        words_(std::move(words)) {}

  int run() {
    auto begun = RankSession::begin(words_, [this] { return progress(); },
                                    {.parcel = [this](const auto& f) { return relay_.pass(f); },
                                     .up = [this](const link::Hello& c) { met(c); },
                                     .down = [this] { relay_.server_down(); }});
    if (!begun) return complain(begun.error());
    session_ = std::move(*begun);
    link::IoThread io("program");
    std::unique_ptr<node::LineChild> child;
    if (program_) child = start(io);
    session_->start();
    session_->wait();
    // The first signal from outside drains the actor; the second one ends it at once.
    if (child && !session_->ending() && drain()) session_->wait();
    child.reset();
    log::info("event=cage_ending exit_status={}", session_->exit_status());
    session_->close();
    relay_.server_down();  // whose thread uses the session
    return session_->exit_status();
  }

 private:
  std::unique_ptr<node::LineChild> start(link::IoThread& io) {
    auto child = node::process_spawner(io)(
        *program_, {.line = copy_line, .ended = [this](const node::ChildEnd& end) { ended(end); }});
    if (child) {
      log::info("event=caged actor={} sandbox=\"{}\"", id_.actor, text(program_->sandbox->plan));
      return *std::move(child);
    }
    Error why = child.error();
    why.where.clear();
    program_ = why;
    return nullptr;
  }

  void ended(const node::ChildEnd& end) {
    log::info("event=program_ended why=\"{}\"", end.why);
    session_->end(end.clean ? 0 : 1);
  }

  // On the link's thread.
  void met(const link::Hello& controller) {
    if (!program_) {
      (void)session_->controller().tell(rank_failed(id_, program_.error()));
      log::error("event=rank_failed message=\"{}\"", program_.error().message);
      return session_->end(1);
    }
    if (const auto up = relay_.server_up(controller); !up) {
      log::error("event=relay_failed message=\"{}\"", up.error().message);
      session_->end(1);
    }
  }

  bool drain() {
    const auto actor = session_->directory().remote<messages::ProgramInbox>({kRankInboxPort, {}},
                                                                            relay_.to_peer());
    return actor.tell(messages::DrainProgram{kDrainAtSignalMs}) == actor::Delivery::kAccepted;
  }

  // On the link's thread.
  link::ProgressReport progress() {
    const Time now = steady_now();
    if (now - kept_ >= kKeepSockets) {
      kept_ = now;
      if (const auto kept = folder_.keep(now); !kept)
        log::warn("event=sockets_lost message=\"{}\"", kept.error().message);
    }
    return relay_.progress(now);
  }

  link::SocketFolder folder_;
  Time kept_{};
  Result<node::ChildProgram> program_;  // the Error: why it cannot run
  link::Relay relay_;
  const node::RankId id_;
  const RankWords words_;
  std::unique_ptr<RankSession> session_;
};

}  // namespace

std::vector<std::string> cage_arguments(const CageSettings& settings) {
  nlohmann::json json{{"mode", spelling(settings.mode)},
                      {"readable", settings.readable},
                      {"variables", settings.variables}};
  if (settings.memory_bytes) json["memory_bytes"] = *settings.memory_bytes;
  return {kCageCommand, dump_json(json)};
}

int run_caged(std::span<const char* const> arguments) {
  auto cage = read_arguments(arguments);
  if (!cage) return complain(cage.error());
  auto words = words_of_variable();
  if (!words) return complain(words.error());
  auto folder = link::SocketFolder::make();
  if (!folder) return complain(folder.error());
  auto at = place_of_socket(*folder);
  if (!at) return complain(at.error());
  auto program = program_of(*std::move(cage), *words, *at);  // before there is another thread
  return CagedProgram(*std::move(words), *std::move(folder), *std::move(at), std::move(program))
      .run();
}

std::string sandbox_of_this_process() {
  const char* const text = std::getenv(kSandboxVariable);
  std::string told = text ? text : "";
  unsetenv(kSandboxVariable);
  return told;
}

}  // namespace tandem::rank
