// Each kind of object has a list of fields: a column, and a function that makes the cell from an
// object. A table shows those fields in order; the wide form adds the fields marked so. JSON and
// YAML show every member, whatever the columns are, so that a new member of the API needs no change
// here.
//
// All text may come from users and their models: tables and lines pass through visible(), JSON and
// YAML escape what would steer a terminal.
#include "actors/cli/views.h"

#include <algorithm>
#include <span>
#include <utility>

#include "actors/cli/arguments.h"
#include "actors/cli/cells.h"
#include "actors/cli/fleet_view.h"
#include "actors/cli/memory_view.h"
#include "actors/cli/table.h"
#include "actors/cli/trouble_view.h"
#include "actors/job/print_job.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

using cells::age_of_object;
using cells::at;
using cells::bytes;
using cells::count;
using cells::fixed;
using cells::gpus_found;
using cells::gpus_gone;
using cells::gpus_leased;
using cells::kNone;
using cells::of;
using cells::percent;
using cells::reason_of;
using cells::text;

constexpr int kJsonIndent = 2;

// The indices of GPUs: "0,1" of [0, 1].
std::string indices(const json& gpus) {
  if (!gpus.is_array() || gpus.empty()) return kNone;
  std::string all;
  for (const json& gpu : gpus) all += (all.empty() ? "" : ",") + text(gpu);
  return all;
}

// Leased GPUs of those that the node has: "1.5/2". Behind them those that an up node has lost while
// ranks held them: "2/2 (1 gone)".
std::string gpus_of(const json& node) {
  const json gpus = gpus_found(node);
  const std::size_t gone = text(at(node, {"state"})) == "Ready" ? gpus_gone(node).size() : 0;
  if (gpus.empty() && gone == 0) return kNone;
  const std::string found = of(gpus_leased(node), gpus.size());
  return gone == 0 ? found : found + " (" + std::to_string(gone) + " gone)";
}

// "2 x NVIDIA H200 (140 GiB)", or why the node has none.
std::string gpu_names(const json& node) {
  const json gpus = gpus_found(node);
  if (gpus.empty()) return text(at(node, {"gpus_absent"}));
  return std::to_string(gpus.size()) + " x " + text(at(gpus.front(), {"name"})) + " (" +
         bytes(at(gpus.front(), {"memory_bytes"})) + ")";
}

// The version of NCCL, "2.28.9", or why the node has none.
std::string nccl_of(const json& node) {
  const json& version = at(node, {"nccl", "version"});
  return text(version.is_null() ? at(node, {"nccl_absent"}) : version);
}

// Actors that are ready of those that are desired, per role: "learner 1/1 rollout 2/2".
std::string ready_of(const json& job) {
  std::string ready;
  const json& actors = at(job, {"actors"});
  if (!actors.is_object()) return kNone;
  for (const auto& [role, counts] : actors.items())
    ready += (ready.empty() ? "" : " ") + role + " " +
             of(at(counts, {"ready"}), at(counts, {"desired"}));
  return ready.empty() ? kNone : ready;
}

// Spans of one version that follow each other are one entry.
std::string versions_of(const json& versions) {
  if (!versions.is_array() || versions.empty()) return text(versions);
  std::string list;
  for (const json& version : versions) {
    const std::string one = dump_json(version);
    if (!list.ends_with(one)) list += (list.empty() ? "" : ",") + one;
  }
  return list;
}

// A column of a kind. Functions and not paths of members, since most cells combine several.
struct Field {
  Column column;
  bool wide = false;  // only in the wide form
  std::string (*cell)(const json& item, const Screen& screen);
};

std::string created_of(const json& item, const Screen& screen) {
  const json& created = at(item, {"created"});
  return screen.wide ? cells::full_time(created) : cells::clock_time(created, screen.now_ms);
}

// Two fields that several kinds share.
const Field kCreatedField = {
    {"CREATED"}, true, [](const json& j, const Screen& s) { return created_of(j, s); }};
const Field kAgeField = {{"AGE", Align::kRight, 5, Cut::kEnd, 3},
                         false,
                         [](const json& j, const Screen& s) { return age_of_object(j, s.now_ms); }};

// The columns of jobs. An id is cut in its middle, since its number is at its end. On a narrow
// terminal names, states and steps stay whole: rates and then other figures are left out, by the
// `drop` of their columns, and the reason, which is last, is cut.
const Field kJobFields[] = {
    {{"JOB", Align::kLeft, 28, Cut::kMiddle},
     false,
     [](const json& j, const Screen&) { return text(at(j, {"id"})); }},
    {{"STATE", Align::kLeft, 12},
     false,
     [](const json& j, const Screen&) { return text(at(j, {"state"})); }},
    {{"STEP", Align::kRight, 15},
     false,
     [](const json& j, const Screen&) { return cells::steps_of(j); }},
    {{"REWARD", Align::kRight, 6, Cut::kEnd, 2},
     false,
     [](const json& j, const Screen&) { return fixed(at(j, {"reward_mean"})); }},
    {{"STALE", Align::kRight, 5, Cut::kEnd, 4},
     false,
     [](const json& j, const Screen&) {
       return of(at(j, {"staleness", "max"}), at(j, {"staleness", "bound"}));
     }},
    {{"QUEUE", Align::kRight, 5},
     true,
     [](const json& j, const Screen&) { return text(at(j, {"queue_depth"})); }},
    {{"IDLE", Align::kRight},
     true,
     [](const json& j, const Screen&) { return percent(at(j, {"trainer_idle_fraction"})); }},
    {{"GEN/S", Align::kRight, 6, Cut::kEnd, 5},
     false,
     [](const json& j, const Screen&) {
       return count(at(j, {"tokens_per_second", "generated"}));
     }},
    {{"TRAIN/S", Align::kRight, 7, Cut::kEnd, 6},
     false,
     [](const json& j, const Screen&) {
       return count(at(j, {"tokens_per_second", "trained"}));
     }},
    {{"REWARDS FAILED", Align::kRight, 6},
     true,
     [](const json& j, const Screen&) { return count(at(j, {"rewards_failed"})); }},
    {{"READY", Align::kLeft, 8}, true, [](const json& j, const Screen&) { return ready_of(j); }},
    {{"RUN DIR", Align::kLeft, 8},
     true,
     [](const json& j, const Screen&) { return text(at(j, {"run_dir"})); }},
    kCreatedField,
    kAgeField,
    {{"REASON", Align::kLeft, 12},
     false,
     [](const json& j, const Screen&) { return reason_of(j); }},
};

// A word, or several with commas between them; "-" for none.
std::string words_of(const json& words) {
  if (!words.is_array()) return words == "" ? kNone : text(words);
  std::string joined;
  for (const json& word : words) joined += (joined.empty() ? "" : ",") + text(word);
  return joined.empty() ? kNone : joined;
}

// The columns of runs, which are known by their directories.
const Field kRunFields[] = {
    {{"RUN", Align::kLeft, 28, Cut::kMiddle},
     false,
     [](const json& r, const Screen&) { return text(at(r, {"id"})); }},
    {{"STATE", Align::kLeft, 12},
     false,
     [](const json& r, const Screen&) { return text(at(r, {"state"})); }},
    {{"STEP", Align::kRight, 15},
     false,
     [](const json& r, const Screen&) { return of(at(r, {"step"}), at(r, {"total_steps"})); }},
    {{"REWARD", Align::kRight, 6, Cut::kEnd, 2},
     false,
     [](const json& r, const Screen&) { return fixed(at(r, {"reward_mean"})); }},
    {{"EVAL", Align::kRight, 5, Cut::kEnd, 1},
     false,
     [](const json& r, const Screen&) { return fixed(at(r, {"eval_final"})); }},
    {{"STALE", Align::kRight, 5},
     true,
     [](const json& r, const Screen&) {
       return of(at(r, {"staleness", "max"}), at(r, {"staleness", "bound"}));
     }},
    {{"IDLE", Align::kRight},
     true,
     [](const json& r, const Screen&) { return percent(at(r, {"trainer_idle_fraction"})); }},
    {{"TOOK", Align::kRight, 4, Cut::kEnd, 4},
     false,
     [](const json& r, const Screen&) {
       const json& took = at(r, {"wall_seconds"});
       return took.is_number() ? short_age(took.get<double>()) : kNone;
     }},
    {{"GROUP", Align::kLeft, 8},
     true,
     [](const json& r, const Screen&) { return words_of(at(r, {"group"})); }},
    {{"TAGS", Align::kLeft, 8},
     true,
     [](const json& r, const Screen&) { return words_of(at(r, {"tags"})); }},
    {{"RUN DIR", Align::kLeft, 8},
     true,
     [](const json& r, const Screen&) { return text(at(r, {"run_dir"})); }},
    {{"CREATED", Align::kLeft, 19, Cut::kEnd, 5},
     false,
     [](const json& r, const Screen& s) { return created_of(r, s); }},
    kAgeField,
    {{"REASON", Align::kLeft, 12},
     false,
     [](const json& r, const Screen&) { return reason_of(r); }},
};

// The columns of actors; node, process and resources are in the wide form.
const Field kActorFields[] = {
    {{"ACTOR", Align::kLeft, 32, Cut::kMiddle},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"name"})); }},
    {{"STATE", Align::kLeft, 12},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"state"})); }},
    {{"RESTARTS", Align::kRight, 8, Cut::kEnd, 1},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"restarts"})); }},
    {{"VERSION", Align::kRight, 7, Cut::kEnd, 4},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"policy_version"})); }},
    {{"LOAD", Align::kRight, 4, Cut::kEnd, 5},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"load"})); }},
    {{"NODE"}, true, [](const json& a, const Screen&) { return text(at(a, {"node"})); }},
    {{"PID", Align::kRight},
     true,
     [](const json& a, const Screen&) { return text(at(a, {"pid"})); }},
    {{"GPUS"}, true, [](const json& a, const Screen&) { return indices(at(a, {"gpus"})); }},
    {{"INCARNATION", Align::kRight, 11},
     true,
     [](const json& a, const Screen&) { return text(at(a, {"incarnation"})); }},
    {{"CPU", Align::kRight}, true, [](const json& a, const Screen&) { return cells::cpu_of(a); }},
    {{"MEMORY", Align::kRight},
     true,
     [](const json& a, const Screen&) { return bytes(at(a, {"memory_bytes"})); }},
    kCreatedField,
    kAgeField,
    {{"REASON", Align::kLeft, 12},
     false,
     [](const json& a, const Screen&) { return reason_of(a); }},
};

// The columns of nodes.
const Field kNodeFields[] = {
    {{"NODE", Align::kLeft, 8},
     false,
     [](const json& n, const Screen&) { return text(at(n, {"name"})); }},
    {{"STATE", Align::kLeft, 12},
     false,
     [](const json& n, const Screen&) { return text(at(n, {"state"})); }},
    {{"CPUS", Align::kRight},
     false,
     [](const json& n, const Screen&) {
       return of(at(n, {"leased", "cpus"}), at(n, {"cpus"}));
     }},
    {{"MEMORY", Align::kRight}, false, [](const json& n, const Screen&) { return node_memory(n); }},
    {{"GPUS", Align::kRight}, false, [](const json& n, const Screen&) { return gpus_of(n); }},
    {{"GPU"}, true, [](const json& n, const Screen&) { return gpu_names(n); }},
    {{"NCCL"}, true, [](const json& n, const Screen&) { return nccl_of(n); }},
    {{"SINCE", Align::kRight},
     false,
     [](const json& n, const Screen& s) { return cells::age_of(at(n, {"since"}), s.now_ms); }},
    {{"REASON", Align::kLeft, 12},
     false,
     [](const json& n, const Screen&) { return reason_of(n); }},
};

// The columns of groups, as the ledger of a job has them.
const Field kGroupFields[] = {
    {{"GROUP", Align::kRight},
     false,
     [](const json& g, const Screen&) { return text(at(g, {"group"})); }},
    {{"ATTEMPT", Align::kRight, 7},
     false,
     [](const json& g, const Screen&) { return text(at(g, {"attempt"})); }},
    {{"STATE", Align::kLeft, 12},
     false,
     [](const json& g, const Screen&) { return text(at(g, {"state"})); }},
    {{"HOLDER", Align::kLeft, 8},
     false,
     [](const json& g, const Screen&) { return text(at(g, {"holder"})); }},
    {{"DUE", Align::kRight},
     false,
     [](const json& g, const Screen&) { return text(at(g, {"due"})); }},
    {{"AGE", Align::kRight},
     false,
     [](const json& g, const Screen&) {
       const json& seconds = at(g, {"age_s"});
       return seconds.is_number() ? age(seconds.get<double>()) : kNone;
     }},
};

// The columns of events.
const Field kEventFields[] = {
    {{"TIME"},
     false,
     [](const json& e, const Screen& s) {
       return s.wide ? cells::full_time(at(e, {"time"})) : cells::date_time(at(e, {"time"}));
     }},
    {{"KIND"}, false, [](const json& e, const Screen&) { return text(at(e, {"kind"})); }},
    {{"SUBJECT", Align::kLeft, 8},
     false,
     [](const json& e, const Screen&) { return text(at(e, {"subject"})); }},
    {{"MESSAGE", Align::kLeft, 8},
     false,
     [](const json& e, const Screen&) { return text(at(e, {"message"})); }},
    {{"SEQ", Align::kRight},
     true,
     [](const json& e, const Screen&) { return text(at(e, {"seq"})); }},
};

// The columns of a kind, and the member that names its objects.
struct KindView {
  std::span<const Field> fields;
  const char* id;
};

KindView view_of(Kind kind) {
  switch (kind) {
    case Kind::kJobs:
      return {kJobFields, "id"};
    case Kind::kActors:
      return {kActorFields, "name"};
    case Kind::kRuns:
      return {kRunFields, "id"};
    case Kind::kNodes:
      return {kNodeFields, "name"};
    case Kind::kGroups:
      return {kGroupFields, "group"};
    case Kind::kEvents:
      return {kEventFields, "seq"};
  }
  CHECK(false);
}

std::string table_of(Kind kind, const json& items, bool wide, const Screen& where) {
  Screen screen = where;
  screen.wide = wide;
  std::vector<Column> columns;
  std::vector<Row> rows(items.size());
  for (const Field& field : view_of(kind).fields) {
    if (field.wide && !wide) continue;
    columns.push_back(field.column);
    for (std::size_t i = 0; i < items.size(); ++i) rows[i].push_back(field.cell(items[i], screen));
  }
  return render_table(columns, rows, screen.width, screen.kept);
}

// The members of an object that are times, as people read them: "2026-11-25 15:54:29 (5s ago)".
json with_readable_times(json fields, const Screen& screen) {
  if (!fields.is_object()) return fields;
  for (const char* const name : {"created", "started", "since", "ended", "time"})
    if (const auto at = fields.find(name); at != fields.end() && at->is_number())
      *at = cells::date_time(*at) + " (" + cells::age_of(*at, screen.now_ms) + " ago)";
  return fields;
}

// A string that JSON escapes keeps the quoted form of JSON, which YAML contains; others stand plain
// where that is safe.
std::string yaml_scalar(const json& value) {
  if (!value.is_string()) return dump_json(value);
  std::string plain = value.get<std::string>();
  std::string quoted = shown_json(value);
  return quoted.find('\\') == std::string::npos ? print_value(job::FieldRef(&plain)) : quoted;
}

// Whether a value needs lines of its own: scalars, empty lists and empty maps stand on the line of
// their key or dash.
bool is_block(const json& value) { return value.is_structured() && !value.empty(); }

void append_yaml(const json& value, std::size_t indent, std::string& out) {
  const std::string pad(indent, ' ');
  if (!is_block(value)) {
    out += yaml_scalar(value) + "\n";
  } else if (value.is_array()) {
    for (const json& item : value) {
      if (!is_block(item)) {
        out += pad + "- " + yaml_scalar(item) + "\n";
        continue;
      }
      std::string block;
      append_yaml(item, indent + 2, block);
      // A block inside a list: its first line gets the dash in place of a space.
      block[indent] = '-';
      out += block;
    }
  } else {
    for (const auto& [name, item] : value.items()) {
      // Names are text of others as well, such as reasons and data sources: they are quoted where
      // YAML needs it.
      out += pad + yaml_scalar(json(name)) + (is_block(item) ? ":\n" : ": ");
      append_yaml(item, indent + 2, out);
    }
  }
}

std::string said(const json& value) {
  return value.is_string() ? value.get<std::string>() : text(value);
}

// Which completion of an evaluated prompt a sample is: "3", or "greedy".
std::string sample_text(const json& sample) {
  const json& greedy = at(sample, {"greedy"});
  return greedy.is_boolean() && greedy.get<bool>() ? "greedy" : text(at(sample, {"sample"}));
}

// The words that differ from sample to sample: of a conversation the last message of its user,
// since the prompt begins with the marks of the chat template.
const json& question_of(const json& sample) {
  const json& user = at(sample, {"user"});
  return user.is_null() ? at(sample, {"prompt"}) : user;
}

// One sample with its prompt and completion whole, as the wide form shows it.
std::string sample_block(const json& sample) {
  std::string head =
      "step " + text(at(sample, {"step"})) + "  reward " + fixed(at(sample, {"reward"})) +
      "  advantage " + fixed(at(sample, {"advantage"})) + "  versions " +
      versions_of(at(sample, {"versions"})) + "  " + text(at(sample, {"finish_reason"}));
  if (const std::string which = sample_text(sample); which != kNone) head += "  sample " + which;
  if (const json& source = at(sample, {"data_source"}); source.is_string())
    head += "  from " + text(source);
  if (const json& answer = at(sample, {"answer"}); !answer.is_null())
    head += "  answer " + said(answer);
  if (const json& error = at(sample, {"error"});
      error.is_string() && !error.get<std::string>().empty())
    head += "  error: " + text(error);
  return visible(head, Lines::kOne) + "\n" +
         visible(text(at(sample, {"prompt"})) + "\n=> " + text(at(sample, {"completion"})),
                 Lines::kMany) +
         "\n\n";
}

// Columns in which no sample has a value are left out.
std::string table_of_samples(const json& samples, const Screen& screen) {
  std::vector<Column> columns{{"STEP", Align::kRight},          {"SAMPLE", Align::kLeft, 6},
                              {"SOURCE", Align::kLeft, 6},      {"REWARD", Align::kRight, 6},
                              {"ADV", Align::kRight, 5},        {"VERSIONS", Align::kLeft, 8},
                              {"FINISH", Align::kLeft, 6},      {"PROMPT", Align::kLeft, 8},
                              {"COMPLETION", Align::kLeft, 10}, {"ERROR", Align::kLeft, 8}};
  std::vector<Row> rows;
  for (const json& sample : samples)
    rows.push_back({text(at(sample, {"step"})), sample_text(sample),
                    text(at(sample, {"data_source"})), fixed(at(sample, {"reward"})),
                    fixed(at(sample, {"advantage"})), versions_of(at(sample, {"versions"})),
                    text(at(sample, {"finish_reason"})), said(question_of(sample)),
                    said(at(sample, {"completion"})), text(at(sample, {"error"}))});
  for (const char* const name : {"ERROR", "SOURCE", "SAMPLE"}) {
    const auto column = std::ranges::find(columns, name, &Column::title);
    const auto at = column - columns.begin();
    const auto empty = [at](const Row& row) { return row[static_cast<std::size_t>(at)] == kNone; };
    if (!std::ranges::all_of(rows, empty)) continue;
    columns.erase(column);
    for (Row& row : rows) row.erase(row.begin() + at);
  }
  return render_table(columns, rows, screen.width);
}

// "in 59m12s, 01:26:40": how much time is left, and when it is over.
std::string until_text(double left_s, const Screen& screen) {
  const auto left_ms = static_cast<std::int64_t>(std::clamp(left_s, 0.0, 1e9) * 1000);
  return "in " + age(left_s) + ", " + cells::clock_time(screen.now_ms + left_ms, screen.now_ms);
}

// A wait without a deadline shows who ends it, else "none"; one without a start "-".
std::string wait_lines(const json& why, const Screen& screen) {
  std::vector<Row> rows;
  for (const json& wait : why) {
    const json& since = at(wait, {"since_s"});
    const json& deadline = at(wait, {"deadline_s"});
    const json& ended_by = at(wait, {"ended_by"});
    rows.push_back({text(at(wait, {"who"})), text(at(wait, {"waits_for"})),
                    since.is_number() ? age(since.get<double>()) : kNone,
                    deadline.is_number()   ? until_text(deadline.get<double>(), screen)
                    : ended_by.is_string() ? text(ended_by)
                                           : "none",
                    text(at(wait, {"detail"}))});
  }
  return render_table({{"WHO", Align::kLeft, 12},
                       {"WAITS FOR", Align::kLeft, 12},
                       {"SINCE", Align::kRight, 5},
                       {"DEADLINE", Align::kRight, 8},
                       {"DETAIL", Align::kLeft, 8}},
                      rows, screen.width);
}

}  // namespace

std::string shown_json(const json& value, int indent) {
  return visible(dump_json(value, indent), Lines::kMany);
}

std::string to_yaml(const json& value) {
  std::string out;
  append_yaml(value, 0, out);
  return out;
}

static std::string json_lines(const json& items) {
  std::string lines;
  for (const json& item : items) lines += shown_json(item) + "\n";
  return lines;
}

std::string render_items(Kind kind, const json& items, OutputForm form, const Screen& screen) {
  switch (form) {
    case OutputForm::kJson:
      return shown_json(items, kJsonIndent) + "\n";
    case OutputForm::kJsonl:
      return json_lines(items);
    case OutputForm::kYaml:
      return to_yaml(items);
    // Each line is for `xargs`: kind/name, which `describe` and `get` take as it is.
    case OutputForm::kName: {
      std::string names;
      for (const json& item : items)
        names += visible(std::string(spelling(kind)) + "/" + text(at(item, {view_of(kind).id})),
                         Lines::kOne) +
                 "\n";
      return names;
    }
    case OutputForm::kTable:
    case OutputForm::kWide:
      if (items.empty()) return "no " + std::string(spelling(kind)) + "\n";
      return table_of(kind, items, form == OutputForm::kWide, screen);
  }
  CHECK(false);
}

std::string render_item(Kind kind, const json& item, OutputForm form, const Screen& screen) {
  if (form == OutputForm::kJson) return shown_json(item, kJsonIndent) + "\n";
  if (form == OutputForm::kYaml) return to_yaml(item);
  return render_items(kind, json::array({item}), form, screen);
}

// Members that have tables of their own are taken out of the YAML.
std::string render_description(Kind kind, const json& item, const json& events,
                               const Screen& screen) {
  json fields = with_readable_times(item, screen);
  if (fields.is_object())
    for (const char* const shown :
         {"why", "alerts", "troubles", "rates", "predicted", "memory", "reserved"})
      fields.erase(shown);
  std::string out =
      render_items(kind, json::array({item}), OutputForm::kName, screen) + "\n" + to_yaml(fields);
  const json& why = at(item, {"why"});
  for (const auto& [title, lines] :
       {std::pair("Waits", why.empty() ? std::string() : wait_lines(why, screen)),
        std::pair("Alerts", alert_lines(item)), std::pair("Troubles", trouble_lines(item)),
        std::pair("Fleet", fleet_lines(item, screen.width)),
        std::pair("Memory", memory_lines(item, screen.width)),
        std::pair("Reserved", reserved_lines(item, screen.width))})
    if (!lines.empty()) out += "\n" + std::string(title) + ":\n" + lines;
  return out + "\nEvents:\n" +
         (events.empty() ? "none\n" : table_of(Kind::kEvents, events, false, screen));
}

std::string render_why(const json& item, const Screen& screen) {
  const std::string name = text(at(item, {at(item, {"id"}).is_null() ? "name" : "id"}));
  std::string out = name + " is " + text(at(item, {"state"}));
  if (const std::string reason = reason_of(item); reason != kNone) out += ": " + reason;
  out = visible(out, Lines::kOne) + "\n";
  out += alert_lines(item) + trouble_lines(item);  // whole: they are why the question was asked
  const json& why = at(item, {"why"});
  return out + (why.empty() ? "it waits for nothing\n" : wait_lines(why, screen));
}

std::string render_samples(const json& samples, OutputForm form, const Screen& screen) {
  if (form == OutputForm::kJson) return shown_json(samples, kJsonIndent) + "\n";
  if (form == OutputForm::kJsonl) return json_lines(samples);
  if (form == OutputForm::kYaml) return to_yaml(samples);
  if (samples.empty()) return "no samples\n";
  if (form == OutputForm::kWide) {
    std::string blocks;
    for (const json& sample : samples) blocks += sample_block(sample);
    return blocks;
  }
  return table_of_samples(samples, screen);
}

}  // namespace tandem::cli
