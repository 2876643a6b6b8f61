// `tandem logs`. The log of one actor is printed as it is; the logs of all actors of a job are
// printed as one text, in the order of time (merged_lines.h).
//
// Following a job reads one stream per incarnation, in turn, on this one thread, and looks at the
// list of actors now and then for those that came later. A stream ends with its incarnation, and
// the command with the last stream of a job that has ended. Lines of different actors are in the
// order in which they arrive.
#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <set>

#include "actors/cli/api_object.h"
#include "actors/cli/arguments.h"
#include "actors/cli/merged_lines.h"
#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"
#include "runtime/base/text.h"
#include "runtime/node/log_files.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr Duration kReadPause = std::chrono::milliseconds(50);  // where no stream has a line
constexpr int kLinesInTurn = 1000;        // read from one stream before the next
constexpr std::size_t kFollowedMax = 64;  // streams at once; the API has 256 for all of its clients

struct Logs {
  static VerbHelp help() {
    return {.name = "logs",
            .group = VerbGroup::kLook,
            .description = "What an actor, or every actor of a job, wrote to its log",
            .examples = {
                "tandem logs arithmetic-grpo-1/learner/0 -f", "tandem logs rollout/0 --previous",
                "tandem logs arithmetic-grpo-1 --since 5m", "tandem logs learner/0 --tail 20"}};
  }

  void options(Options& options) {
    options.add("ACTOR|JOB", target, "An actor; or a job, for all of its actors")
        .required()
        .offers("logs");
    options.flag("-f,--follow", follow, "Go on as it grows, until it ends");
    options.flag("-p,--previous", previous, "Of its previous incarnation");
    options.add("--tail", tail, "Only the last N lines, of each actor")
        .value("N")
        .between(std::int64_t{0}, std::int64_t{1} << 40);
    add_time(options, "--since", since_s, "Only what is newer; 90, 90s, 5m, 2h");
    add_job(options, job);
  }

  static AnsweredBy answered_by() { return AnsweredBy::kRunsAsWell; }
  Result<void> carry_out(Client& client) const;

  std::string target;  // an actor, or a job: then of all its actors
  bool follow = false;
  bool previous = false;
  std::optional<std::int64_t> tail;  // only so many of the last lines
  std::optional<double> since_s;     // only those of the last seconds
  std::optional<std::string> job;
};

bool names_an_actor(const Logs& command) {
  return command.job || command.target.find('/') != std::string::npos;
}

std::string log_path(const Logs& command, const ActorName& actor, bool follow,
                     const std::optional<node::LogPosition>& from = {}) {
  std::string path =
      actor.recorded ? "/runs/" + url_escape(actor.job) + "/logs/" + url_escape(actor.short_name())
                     : "/actors/" + url_escape(actor.full_name) + "/logs";
  char separator = '?';
  const auto add = [&](const std::string& parameter) {
    path += separator + parameter;
    separator = '&';
  };
  if (follow) add("follow=1");
  if (command.previous) add("previous=1");
  if (from) {
    add("from=" + to_string(*from));
    return path;
  }
  if (command.tail) add("tail=" + std::to_string(*command.tail));
  if (command.since_s)  // the API takes whole seconds
    add("since=" + std::to_string(static_cast<std::int64_t>(std::ceil(*command.since_s))));
  return path;
}

// A log goes into a pipe or a file unchanged, and onto a terminal with its control characters
// escaped.
std::string shown(const Client& client, std::string_view log) {
  return client.console.terminal ? visible(log, Lines::kMany) : std::string(log);
}

Result<void> print_log(std::string_view text, const Client& client) {
  client.console.out << shown(client, text) << std::flush;
  return {};
}

// Where a log is read, so that it is read on from there when the controller has been started again.
struct LogStream {
  std::optional<node::LogPosition> position;

  void begins(const http::HttpLines& lines) {
    position = node::parse_log_position(lines.header(node::kLogPositionHeader));
  }
  std::string_view passed(std::string_view line) {
    if (position) position->bytes += node::log_bytes_of(line);
    return line;
  }
};

Result<void> log_of_actor(const Logs& command, Client& client) {
  auto actor = find_actor(client, command.target, command.job, PastRuns::kIncluded);
  if (!actor) return actor.error();
  if (actor->recorded && command.previous)
    return usage_error(
        "--previous is for actors of this controller's jobs",
        "the logs of all incarnations are in the run's directory: `tandem get runs " + actor->job +
            " -o wide` shows it");
  if (!command.follow || actor->recorded) {
    auto text = client.api.get_text(log_path(command, *actor, false));
    return text ? print_log(*text, client) : text.error();
  }
  LogStream log;
  return client.api.stream_of(
      [&]() -> Result<http::HttpLines> {
        auto lines = client.api.lines(log_path(command, *actor, true, log.position));
        if (lines) log.begins(*lines);
        return lines;
      },
      kLookAgain,
      [&](std::optional<std::string_view> line) {
        if (line) client.console.out << shown(client, log.passed(*line)) << "\n" << std::flush;
        return bool(client.console.out);
      });
}

// One incarnation of an actor, which has a log of its own.
struct ActorIncarnation {
  ActorName actor;
  std::string incarnation;
  auto operator<=>(const ActorIncarnation& other) const {
    return std::pair(actor.full_name, incarnation) <=>
           std::pair(other.actor.full_name, other.incarnation);
  }
  bool operator==(const ActorIncarnation& other) const { return (*this <=> other) == 0; }
};

// The incarnations of a job's actors; for a run that is known only by its directory, the actors
// that its record names.
Result<std::vector<ActorIncarnation>> actors_of(const Client& client, const std::string& job) {
  auto items = get_list(client, "/actors");
  if (!items) return items.error();
  std::vector<ActorIncarnation> actors;
  for (const json& item : *items)
    if (field(item, "job") == job)
      actors.push_back({{job, field(item, "name")}, field(item, "incarnation")});
  if (!actors.empty()) return actors;
  auto recorded = recorded_actors(client, job);
  if (!recorded && recorded.error().code == ErrorCode::kNotFound) return actors;
  if (!recorded) return recorded.error();
  for (ActorName& name : *recorded) actors.push_back({std::move(name), ""});
  return actors;
}

Result<void> logs_of_job(const Logs& command, const std::string& job, Client& client) {
  auto actors = actors_of(client, job);
  if (!actors) return actors.error();
  if (actors->empty())
    return Error{ErrorCode::kNotFound, "no actor of " + job + " has a log", "",
                 "`tandem events -j " + job + "` says how far it came"};
  std::vector<ActorLog> logs;
  for (const ActorIncarnation& actor : *actors) {
    auto text = client.api.get_text(log_path(command, actor.actor, false));
    if (text)
      logs.push_back({actor.actor.short_name(), std::move(*text)});
    else if (text.error().code != ErrorCode::kNotFound)  // one that has not started has none yet
      return text.error();
  }
  return print_log(merged_lines(logs), client);
}

// Follows all actors of a job until it has ended and every stream with it.
class JobFollower {
 public:
  JobFollower(const Logs& command, std::string job, Client& client)
      : command_(command), job_(std::move(job)), client_(client) {}

  Result<void> run() {
    for (Time look_at{};;) {
      if (steady_now() >= look_at) {
        if (auto looked = look(); !looked) return looked;
        look_at = steady_now() + kLookAgain;
      }
      if (!client_.console.out || (ended_ && streams_.empty())) return {};
      auto done = streams_.empty() ? await_actors(look_at) : print_lines();
      if (!done) return done;
    }
  }

 private:
  struct Followed {
    http::HttpLines lines;
    LogStream log;
  };

  // Asks for the job and its actors, and opens a stream for each incarnation that has none yet.
  // Beyond kFollowedMax streams the rest wait until one ends.
  Result<void> look() {
    auto job = client_.api.get("/jobs/" + url_escape(job_));
    if (!job) return job.error();
    auto actors = actors_of(client_, job_);
    if (!actors) return actors.error();
    ended_ = has_ended(*job);
    names_.clear();
    for (const ActorIncarnation& actor : *actors) names_.push_back(actor.actor.short_name());
    for (const ActorIncarnation& actor : *actors) {
      if (followed_.contains(actor) || streams_.size() >= kFollowedMax) continue;
      LogStream log = left_at_[actor];
      auto stream = client_.api.lines(log_path(command_, actor.actor, true, log.position));
      // It has not started, or the controller has just died: it is looked for again.
      const bool later = !stream && (stream.error().code == ErrorCode::kNotFound ||
                                     stream.error().code == ErrorCode::kUnreachable);
      if (later) continue;
      if (!stream) return stream.error();
      log.begins(*stream);
      followed_.insert(actor);
      streams_.emplace(actor, Followed{std::move(*stream), log});
    }
    return {};
  }

  // Prints the lines that each stream has, stream by stream. The pause is divided among the
  // streams, so that a round over silent ones takes kReadPause in all.
  Result<void> print_lines() {
    const Duration wait = kReadPause / std::max<std::size_t>(streams_.size(), 1);
    for (auto it = streams_.begin(); it != streams_.end();) {
      auto over = print_lines_of(it->first, it->second, wait);
      if (!over) return over.error();
      it = *over ? streams_.erase(it) : std::next(it);
    }
    return {};
  }

  // Returns whether the stream has ended. At most kLinesInTurn lines, so that a busy actor does not
  // hide the others.
  Result<bool> print_lines_of(const ActorIncarnation& which, Followed& followed, Duration wait) {
    for (int printed = 0; printed < kLinesInTurn; ++printed) {
      auto line = followed.lines.next(wait);
      if (!line && line.error().code == ErrorCode::kTimedOut) break;
      // The controller has died: the next one is asked for what is behind these lines.
      if (!line && line.error().code == ErrorCode::kUnreachable) {
        left_at_[which] = followed.log;
        followed_.erase(which);
        return true;
      }
      if (!line) return line.error();
      if (!*line) return true;
      client_.console.out << line_prefix(which.actor.short_name(), names_)
                          << shown(client_, followed.log.passed(**line)) << "\n";
    }
    client_.console.out << std::flush;
    return false;
  }

  // Waits until the job changes, or until it is time to look again.
  Result<void> await_actors(Time until) {
    return client_.api.stream("/jobs/" + url_escape(job_) + "?watch=1", kLookAgain,
                              [&](std::optional<std::string_view> line) {
                                return line.has_value() && steady_now() < until;
                              });
  }

  const Logs& command_;
  const std::string job_;
  Client& client_;
  bool ended_ = false;
  std::vector<std::string> names_;
  std::set<ActorIncarnation> followed_;
  std::map<ActorIncarnation, Followed> streams_;
  std::map<ActorIncarnation, LogStream> left_at_;  // where the controller died
};

Result<void> Logs::carry_out(Client& client) const {
  if (names_an_actor(*this)) return log_of_actor(*this, client);
  auto id = find_job(client, target, PastRuns::kIncluded);
  if (!id) return id.error();
  // A run that is not a job of this controller has nothing to follow: its logs are printed.
  if (follow && client.api.get("/jobs/" + url_escape(*id)))
    return JobFollower(*this, *id, client).run();
  return logs_of_job(*this, *id, client);
}

}  // namespace

Verb logs_verb() { return make_verb<Logs>(); }

}  // namespace tandem::cli
