// A watch on a terminal fetches and draws the whole list anew at each change. A watch off a
// terminal prints the objects that the lines of the API's stream hold.
#include "actors/cli/listing.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "actors/cli/api_object.h"
#include "actors/cli/arguments.h"
#include "actors/cli/cells.h"
#include "actors/cli/client.h"
#include "actors/cli/object_names.h"
#include "actors/cli/sorting.h"
#include "actors/cli/table.h"
#include "actors/cli/views.h"

namespace tandem::cli {

namespace {

using nlohmann::json;

constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

// The list of a request, and the filter that -j sets.
struct Listing {
  Kind kind;
  std::string path;
  std::string job_id;  // empty: all jobs; for events also an actor or a node
  bool one = false;    // an object, not a list
  std::string sort_by;
  bool all = true;  // tables show actors that have ended as well
  std::optional<std::string> group = {};
  std::vector<std::string> tags = {};

  std::string query(bool watch) const {
    std::string text = path;
    if (watch) text += "?watch=1";
    if (!job_id.empty() && !one) text += (watch ? "&job=" : "?job=") + url_escape(job_id);
    return text;
  }
  bool wants(const json& item) const {
    return (job_id.empty() || is_of_job(kind, item, job_id)) &&
           (!group || field(item, "group") == *group) &&
           std::ranges::all_of(tags, [&item](const std::string& tag) {
             const json& has = cells::at(item, {"tags"});
             return std::ranges::find(has, json(tag)) != has.end();
           });
  }
};

Result<Listing> listing_of(const Client& client, const ListRequest& request) {
  Listing listing{.kind = request.kind,
                  .path = "/" + std::string(spelling(request.kind)),
                  .job_id = "",
                  .sort_by = request.sort_by,
                  .all = request.all,
                  .group = request.group,
                  .tags = request.tags};
  if (request.name && request.kind == Kind::kEvents) {
    listing.job_id = *request.name;
  } else if (request.name) {
    auto path = object_path(client, request.kind, *request.name, request.job);
    if (!path) return path.error();
    listing.path = path->path;
    listing.one = true;
  } else if (request.job) {
    // Runs and events outlast their jobs, so that -j may name a run that has ended.
    const bool kept = request.kind == Kind::kEvents || request.kind == Kind::kRuns;
    auto id = find_job(client, *request.job, kept ? PastRuns::kIncluded : PastRuns::kExcluded);
    if (!id) return id.error();
    listing.job_id = *id;
  }
  return listing;
}

// A job may have a hundred thousand groups: they are asked for page by page.
Result<json> fetch_groups(const Client& client, const Listing& listing) {
  constexpr std::size_t kPage = 5000;
  json all = json::array();
  for (std::string after;;) {
    const std::string query = listing.query(false);
    const std::string page = (query.find('?') == std::string::npos ? "?" : "&") +
                             ("limit=" + std::to_string(kPage)) +
                             (after.empty() ? "" : "&after=" + url_escape(after));
    auto items = get_list(client, query + page);
    if (!items) return items;
    const std::size_t count = items->size();
    for (json& item : *items) all.push_back(std::move(item));
    if (count != kPage) return all;  // more: from a controller that knows no pages
    after = field(all.back(), "job") + "/" + field(all.back(), "group");
  }
}

Result<json> fetch(const Client& client, const Listing& listing) {
  if (listing.one) return client.api.get(listing.query(false));
  auto items = listing.kind == Kind::kGroups ? fetch_groups(client, listing)
                                             : get_list(client, listing.query(false));
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

Result<void> watch_list_on_terminal(Client& client, const Listing& listing, OutputForm form) {
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
    client.console.out << kClearScreen << render_fetched(listing, *items, form, screen)
                       << std::flush;
    return true;
  };
  if (!redraw(std::nullopt)) return *failure;
  auto ended = client.api.stream(listing.query(true), kLookAgain, redraw);
  return failure ? Result<void>(*failure) : std::move(ended);
}

// Off a terminal: prints all objects, then a line for each change; JSON is printed as NDJSON. The
// columns of the lines stay below those of the first table, unless a cell is wider than all before
// it.
Result<void> watch_list_as_lines(Client& client, const Listing& listing, OutputForm form) {
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
      for (const json& item : news) client.console.out << shown_json(item) << "\n";
    } else if (form == OutputForm::kYaml) {
      for (const json& item : news)
        client.console.out << "---\n" << render_item(listing.kind, item, form, screen);
    } else {
      const std::string text = render_items(listing.kind, news, form, screen);
      client.console.out << (header && !first ? text.substr(text.find('\n') + 1) : text);
    }
    client.console.out << std::flush;
  };
  auto items = fetch(client, listing);
  if (!items) return items.error();
  print_all(*items);
  return client.api.stream(listing.query(true), kLookAgain,
                           [&](std::optional<std::string_view> line) {
                             // The reader of a pipe may have gone; then the command ends.
                             if (!line) return bool(client.console.out);
                             const json changed = parse_json(*line);
                             if (changed.is_structured()) print_all(changed);
                             return bool(client.console.out);
                           });
}

Result<void> watch_list(Client& client, const Listing& listing, OutputForm form) {
  const bool redraws = client.console.terminal && listing.kind != Kind::kEvents;
  return redraws ? watch_list_on_terminal(client, listing, form)
                 : watch_list_as_lines(client, listing, form);
}

Result<void> show(const ListRequest& request, Client& client) {
  if ((request.group || !request.tags.empty()) && (request.kind != Kind::kRuns || request.name))
    return usage_error("--group and --tag are of lists of runs", "tandem get runs --group NAME");
  if (request.watch && request.kind == Kind::kRuns)
    return usage_error("runs cannot be watched", "`tandem get jobs -w` shows those that live");
  auto listing = listing_of(client, request);
  if (!listing) return listing.error();
  if (request.watch) return watch_list(client, *listing, request.output);
  auto items = fetch(client, *listing);
  if (!items) return items.error();
  client.console.out << render_fetched(*listing, *items, request.output, screen_of(client))
                     << std::flush;
  return {};
}

// Whether the files of runs can answer: they have the runs, and the events of one of them.
AnsweredBy answered_by(const ListRequest& request) {
  const bool of_runs = request.kind == Kind::kRuns ||
                       (request.kind == Kind::kEvents && (request.job || request.name));
  return of_runs && !request.watch ? AnsweredBy::kRunsAsWell : AnsweredBy::kController;
}

}  // namespace

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

Result<int> show_list(const ListRequest& request, const VerbContext& context) {
  return with_api(context, answered_by(request),
                  [&request](Client& client) { return show(request, client); });
}

}  // namespace tandem::cli
