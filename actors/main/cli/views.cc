#include "actors/main/cli/views.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <span>

#include "actors/main/cli/command_line.h"
#include "actors/main/cli/table.h"
#include "actors/main/job/print_job.h"
#include "runtime/base/json.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr const char* kNone = "-";
constexpr std::string_view kLineBreak = "\\n";
constexpr int kJsonIndent = 2;

std::string dump(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// The member at a path of names, or null.
const json& at(const json& item, std::initializer_list<const char*> path) {
  static const json kNull;
  const json* value = &item;
  for (const char* name : path) {
    if (!value->is_object()) return kNull;
    const auto found = value->find(name);
    if (found == value->end()) return kNull;
    value = &*found;
  }
  return *value;
}

std::string number_text(double value, const char* format) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

std::string text(const json& value) {
  if (value.is_null()) return kNone;
  if (value.is_string()) return value.get<std::string>().empty() ? kNone : value.get<std::string>();
  if (value.is_number_float()) return number_text(value.get<double>(), "%.4g");
  if (value.is_array() && value.empty()) return kNone;
  return dump(value);
}

std::string count(const json& value) {
  return value.is_number() ? short_count(value.get<double>()) : kNone;
}

std::string bytes(const json& value) {
  return value.is_number() ? short_bytes(value.get<double>()) : kNone;
}

std::string percent(const json& value) {
  return value.is_number() ? number_text(100 * value.get<double>(), "%.0f%%") : kNone;
}

std::string fixed(const json& value) {
  return value.is_number() ? number_text(value.get<double>(), "%.3f") : kNone;
}

std::string of(const json& part, const json& whole) {
  return part.is_null() && whole.is_null() ? kNone : text(part) + "/" + text(whole);
}

// "0,1" of [0, 1].
std::string indices(const json& gpus) {
  if (!gpus.is_array() || gpus.empty()) return kNone;
  std::string all;
  for (const json& gpu : gpus) all += (all.empty() ? "" : ",") + text(gpu);
  return all;
}

// "1.5/2": leased of all.
std::string gpus_of(const json& node) {
  const json& gpus = at(node, {"gpus"});
  if (!gpus.is_array() || gpus.empty()) return kNone;
  return of(at(node, {"leased", "gpus"}), gpus.size());
}

// "2 x NVIDIA H200 (140 GiB)", or why there is none.
std::string gpu_names(const json& node) {
  const json& gpus = at(node, {"gpus"});
  if (!gpus.is_array() || gpus.empty()) return text(at(node, {"gpus_absent"}));
  return std::to_string(gpus.size()) + " x " + text(at(gpus.front(), {"name"})) + " (" +
         bytes(at(gpus.front(), {"memory_bytes"})) + ")";
}

std::string age_of(const json& time, const Screen& screen) {
  const std::int64_t since = to_unix_ms(time, -1);
  return since < 0 ? kNone : age(static_cast<double>(screen.now_ms - since) / 1000);
}

// "WaitingForCapacity: needs 2 CPUs, 1 is free": the reason and what it says.
std::string reason_of(const json& item) {
  std::string reason = text(at(item, {"reason"}));
  const std::string message = text(at(item, {"message"}));
  if (message == kNone || message == reason) return reason;
  return reason == kNone ? message : reason + ": " + message;
}

std::string ready_of(const json& job) {
  std::string ready;
  const json& actors = at(job, {"actors"});
  if (!actors.is_object()) return kNone;
  for (const auto& [role, counts] : actors.items())
    ready += (ready.empty() ? "" : " ") + role + " " +
             of(at(counts, {"ready"}), at(counts, {"desired"}));
  return ready.empty() ? kNone : ready;
}

std::string versions_of(const json& versions) {
  if (!versions.is_array() || versions.empty()) return text(versions);
  std::string list;
  for (const json& version : versions) {
    const std::string one = dump(version);
    if (!list.ends_with(one)) list += (list.empty() ? "" : ",") + one;
  }
  return list;
}

struct Field {
  Column column;
  bool wide = false;  // only in the wide form
  std::string (*cell)(const json& item, const Screen& screen);
};

const Field kJobFields[] = {
    {{"JOB", Align::kLeft, 12},
     false,
     [](const json& j, const Screen&) { return text(at(j, {"id"})); }},
    {{"STATE"}, false, [](const json& j, const Screen&) { return text(at(j, {"state"})); }},
    {{"STEP", Align::kRight, 7},
     false,
     [](const json& j, const Screen&) { return of(at(j, {"step"}), at(j, {"total_steps"})); }},
    {{"REWARD", Align::kRight, 6},
     false,
     [](const json& j, const Screen&) { return fixed(at(j, {"reward_mean"})); }},
    {{"STALE", Align::kRight, 5},
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
    {{"GEN/S", Align::kRight, 6},
     false,
     [](const json& j, const Screen&) {
       return count(at(j, {"tokens_per_second", "generated"}));
     }},
    {{"TRAIN/S", Align::kRight, 7},
     false,
     [](const json& j, const Screen&) {
       return count(at(j, {"tokens_per_second", "trained"}));
     }},
    {{"READY", Align::kLeft, 8}, true, [](const json& j, const Screen&) { return ready_of(j); }},
    {{"REASON", Align::kLeft, 8}, false, [](const json& j, const Screen&) { return reason_of(j); }},
    {{"RUN DIR", Align::kLeft, 8},
     true,
     [](const json& j, const Screen&) { return text(at(j, {"run_dir"})); }},
    {{"AGE", Align::kRight},
     false,
     [](const json& j, const Screen& s) { return age_of(at(j, {"since"}), s); }},
};

const Field kActorFields[] = {
    {{"ACTOR", Align::kLeft, 16},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"name"})); }},
    {{"STATE"}, false, [](const json& a, const Screen&) { return text(at(a, {"state"})); }},
    {{"RESTARTS", Align::kRight, 8},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"restarts"})); }},
    {{"VERSION", Align::kRight, 7},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"policy_version"})); }},
    {{"LOAD", Align::kRight},
     false,
     [](const json& a, const Screen&) { return text(at(a, {"load"})); }},
    {{"NODE"}, true, [](const json& a, const Screen&) { return text(at(a, {"node"})); }},
    {{"PID", Align::kRight},
     true,
     [](const json& a, const Screen&) { return text(at(a, {"pid"})); }},
    {{"GPUS"}, true, [](const json& a, const Screen&) { return indices(at(a, {"gpus"})); }},
    {{"LIFE", Align::kRight},
     true,
     [](const json& a, const Screen&) { return text(at(a, {"incarnation"})); }},
    {{"REASON", Align::kLeft, 8}, false, [](const json& a, const Screen&) { return reason_of(a); }},
    {{"AGE", Align::kRight},
     false,
     [](const json& a, const Screen& s) { return age_of(at(a, {"since"}), s); }},
};

const Field kNodeFields[] = {
    {{"NODE", Align::kLeft, 8},
     false,
     [](const json& n, const Screen&) { return text(at(n, {"name"})); }},
    {{"STATE"}, false, [](const json& n, const Screen&) { return text(at(n, {"state"})); }},
    {{"CPUS", Align::kRight},
     false,
     [](const json& n, const Screen&) {
       return of(at(n, {"leased", "cpus"}), at(n, {"cpus"}));
     }},
    {{"MEMORY", Align::kRight},
     false,
     [](const json& n, const Screen&) { return bytes(at(n, {"memory_bytes"})); }},
    {{"GPUS", Align::kRight}, false, [](const json& n, const Screen&) { return gpus_of(n); }},
    {{"GPU"}, true, [](const json& n, const Screen&) { return gpu_names(n); }},
    {{"REASON", Align::kLeft, 8}, false, [](const json& n, const Screen&) { return reason_of(n); }},
};

const Field kGroupFields[] = {
    {{"GROUP", Align::kRight},
     false,
     [](const json& g, const Screen&) { return text(at(g, {"group"})); }},
    {{"ATTEMPT", Align::kRight, 7},
     false,
     [](const json& g, const Screen&) { return text(at(g, {"attempt"})); }},
    {{"STATE"}, false, [](const json& g, const Screen&) { return text(at(g, {"state"})); }},
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

const Field kEventFields[] = {
    {{"AGE", Align::kRight},
     false,
     [](const json& e, const Screen& s) { return age_of(at(e, {"time"}), s); }},
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

struct KindView {
  std::span<const Field> fields;
  const char* id;  // the member that names an object
};

KindView view_of(Kind kind) {
  switch (kind) {
    case Kind::kJobs:
      return {kJobFields, "id"};
    case Kind::kActors:
      return {kActorFields, "name"};
    case Kind::kNodes:
      return {kNodeFields, "name"};
    case Kind::kGroups:
      return {kGroupFields, "group"};
    case Kind::kEvents:
      return {kEventFields, "seq"};
  }
  CHECK(false);
}

std::string table_of(Kind kind, const json& items, bool wide, const Screen& screen) {
  std::vector<Column> columns;
  std::vector<Row> rows(items.size());
  for (const Field& field : view_of(kind).fields) {
    if (field.wide && !wide) continue;
    columns.push_back(field.column);
    for (std::size_t i = 0; i < items.size(); ++i) rows[i].push_back(field.cell(items[i], screen));
  }
  return render_table(columns, rows, screen.width);
}

std::string yaml_scalar(const json& value) {
  if (!value.is_string()) return dump(value);
  std::string plain = value.get<std::string>();
  std::string quoted = dump(value);
  return quoted.find('\\') == std::string::npos ? print_value(FieldRef(&plain)) : quoted;
}

// Scalars and empty lists and maps stand on the line of their key or dash.
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
      block[indent] = '-';
      out += block;
    }
  } else {
    for (const auto& [name, item] : value.items()) {
      out += pad + yaml_scalar(json(name)) + (is_block(item) ? ":\n" : ": ");
      append_yaml(item, indent + 2, out);
    }
  }
}

std::string escaped_lines(const json& value) {
  std::string line;
  for (const char c : value.is_string() ? value.get<std::string>() : text(value))
    line += c == '\n' ? std::string(kLineBreak) : std::string(1, c);
  return line;
}

std::string sample_block(const json& sample) {
  std::string head =
      "step " + text(at(sample, {"step"})) + "  reward " + fixed(at(sample, {"reward"})) +
      "  advantage " + fixed(at(sample, {"advantage"})) + "  versions " +
      versions_of(at(sample, {"versions"})) + "  " + text(at(sample, {"finish_reason"}));
  if (const json& error = at(sample, {"error"});
      error.is_string() && !error.get<std::string>().empty())
    head += "  error: " + text(error);
  return head + "\n" + text(at(sample, {"prompt"})) + "\n=> " + text(at(sample, {"completion"})) +
         "\n\n";
}

std::string wait_lines(const json& why, const Screen& screen) {
  std::vector<Row> rows;
  for (const json& wait : why) {
    const json& since = at(wait, {"since_s"});
    const json& deadline = at(wait, {"deadline_s"});
    rows.push_back({text(at(wait, {"who"})), text(at(wait, {"waits_for"})),
                    since.is_number() ? age(since.get<double>()) : kNone,
                    deadline.is_number() ? age(deadline.get<double>()) : "none",
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

std::int64_t to_unix_ms(const json& time, std::int64_t otherwise) {
  if (time.is_number()) return time.get<std::int64_t>();
  if (!time.is_string()) return otherwise;
  std::tm parts{};
  double seconds = 0;
  const std::string written = time.get<std::string>();
  if (std::sscanf(written.c_str(), "%d-%d-%dT%d:%d:%lf", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &seconds) != 6)
    return otherwise;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<std::int64_t>(::timegm(&parts)) * 1000 +
         static_cast<std::int64_t>(std::llround(seconds * 1000));
}

std::string to_yaml(const json& value) {
  std::string out;
  append_yaml(value, 0, out);
  return out;
}

std::string render_items(Kind kind, const json& items, OutputForm form, const Screen& screen) {
  switch (form) {
    case OutputForm::kJson:
      return dump(items, kJsonIndent) + "\n";
    case OutputForm::kYaml:
      return to_yaml(items);
    case OutputForm::kName: {
      std::string names;
      for (const json& item : items)
        names += std::string(spelling(kind)) + "/" + text(at(item, {view_of(kind).id})) + "\n";
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
  if (form == OutputForm::kJson) return dump(item, kJsonIndent) + "\n";
  if (form == OutputForm::kYaml) return to_yaml(item);
  return render_items(kind, json::array({item}), form, screen);
}

std::string render_description(Kind kind, const json& item, const json& events,
                               const Screen& screen) {
  json fields = item;
  if (fields.is_object()) fields.erase("why");
  std::string out = std::string(spelling(kind)) + "/" + text(at(item, {view_of(kind).id})) +
                    "\n\n" + to_yaml(fields);
  if (const json& why = at(item, {"why"}); why.is_array() && !why.empty())
    out += "\nWaits:\n" + wait_lines(why, screen);
  return out + "\nEvents:\n" +
         (events.empty() ? "none\n" : table_of(Kind::kEvents, events, false, screen));
}

std::string render_why(const json& item, const Screen& screen) {
  const std::string name = text(at(item, {at(item, {"id"}).is_null() ? "name" : "id"}));
  std::string out = name + " is " + text(at(item, {"state"}));
  if (const std::string reason = reason_of(item); reason != kNone) out += ": " + reason;
  out = fit(out, screen.width) + "\n";
  const json& why = at(item, {"why"});
  if (!why.is_array() || why.empty()) return out + "it waits for nothing\n";
  return out + wait_lines(why, screen);
}

std::string render_top(const json& jobs, const json& actors, const json& nodes,
                       const Screen& screen) {
  return render_items(Kind::kNodes, nodes, OutputForm::kTable, screen) + "\n" +
         render_items(Kind::kJobs, jobs, OutputForm::kTable, screen) + "\n" +
         render_items(Kind::kActors, actors, OutputForm::kTable, screen);
}

std::string render_samples(const json& samples, OutputForm form, const Screen& screen) {
  if (form == OutputForm::kJson) return dump(samples, kJsonIndent) + "\n";
  if (form == OutputForm::kYaml) return to_yaml(samples);
  if (samples.empty()) return "no samples\n";
  if (form == OutputForm::kWide) {
    std::string blocks;
    for (const json& sample : samples) blocks += sample_block(sample);
    return blocks;
  }
  std::vector<Row> rows;
  for (const json& sample : samples)
    rows.push_back({text(at(sample, {"step"})), fixed(at(sample, {"reward"})),
                    fixed(at(sample, {"advantage"})), versions_of(at(sample, {"versions"})),
                    text(at(sample, {"finish_reason"})), escaped_lines(at(sample, {"prompt"})),
                    escaped_lines(at(sample, {"completion"})), text(at(sample, {"error"}))});
  const bool failures =
      std::ranges::any_of(rows, [](const Row& row) { return row.back() != kNone; });
  std::vector<Column> columns{{"STEP", Align::kRight},         {"REWARD", Align::kRight, 6},
                              {"ADV", Align::kRight, 5},       {"VERSIONS", Align::kLeft, 8},
                              {"FINISH", Align::kLeft, 6},     {"PROMPT", Align::kLeft, 8},
                              {"COMPLETION", Align::kLeft, 10}};
  if (failures) columns.push_back({"ERROR", Align::kLeft, 8});
  return render_table(columns, rows, screen.width);
}

}  // namespace tandem::cli
