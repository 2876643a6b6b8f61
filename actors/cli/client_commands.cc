// Every command resolves names first (object_names.h), by one look at a list and with the same
// errors. A state is waited for with the API's watch stream as an alarm clock: any line, or a
// second of silence, means "look again". The state itself always comes from a plain GET, so that
// nothing depends on the content of a line, on a line that was missed, or on the order of lines.
//
// Only `get -w` off a terminal prints lines of the stream themselves. A command that ends early
// because its time is over has exit code 5; a job that ended otherwise than expected, 1.
#include "actors/cli/client_commands.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "actors/cli/api_object.h"
#include "actors/cli/arguments.h"
#include "actors/cli/cells.h"
#include "actors/cli/job_progress.h"
#include "actors/cli/object_names.h"
#include "actors/cli/progress_display.h"
#include "actors/cli/sorting.h"
#include "actors/cli/table.h"
#include "actors/cli/views.h"
#include "actors/job/kept_run.h"
#include "actors/job/print_job.h"
#include "runtime/base/file.h"
#include "runtime/base/text.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr Duration kLookAgain = std::chrono::seconds(1);
constexpr Duration kSubmitTimeout = std::chrono::minutes(10);  // for 4 GiB of data, several times
constexpr std::uint64_t kDataBytesLarge = 200'000'000;         // read in some seconds
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";
constexpr std::size_t kEventsShown = 10;  // that `describe` shows

Screen screen_of(const Client& client) { return {client.width(), unix_ms()}; }

// Whether `item` belongs to the job, for -j.
bool is_of_job(Kind kind, const json& item, const std::string& job_id) {
  switch (kind) {
    case Kind::kJobs:
    case Kind::kRuns:
      return field(item, "id") == job_id;
    case Kind::kActors:
    case Kind::kGroups: {
      const std::string job = field(item, "job");
      return job.empty() || job == job_id;
    }
    case Kind::kNodes:
      return true;
    case Kind::kEvents: {
      const std::string subject = field(item, "subject");
      return subject == job_id || subject.starts_with(job_id + "/");
    }
  }
  CHECK(false);
}

// The list of a `get` or `events`, and the filter that -j sets.
struct Listing {
  Kind kind;
  std::string path;
  std::string job_id;  // empty: all jobs; for events also an actor or a node
  bool one = false;    // an object, not a list
  std::string sort_by;
  bool all = true;  // tables show actors that have ended as well

  std::string query(bool watch) const {
    std::string text = path;
    if (watch) text += "?watch=1";
    if (!job_id.empty() && !one) text += (watch ? "&job=" : "?job=") + url_escape(job_id);
    return text;
  }
  bool wants(const json& item) const { return job_id.empty() || is_of_job(kind, item, job_id); }
};

Result<Listing> listing_of(const Client& client, const GetCommand& command) {
  Listing listing{.kind = command.kind,
                  .path = "/" + std::string(spelling(command.kind)),
                  .job_id = "",
                  .sort_by = command.sort_by,
                  .all = command.all};
  if (command.name && command.kind == Kind::kEvents) {
    listing.job_id = *command.name;
  } else if (command.name) {
    auto path = object_path(client, command.kind, *command.name, command.job);
    if (!path) return path.error();
    listing.path = path->path;
    listing.one = true;
  } else if (command.job) {
    // Runs and events outlast their jobs, so that -j may name a run that has ended.
    const bool kept = command.kind == Kind::kEvents || command.kind == Kind::kRuns;
    auto id = find_job(client, *command.job, kept ? PastRuns::kIncluded : PastRuns::kExcluded);
    if (!id) return id.error();
    listing.job_id = *id;
  }
  return listing;
}

Result<json> fetch(const Client& client, const Listing& listing) {
  if (listing.one) return client.api.get(listing.query(false));
  auto items = get_list(client, listing.query(false));
  if (!items) return items;
  json wanted = json::array();
  for (json& item : *items)
    if (listing.wants(item)) wanted.push_back(std::move(item));
  return sorted_by(listing.sort_by, std::move(wanted));
}

std::string render_fetched(const Listing& listing, const json& items, OutputForm form,
                           const Screen& screen) {
  if (listing.one) return render_item(listing.kind, items, form, screen);
  const bool table = form == OutputForm::kTable || form == OutputForm::kWide;
  // Programs get everything; people get the actors that have not ended, and the number of others.
  if (!table || listing.all || listing.kind != Kind::kActors)
    return render_items(listing.kind, items, form, screen);
  json living = json::array();
  for (const json& actor : items)
    if (!actor_has_ended(actor)) living.push_back(actor);
  const std::size_t hidden = items.size() - living.size();
  if (living.empty() && hidden > 0)
    return "no actor runs; ended: " + std::to_string(hidden) + ", which --all shows\n";
  return render_items(listing.kind, living, form, screen);
}

// On a terminal the whole list is fetched and drawn anew at each change.
Result<void> watch_on_terminal(Client& client, const Listing& listing, OutputForm form) {
  std::optional<Error> failure;
  ColumnWidths widths;
  const auto redraw = [&](std::optional<std::string_view>) {
    auto items = fetch(client, listing);
    if (!items) {
      failure = items.error();
      return false;
    }
    Screen screen = screen_of(client);
    screen.kept = &widths;
    client.out << kClearScreen << render_fetched(listing, *items, form, screen) << std::flush;
    return true;
  };
  if (!redraw(std::nullopt)) return *failure;
  auto ended = client.api.stream(listing.query(true), kLookAgain, redraw);
  return failure ? Result<void>(*failure) : std::move(ended);
}

// Off a terminal: prints all objects, then a line for each change; JSON is printed as NDJSON. The
// columns of the lines stay below those of the first table, unless a cell is wider than all before
// it.
Result<void> watch_as_lines(Client& client, const Listing& listing, OutputForm form) {
  const bool header = form == OutputForm::kTable || form == OutputForm::kWide;
  json last = json::object();  // the last printed form of each object, by name
  ColumnWidths widths;
  const auto print_all = [&](const json& items) {
    const bool first = last.empty();
    json news = json::array();
    for (const json& item : items.is_array() ? items : json::array({items})) {
      if (!listing.wants(item)) continue;
      const std::string name =
          render_item(listing.kind, item, OutputForm::kName, screen_of(client));
      if (last.contains(name) && last[name] == item) continue;
      last[name] = item;
      news.push_back(item);
    }
    if (news.empty()) return;
    Screen screen = screen_of(client);
    screen.kept = &widths;
    if (form == OutputForm::kJson) {
      for (const json& item : news) client.out << shown_json(item) << "\n";
    } else if (form == OutputForm::kYaml) {
      for (const json& item : news)
        client.out << "---\n" << render_item(listing.kind, item, form, screen);
    } else {
      const std::string text = render_items(listing.kind, news, form, screen);
      client.out << (header && !first ? text.substr(text.find('\n') + 1) : text);
    }
    client.out << std::flush;
  };
  auto items = fetch(client, listing);
  if (!items) return items.error();
  print_all(*items);
  return client.api.stream(listing.query(true), kLookAgain,
                           [&](std::optional<std::string_view> line) {
                             // The reader of a pipe may have gone; then the command ends.
                             if (!line) return bool(client.out);
                             const json changed = parse_json(*line);
                             if (changed.is_structured()) print_all(changed);
                             return bool(client.out);
                           });
}

Result<void> watch(Client& client, const Listing& listing, OutputForm form) {
  const bool redraws = client.terminal && listing.kind != Kind::kEvents;
  return redraws ? watch_on_terminal(client, listing, form) : watch_as_lines(client, listing, form);
}

// The last events of an object: of its own name, and of objects within it.
Result<json> last_events(const Client& client, Kind kind, const std::string& subject) {
  // The events of a node belong to no job, so that the server cannot filter them by one.
  const std::string job = subject.substr(0, subject.find('/'));
  auto events =
      get_list(client, kind == Kind::kNodes ? "/events" : "/events?job=" + url_escape(job));
  if (!events) return events;
  json mine = json::array();
  for (const json& event : *events)
    if (is_of_job(Kind::kEvents, event, subject)) mine.push_back(event);
  if (mine.size() > kEventsShown)
    mine.erase(mine.begin(), mine.end() - static_cast<std::ptrdiff_t>(kEventsShown));
  return mine;
}

// The place of a state among those that a job which succeeds passes through; nullopt for Failed and
// Cancelled.
std::optional<std::size_t> rank_of(const std::string& state) {
  static constexpr std::string_view kPath[] = {"Queued",  "Starting", "WarmStart",
                                               "Running", "Stopping", "Succeeded"};
  const auto at = std::ranges::find(kPath, state);
  if (at == std::end(kPath)) return {};
  return static_cast<std::size_t>(at - std::begin(kPath));
}

// Whether a job is in the state `wanted` or, while it has not ended, has passed it: a short state
// could otherwise be missed between two looks. For a job that has ended only its last state counts.
bool has_reached(const json& job, const std::string& wanted) {
  const std::string state = field(job, "state");
  if (state == wanted) return true;
  return !has_ended(job) && rank_of(wanted) && rank_of(state) && rank_of(state) > rank_of(wanted);
}

// The deadline is on the steady clock, so that a change of the wall clock does not end a wait.
struct Deadline {
  Time at;
  explicit Deadline(double timeout_s)
      : at(steady_now() +
           std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout_s))) {}
  bool passed() const { return steady_now() > at; }
};

// A cancelled job has ended before its last process has: `cancel` waits for both.
bool actors_stopped(const json& actors, const std::string& job_id) {
  return std::ranges::none_of(actors, [&](const json& actor) {
    return field(actor, "job") == job_id && !actor_has_ended(actor);
  });
}

// Both numbers: the desired one shows that the controller has taken the request, the ready one that
// it is done.
bool scaled(const json& job, const ScaleCommand& command) {
  return std::ranges::all_of(command.roles, [&](const auto& role) {
    const json counts = job.value("actors", json::object()).value(role.first, json::object());
    return counts.value("desired", json()) == role.second &&
           counts.value("ready", json()) == role.second;
  });
}

// The reason and, where it says more, the message.
std::string why_it_ended(const json& job) {
  std::string reason = field(job, "reason");
  if (const std::string message = field(job, "message"); !message.empty() && message != reason)
    reason += (reason.empty() ? "" : ": ") + message;
  return reason;
}

}  // namespace

Result<void> outcome_of(const json& job) {
  if (field(job, "state") == "Succeeded") return {};
  const std::string reason = why_it_ended(job);
  return Error{
      ErrorCode::kFailed,
      "job " + field(job, "id") + " " + field(job, "state") + (reason.empty() ? "" : ": " + reason),
      field(job, "run_dir"), "`tandem describe jobs/" + field(job, "id") + "` says more"};
}

Result<json> watch_job(Client& client, const std::string& job_id,
                       const std::function<bool(const json&)>& done) {
  const std::string path = "/jobs/" + url_escape(job_id);
  Result<json> job = client.api.get(path);
  if (!job || done(*job)) return job;
  bool finished = false;
  auto ended =
      client.api.stream(path + "?watch=1", kLookAgain, [&](std::optional<std::string_view>) {
        job = client.api.get(path);
        finished = !job || done(*job);
        return !finished;
      });
  // `job` is the last look, or the error of that look.
  if (finished) return job;
  if (!ended) return ended.error();
  job = client.api.get(path);  // the server ended the stream: the last word
  if (!job || done(*job)) return job;
  return Error{ErrorCode::kUnreachable, "the controller closed the connection", "",
               "`tandem get jobs` shows whether it runs"};
}

// An accepted job that waits for room is no failure: prints a note, and returns an empty error with
// the exit code by which a script knows.
Error queued(Client& client, const std::string& id, const std::string& message) {
  client.err << "note: accepted but not placed: " << message
             << "\n  help: it starts when there is room; `tandem why " << id
             << "` says what it needs\n";
  return {ErrorCode::kInfeasible, "", "", ""};
}

// The controller reads all data of a job before it answers. Whoever waits for that is told why.
void tell_of_large_data(const job::JobSpec& job, std::ostream& err) {
  std::uint64_t bytes = 0;
  for (const auto& file : job.data.train_files) {
    std::error_code unknown;
    const std::uint64_t size = std::filesystem::file_size(file, unknown);
    if (!unknown) bytes += size;
  }
  if (bytes >= kDataBytesLarge)
    err << "note: the controller reads " << bytes / 1'000'000 << " MB of data before it answers"
        << std::endl;
}

Result<void> execute(const SubmitCommand& command, Client& client) {
  std::optional<std::filesystem::path> run;
  if (command.resume) {
    auto found = job::find_run(*command.resume, tandem_home() / "runs");
    if (!found) return found.error();
    run = std::move(*found);
  }
  // The file is read and checked here, with paths made absolute; the controller gets the effective
  // job.
  auto loaded = job::load_job_of(command.job, run, command.sets);
  if (!loaded) return loaded.error();
  for (const std::string& warning : loaded->warnings) client.err << "warning: " << warning << "\n";
  tell_of_large_data(loaded->spec, client.err);
  const ApiClient patient(client.api.address(), kSubmitTimeout);
  auto job = patient.post(run ? "/jobs?resume=" + url_escape(run->string()) : "/jobs",
                          job::print_job(loaded->spec));
  if (!job) return job.error();
  const std::string id = field(*job, "id");
  for (const json& warning : job->value("warnings", json::array()))
    client.err << "warning: " << (warning.is_string() ? warning.get<std::string>() : "") << "\n";
  if (command.output == OutputForm::kTable)
    client.out << id << std::endl;
  else
    client.out << render_item(Kind::kJobs, *job, command.output, screen_of(client)) << std::flush;
  if (!command.wait) {
    // Without --wait only a note says how to follow it: stdout has the id alone, for scripts.
    client.err << "submitted; `tandem get jobs " << id << " -w` follows it\n";
    if (field(*job, "state") == "Queued") return queued(client, id, field(*job, "message"));
    return {};
  }
  if (field(*job, "state") == "Queued") (void)queued(client, id, field(*job, "message"));
  ProgressDisplay display(client.out, client.err, client.terminal, client.width);
  auto end = watch_job(client, id, [&](const json& now) {
    display.show(now, steady_now(), has_ended(now));
    return has_ended(now);
  });
  display.erase();
  if (!end) return end.error();
  if (end->value("began", true))
    if (const auto ended = client.api.get("/runs/" + url_escape(id)))
      if (const json& result = cells::at(*ended, {"result"}); result.is_object())
        client.err << final_summary(*end, result) << std::flush;  // stdout has the id
  return outcome_of(*end);
}

Result<void> execute(const GetCommand& command, Client& client) {
  if (command.watch && command.kind == Kind::kRuns)
    return usage_error("runs cannot be watched", "`tandem get jobs -w` shows those that live");
  auto listing = listing_of(client, command);
  if (!listing) return listing.error();
  if (command.watch) return watch(client, *listing, command.output);
  auto items = fetch(client, *listing);
  if (!items) return items.error();
  client.out << render_fetched(*listing, *items, command.output, screen_of(client)) << std::flush;
  return {};
}

// The object to describe. An actor of a run that is known only by its directory has no path in the
// API: it is found in the record of its run.
Result<json> described(const Client& client, const DescribeCommand& command, const ObjectPath& at) {
  auto item = client.api.get(at.path);
  if (item || command.kind != Kind::kActors || item.error().code != ErrorCode::kNotFound)
    return item;
  auto actor = find_actor(client, command.name, command.job, PastRuns::kIncluded);
  if (!actor) return actor.error();
  auto run = client.api.get("/runs/" + url_escape(actor->job));
  if (!run) return run;
  for (const json& recorded : run->value("actors", json::array())) {
    const std::string name = field(recorded, "name");
    if (name == actor->full_name || name == actor->short_name()) return recorded;
  }
  return item;
}

Result<void> execute(const DescribeCommand& command, Client& client) {
  auto path = object_path(client, command.kind, command.name, command.job, PastRuns::kIncluded);
  if (!path) return path.error();
  auto item = described(client, command, *path);
  if (!item) return item.error();
  const bool by_id = path->kind == Kind::kJobs || path->kind == Kind::kRuns;
  auto events = last_events(client, path->kind, field(*item, by_id ? "id" : "name"));
  if (!events) return events.error();
  client.out << render_description(path->kind, *item, *events, screen_of(client)) << std::flush;
  return {};
}

Result<void> execute(const WhyCommand& command, Client& client) {
  // A job or a run is tried first, then an actor; an error that is not kNotFound, such as an
  // ambiguous name, is shown.
  Result<ObjectPath> path =
      object_path(client, Kind::kJobs, command.target, command.job, PastRuns::kIncluded);
  if (!path && path.error().code == ErrorCode::kNotFound)
    if (auto actor = object_path(client, Kind::kActors, command.target, command.job);
        actor || actor.error().code != ErrorCode::kNotFound)
      path = std::move(actor);
  if (!path && path.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, "no run, job or actor `" + command.target + "`", "",
                 "`tandem get runs` and `tandem get actors` list them"};
  if (!path) return path.error();
  auto item = client.api.get(path->path);
  if (!item) return item.error();
  if (command.output == OutputForm::kTable) {
    client.out << render_why(*item, screen_of(client)) << std::flush;
    return {};
  }
  const json why = item->value("why", json::array());
  client.out << (command.output == OutputForm::kYaml ? to_yaml(why) : shown_json(why, 2) + "\n")
             << std::flush;
  return {};
}

Result<void> execute(const ScaleCommand& command, Client& client) {
  auto id = find_job(client, command.job);
  if (!id) return id.error();
  json replicas = json::object();
  for (const auto& [role, count] : command.roles) replicas[role] = count;
  auto accepted = client.api.post("/jobs/" + url_escape(*id) + "/scale", dump_json(replicas));
  if (!accepted) return accepted.error();
  client.err << "accepted" << (command.wait ? "; waiting until they are Ready" : "") << std::endl;
  if (!command.wait) return {};
  const Deadline deadline(command.timeout_s);
  auto job = watch_job(client, *id, [&](const json& now) {
    return scaled(now, command) || has_ended(now) || deadline.passed();
  });
  if (!job) return job.error();
  if (scaled(*job, command)) return {};
  if (has_ended(*job)) return outcome_of(*job);
  return Error{ErrorCode::kTimedOut, "not all are Ready after " + age(command.timeout_s), "",
               "`tandem why " + *id + "` says who waits for what"};
}

Result<void> execute(const EventsCommand& command, Client& client) {
  return execute(GetCommand{.kind = Kind::kEvents,
                            .name = {},
                            .output = command.output,
                            .watch = command.follow,
                            .job = command.job},
                 client);
}

Result<void> execute(const CancelCommand& command, Client& client) {
  auto id = find_job(client, command.job);
  if (!id) return id.error();
  auto accepted = client.api.post("/jobs/" + url_escape(*id) + "/cancel", "{}");
  if (!accepted) return accepted.error();
  std::optional<Error> failure;
  auto job = watch_job(client, *id, [&](const json& now) {
    if (!has_ended(now)) return false;
    auto actors = get_list(client, "/actors");
    if (!actors) failure = actors.error();
    return failure || actors_stopped(*actors, *id);
  });
  if (failure) return *failure;
  if (!job) return job.error();
  client.err << "job " << *id << " " << field(*job, "state") << std::endl;
  if (field(*job, "state") == "Cancelled")
    client.err << job::resume_hint("submit", field(*job, "run_dir")) << std::flush;
  return {};
}

// The error for a step of which no sample is kept; it says which steps have some.
Error no_samples(const Client& client, const std::string& path, std::int64_t step) {
  const auto kept = client.api.get(path + "&steps=1");
  std::string help = "no step has any";
  if (kept && kept->is_array() && !kept->empty())
    help = "kept are samples of " + std::to_string(kept->size()) + " steps from " +
           dump_json(kept->front()) + " to " + dump_json(kept->back());
  if (kept && kept->is_array() && kept->size() > 1) {
    const json* nearest = &kept->front();
    for (const json& one : *kept)
      if (std::abs(one.get<std::int64_t>() - step) < std::abs(nearest->get<std::int64_t>() - step))
        nearest = &one;
    help += "; the nearest is --step " + dump_json(*nearest);
  }
  return {ErrorCode::kNotFound, "no sample of step " + std::to_string(step) + " is kept", "",
          std::move(help)};
}

Result<void> execute(const SamplesCommand& command, Client& client) {
  // An absolute path is a run directory, which an answer from files takes as it is.
  const bool directory = command.job.starts_with('/');
  auto id = directory ? Result<std::string>(command.job)
                      : find_job(client, command.job, PastRuns::kIncluded);
  if (!id) return id.error();
  const std::string path = "/jobs/" + url_escape(*id) +
                           "/samples?eval=" + (command.eval ? "1" : "0") +
                           (command.failed ? "&failed=1" : "");
  std::string query = path;
  if (command.step) query += "&step=" + std::to_string(*command.step);
  if (command.limit) query += "&limit=" + std::to_string(*command.limit);
  auto samples = get_list(client, query);
  if (!samples) return samples.error();
  if (samples->empty() && command.step) return no_samples(client, path, *command.step);
  client.out << render_samples(*samples, command.output, screen_of(client)) << std::flush;
  return {};
}

Result<void> execute(const DashboardCommand&, Client& client) {
  const auto page = client.api.post("/dashboard", "");
  if (!page) return page.error();
  client.out << "http://" << to_string(client.api.address().endpoint) << page->value("path", "/")
             << "\n"
             << std::flush;
  client.err << "it opens once, within " << page->value("expires_s", 0) << " s\n";
  return {};
}

Result<void> execute(const WaitCommand& command, Client& client) {
  auto id = find_job(client, command.job);
  if (!id) return id.error();
  std::optional<Deadline> deadline;
  if (command.timeout_s) deadline.emplace(*command.timeout_s);
  auto job = watch_job(client, *id, [&](const json& now) {
    return has_reached(now, command.state) || has_ended(now) || (deadline && deadline->passed());
  });
  if (!job) return job.error();
  if (has_reached(*job, command.state)) return {};
  if (has_ended(*job)) {
    const std::string reason = why_it_ended(*job);
    return Error{ErrorCode::kFailed,
                 "job " + *id + " has ended: it is " + field(*job, "state") + ", not " +
                     command.state + (reason.empty() ? "" : " (" + reason + ")"),
                 field(*job, "run_dir"), "`tandem describe jobs/" + *id + "` says more"};
  }
  return Error{ErrorCode::kTimedOut,
               "job " + *id + " is " + field(*job, "state") + ", not " + command.state +
                   ", after " + age(*command.timeout_s),
               "", "`tandem why " + *id + "` says who waits for what"};
}

}  // namespace tandem::cli
