// The frame from top to bottom: the cluster in two lines, jobs, actors, the keys. Jobs get at most
// a third of the rows and actors the rest; objects without room are counted in the last line of
// their list. On a narrow screen the tables leave columns out (table.h), so that nothing wraps.
// Colours are added after the tables are rendered: escape codes have no width, and render_table()
// would show them as text.
#include "actors/cli/top.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

#include "actors/cli/api_object.h"
#include "actors/cli/cells.h"
#include "actors/cli/fleet_view.h"
#include "actors/cli/sorting.h"
#include "actors/cli/table.h"
#include "runtime/base/text.h"

namespace tandem::cli {
namespace {

using cells::at;
using cells::gpus_found;
using cells::gpus_leased;
using cells::text;
using nlohmann::json;
using ScreenLines = std::vector<std::string>;

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kReverse = "\x1b[7m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kPlain = "\x1b[0m";
constexpr int kRowsAroundLists = 7;  // two heads, two blank lines, the cluster's two, the keys

struct SortOrder {
  const char* name;   // as the last line shows it
  const char* field;  // sorted_by()'s
};
constexpr SortOrder kSortOrders[] = {{"name", "name"},
                                     {"state", "state"},
                                     {"cpu", "-cpu_percent"},
                                     {"memory", "-memory_bytes"},
                                     {"restarts", "-restarts"}};
constexpr int kSortOrderCount = static_cast<int>(std::size(kSortOrders));

const SortOrder& order_of(TopSort sort) { return kSortOrders[static_cast<int>(sort)]; }

// Green for a state of work, red for a state that needs attention, yellow for states in between.
const char* colour_of(const std::string& state) {
  static constexpr std::string_view kGood[] = {"Ready", "Busy", "Running", "Succeeded"};
  static constexpr std::string_view kBad[] = {"Failed", "Lost", "Backoff"};
  if (std::ranges::find(kGood, state) != std::end(kGood)) return kGreen;
  return std::ranges::find(kBad, state) != std::end(kBad) ? kRed : kYellow;
}

// Adds colours to finished lines: the state of a row in its colour, the chosen row reversed.
// Without colours lines stay as they are.
class Painter {
 public:
  explicit Painter(const TopScreen& screen) : screen_(screen) {}

  std::string painted(const std::string& line, const char* code) const {
    return screen_.colour && !line.empty() ? code + line + kPlain : line;
  }
  std::string with_state(const std::string& line, const std::string& state) const {
    const std::size_t at = line.find("  " + state);
    if (!screen_.colour || at == std::string::npos) return line;
    return line.substr(0, at + 2) + colour_of(state) + state + kPlain +
           line.substr(at + 2 + state.size());
  }
  std::string chosen(std::string line) const {
    if (!screen_.colour) return line;
    // The reversed bar reaches to the edge of the screen.
    const int missing = screen_.size.columns - display_width(line);
    return painted(line + std::string(static_cast<std::size_t>(std::max(missing, 0)), ' '),
                   kReverse);
  }

 private:
  const TopScreen& screen_;
};

ScreenLines lines_of(const std::string& text) {
  ScreenLines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

// The number of a job on the screen is its place in this list; after_key() relies on that.
json live_jobs(const TopPicture& picture) {
  json live = json::array();
  for (const json& job : picture.jobs)
    if (!has_ended(job)) live.push_back(job);
  return live;
}

// The actors of the chosen job, or of all jobs, in the chosen order.
json shown_actors(const TopPicture& picture, const TopChoice& choice) {
  json shown = json::array();
  for (const json& actor : picture.actors)
    if (!actor_has_ended(actor) && (choice.job.empty() || text(at(actor, {"job"})) == choice.job))
      shown.push_back(actor);
  // The rows are sorted by name first: the second sort is stable, so that equal actors keep a
  // steady order.
  for (const char* field : {"name", order_of(choice.sort).field})
    if (auto sorted = sorted_by(field, shown))
      shown = std::move(*sorted);  // an error: no actor has the field
  return shown;
}

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Members that are missing count as 0.
double sum(const json& items, std::initializer_list<const char*> path) {
  double total = 0;
  for (const json& item : items)
    if (const json& value = at(item, path); value.is_number()) total += value.get<double>();
  return total;
}

// "nodes 1  cpus 1.6/2 leased, 187% used  memory 1.2 GiB of 7.8 GiB used  gpus 8"
std::string node_line(const TopPicture& picture) {
  json ready = json::array();
  std::string lost;
  std::size_t gpus = 0;
  double gpus_held = 0;
  for (const json& node : picture.nodes) {
    if (text(at(node, {"state"})) != "Ready") {
      lost += (lost.empty() ? "" : ", ") + text(at(node, {"name"}));
      continue;
    }
    gpus += gpus_found(node).size();
    if (const json held = gpus_leased(node); held.is_number()) gpus_held += held.get<double>();
    ready.push_back(node);
  }
  std::string line = plural(ready.size(), "node");
  if (!lost.empty()) line += " (lost: " + lost + ")";
  const json actors = shown_actors(picture, {});
  line += "  cpus " + text(json(sum(ready, {"leased", "cpus"}))) + "/" +
          text(json(sum(ready, {"cpus"}))) + " leased, " +
          text(json(std::round(sum(actors, {"cpu_percent"})))) + "% used  memory " +
          short_bytes(sum(actors, {"memory_bytes"})) + " of " +
          short_bytes(sum(ready, {"memory_bytes"})) + " used";
  if (gpus > 0) line += "  gpus " + text(json(gpus_held)) + "/" + std::to_string(gpus);
  return line;
}

std::string job_table(const json& jobs, const TopScreen& screen) {
  const std::vector<Column> columns{
      {"#", Align::kRight, 1},
      {"JOB", Align::kLeft, std::clamp(screen.size.columns / 4, 15, 40), Cut::kMiddle},
      {"STATE", Align::kLeft, 9},
      {"STEP", Align::kRight, 9},
      {"REWARD", Align::kRight, 6, Cut::kEnd, 1},
      {"EVAL", Align::kRight, 5, Cut::kEnd, 7},
      {"STALE", Align::kRight, 5, Cut::kEnd, 6},
      {"IDLE", Align::kRight, 6, Cut::kEnd, 5},
      {"GEN/S", Align::kRight, 6, Cut::kEnd, 3},
      {"TRAIN/S", Align::kRight, 7, Cut::kEnd, 4},
      {"ETA", Align::kRight, 6, Cut::kEnd, 2},
      {"AGE", Align::kRight, 6, Cut::kEnd, 8}};
  std::vector<Row> rows;
  for (const json& job : jobs)
    rows.push_back({std::to_string(rows.size() + 1), text(at(job, {"id"})),
                    text(at(job, {"state"})), cells::steps_of(job),
                    cells::fixed(at(job, {"reward_mean"})), cells::fixed(at(job, {"eval"})),
                    cells::of(at(job, {"staleness", "max"}), at(job, {"staleness", "bound"})),
                    idle_of(job), cells::count(at(job, {"tokens_per_second", "generated"})),
                    cells::count(at(job, {"tokens_per_second", "trained"})), cells::eta_of(job),
                    cells::age_of_object(job, screen.now_ms)});
  return render_table(columns, rows, screen.size.columns,
                      screen.kept ? &screen.kept->jobs : nullptr);
}

std::string actor_table(const json& actors, const TopChoice& choice, const TopScreen& screen) {
  const std::vector<Column> columns{
      {"ACTOR", Align::kLeft, std::clamp(screen.size.columns / 3, 14, 40), Cut::kMiddle},
      {"STATE", Align::kLeft, 5},
      {"CPU", Align::kRight, 5},
      {"MEMORY", Align::kRight, 8},
      {"LOAD", Align::kRight, 7, Cut::kEnd, 2},
      {"VERSION", Align::kRight, 7, Cut::kEnd, 3},
      {"RESTARTS", Align::kRight, 8, Cut::kEnd, 4},
      {"AGE", Align::kRight, 5, Cut::kEnd, 5},
      {"REASON", Align::kLeft, 8, Cut::kEnd, 1}};
  std::vector<Row> rows;
  for (const json& actor : actors) {
    std::string name = text(at(actor, {"name"}));
    if (!choice.job.empty() && name.starts_with(choice.job + "/"))
      name.erase(0, choice.job.size() + 1);
    rows.push_back({name, text(at(actor, {"state"})), cells::cpu_of(actor),
                    cells::bytes(at(actor, {"memory_bytes"})), text(at(actor, {"load"})),
                    text(at(actor, {"policy_version"})), text(at(actor, {"restarts"})),
                    cells::age_of_object(actor, screen.now_ms), cells::reason_of(actor)});
  }
  return render_table(columns, rows, screen.size.columns,
                      screen.kept ? &screen.kept->actors : nullptr);
}

// Appends the head of a table and at most `rows_max` lines below it. The last line says how many
// rows are left out.
void append_table(const std::string& table, const json& items, int rows_max,
                  const std::string& noun, const std::string& chosen, const TopScreen& screen,
                  ScreenLines& lines) {
  const Painter painter(screen);
  const ScreenLines rendered = lines_of(table);
  lines.push_back(painter.painted(rendered.front(), kBold));
  const bool all = items.size() <= static_cast<std::size_t>(std::max(rows_max, 0));
  // The last line says how many rows are left out, and takes the place of one.
  const std::size_t shown =
      all ? items.size() : static_cast<std::size_t>(std::max(rows_max - 1, 0));
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string state = text(at(items[i], {"state"}));
    const bool is_chosen = !chosen.empty() && text(at(items[i], {"id"})) == chosen;
    const std::string& line = rendered[i + 1];
    lines.push_back(is_chosen ? painter.chosen(line) : painter.with_state(line, state));
  }
  if (items.empty()) lines.push_back(fit("none", screen.size.columns));
  if (!all)
    lines.push_back(
        fit("… and " + plural(items.size() - shown, "more " + noun), screen.size.columns));
}

ScreenLines help_lines() {
  return {"q, Esc    leave",
          "s, right  sort by the next column; S, left: by the one before",
          "j, down   the next job alone; k, up: the one before",
          "1 … 9     the job of this number alone; 0: all jobs",
          "?         show or hide this",
          "",
          "IDLE is the learner's, measured/predicted, over the newest steps.",
          "CPU is of one core; MEMORY counts shared pages for each of an actor's processes."};
}

// The last row: the keys, or the error of the last look in red.
std::string key_line(const TopPicture& picture, const TopChoice& choice, const TopScreen& screen) {
  const Painter painter(screen);
  if (!picture.trouble.empty())
    return painter.painted(fit(visible(picture.trouble, Lines::kOne), screen.size.columns), kRed);
  const std::string keys = std::string("q quit  s sort:") + order_of(choice.sort).name +
                           "  j/k job:" + (choice.job.empty() ? "all" : choice.job) + "  ? help";
  return painter.painted(fit(visible(keys, Lines::kOne), screen.size.columns), kBold);
}

std::string head_line(const TopPicture& picture, const json& jobs, const TopScreen& screen) {
  const std::size_t ended = picture.jobs.size() - jobs.size();
  const std::string now = cells::clock_time(screen.now_ms, screen.now_ms);
  return "tandem top  " + now + "  " + plural(jobs.size(), "job") +
         (ended > 0 ? ", " + std::to_string(ended) + " ended" : "");
}

}  // namespace

ScreenLines top_lines(const TopPicture& picture, const TopChoice& choice, const TopScreen& screen) {
  const auto [columns, rows] = screen.size;
  const json jobs = live_jobs(picture), actors = shown_actors(picture, choice);
  ScreenLines lines{Painter(screen).painted(fit(head_line(picture, jobs, screen), columns), kBold),
                    fit(visible(node_line(picture), Lines::kOne), columns), ""};
  const int rows_of_lists = std::max(rows - kRowsAroundLists, 2);
  const int jobs_max = rows == kUnlimitedWidth ? rows : std::max(rows_of_lists / 3, 1);
  const std::size_t before = lines.size();
  append_table(job_table(jobs, screen), jobs, jobs_max, "job", choice.job, screen, lines);
  lines.emplace_back();
  const int used = static_cast<int>(lines.size() - before) - 2;  // without head and blank line
  if (choice.help)
    for (const std::string& line : help_lines()) lines.push_back(fit(line, columns));
  else
    append_table(actor_table(actors, choice, screen), actors, rows_of_lists - used, "actor", "",
                 screen, lines);
  // A page without keys, off a terminal, is as long as its lists.
  if (!screen.keys) return lines;
  const std::size_t body = static_cast<std::size_t>(std::max(rows - 1, 0));
  lines.resize(body);  // the keys stand in the last row
  if (rows > 0) lines.push_back(key_line(picture, choice, screen));
  return lines;
}

std::optional<TopChoice> after_key(TopChoice choice, const TopPicture& picture,
                                   const TerminalEvent& event) {
  const auto* character = std::get_if<char>(&event);
  const auto* key = std::get_if<PressedKey>(&event);
  const char c = character ? *character : '\0';
  if (c == 'q' || (key && *key == PressedKey::kEscape)) return std::nullopt;
  if (c == '?' || c == 'h') choice.help = !choice.help;
  // Backwards is one turn less than a whole round.
  const int turn = c == 's' || (key && *key == PressedKey::kRight)  ? 1
                   : c == 'S' || (key && *key == PressedKey::kLeft) ? kSortOrderCount - 1
                                                                    : 0;
  choice.sort = static_cast<TopSort>((static_cast<int>(choice.sort) + turn) % kSortOrderCount);
  const json jobs = live_jobs(picture);
  const int count = static_cast<int>(jobs.size());
  int chosen = 0;  // 0: all, else the number that the table shows
  for (int i = 0; i < count; ++i)
    if (text(at(jobs[static_cast<std::size_t>(i)], {"id"})) == choice.job) chosen = i + 1;
  if (c == 'j' || (key && *key == PressedKey::kDown)) chosen = (chosen + 1) % (count + 1);
  if (c == 'k' || (key && *key == PressedKey::kUp)) chosen = (chosen + count) % (count + 1);
  if (c >= '0' && c <= '9' && c - '0' <= count) chosen = c - '0';
  // The chosen job may have ended since: all jobs are then shown.
  const bool ended = chosen == 0;
  choice.job = ended ? "" : text(at(jobs[static_cast<std::size_t>(chosen - 1)], {"id"}));
  return choice;
}

}  // namespace tandem::cli
