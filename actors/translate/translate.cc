// The steps: the framework's defaults are added to what is given, references are resolved, each key
// goes through its rule, the dialect computes what takes several keys, and a job is made that
// loads.
//
// A job that does not load is mended by leaving out the keys that its errors name, until it does.
// So whatever a file holds, and however the rules of the job change, IM-1 is kept, and what was
// left out is told with the reason that the job's own rule gives.
#include "actors/translate/translate.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "actors/job/load_job.h"
#include "actors/job/print_job.h"
#include "actors/translate/interpolation.h"
#include "actors/translate/job_text.h"
#include "actors/translate/shared_keys.h"
#include "actors/translate/shared_rules.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace tandem::translate {
namespace {

using nlohmann::json;

// A key whose value could not be read has no default: it was given.
ForeignConfig with_defaults(ForeignConfig config, const Dialect& dialect) {
  const auto noted = [&config](std::string_view key) {
    return std::ranges::find(config.notes(), key, &Note::key) != config.notes().end();
  };
  for (const ForeignDefault& one : dialect.defaults)
    if (!config.find(one.key) && !noted(one.key))
      config.set({std::string(one.key), parse_json(one.value), ""});
  return config;
}

// Whether nothing is lost by leaving the value out.
bool is_off(const json& value, std::string_view unless) {
  if (value.is_null() || (value.is_structured() && value.empty())) return true;
  std::string text = text_of(value);
  if (const auto truth = truth_of(value); truth && !value.is_number())
    text = *truth ? "true" : "false";
  for (std::size_t at = 0; !unless.empty() && at <= unless.size();) {
    const std::size_t end = std::min(unless.find('|', at), unless.size());
    const std::string_view word = unless.substr(at, end - at);
    const auto number = number_of(value), at_number = number_of(json(std::string(word)));
    if (word == text || (number && at_number && *number == *at_number)) return true;
    at = end + 1;
  }
  return false;
}

void tell_unknown(Draft& draft, const std::string& key) {
  draft.tell(Severity::kUnknown, std::vector{key}, kNotKnown);
}

// The keys of the framework that are given, each by its rule. Derived rules wait for the dialect.
void apply_rules(Draft& draft) {
  for (const ForeignValue& given : draft.config().values()) {
    const json* const value = draft.value(given.key);
    if (!value) continue;
    const bool by_default = given.where.empty();
    const Rule* const rule = find_rule(draft.dialect(), given.key);
    if (!rule) {
      if (!by_default && !(value->is_structured() && value->empty()))
        tell_unknown(draft, given.key);
      continue;
    }
    if (rule->derived) continue;
    if (rule->ours.empty()) {
      if (!by_default && !is_off(*value, rule->unless))
        draft.tell(rule->severity, std::vector{given.key}, rule->text);
      continue;
    }
    // A default gives way to what another name of the same key was given.
    if (by_default && draft.find(rule->ours)) continue;
    Converted converted = rule->convert ? rule->convert(*value) : Converted{*value};
    if (!converted.refused.empty())
      draft.tell(Severity::kDiffers, std::vector{given.key}, converted.refused);
    else if (converted.value)
      draft.set(rule->ours, *std::move(converted.value), {given.key});
  }
}

// What could not be read of the file. An unknown value of a key that changes nothing is none.
void tell_notes(Draft& draft, const std::vector<Note>& notes) {
  for (const Note& note : notes) {
    const std::string place = note.where.substr(note.where.rfind('/') + 1);
    if (note.key.empty()) {
      draft.tell(Severity::kUnknown, std::vector{place}, note.what);
      continue;
    }
    const Rule* const rule = find_rule(draft.dialect(), note.key);
    const bool no_matter = rule && (rule->ours.starts_with("tracking.") || rule->ours == "name" ||
                                    (rule->ours.empty() && rule->severity == Severity::kSame));
    draft.tell(no_matter ? Severity::kSame : Severity::kUnknown,
               std::vector{place.empty() ? note.key : note.key + " (" + place + ")"},
               "the value is not known: " + note.what);
  }
}

job::JobText parsed_text(std::string_view yaml) {
  return {.yaml = yaml,
          .origin = "job",
          .base = "/",
          .set_base = "/",
          .sets = {},
          .files = job::Files::kUnchecked};
}

// The keys of `text`, one for each line; empty for a header.
std::vector<std::string> keys_by_line(const std::vector<JobValue>& job, const std::string& text) {
  std::vector<std::string> keys, open;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    const std::size_t indent = line.find_first_not_of(' ');
    open.resize(indent / 2);
    open.push_back(line.substr(indent, line.find(':') - indent));
    std::string path;
    for (const std::string& part : open) path += (path.empty() ? "" : ".") + part;
    const bool is_key = std::ranges::find(job, path, &JobValue::path) != job.end();
    keys.push_back(is_key ? path : "");
    at = end + 1;
  }
  return keys;
}

// Leaves out the key at which an error points, "job:12:5". False: it points at none.
bool leave_out(Draft& draft, const std::vector<std::string>& keys, const std::string& where,
               const std::string& message) {
  const std::size_t colon = where.find(':');
  std::size_t line = 0;
  if (colon == std::string::npos) return false;
  std::from_chars(where.data() + colon + 1, where.data() + where.size(), line);
  if (line == 0 || line > keys.size() || keys[line - 1].empty()) return false;
  const std::string& key = keys[line - 1];
  if (!draft.find(key)) return false;
  const bool matters = key.starts_with("algorithm.") || key.starts_with("data.") ||
                       key.starts_with("learner.optimizer.") || key.starts_with("reward.") ||
                       key.starts_with("rollout.") || key.starts_with("learner.ppo");
  draft.tell(matters ? Severity::kDiffers : Severity::kSame,
             std::vector{draft.find(key)->comment.empty() ? key : draft.find(key)->comment},
             "`" + key + "` is left out: " + message);
  draft.drop(key);
  return true;
}

// Leaves out the last key that a job can do without, where an error points at none.
void leave_out_last(Draft& draft, const std::string& message) {
  auto& job = draft.job();
  const auto last = std::find_if(job.rbegin(), job.rend(), [](const JobValue& value) {
    return value.path != "name" && value.path != "model.path" && value.path != "data.train_files";
  });
  CHECK(last != job.rend());
  draft.tell(Severity::kDiffers, std::vector{last->comment},
             "`" + last->path + "` is left out: " + message);
  draft.drop(std::string(last->path));
}

// IM-1. Each round leaves out a key at least.
void make_loadable(Draft& draft) {
  for (;;) {
    const std::string text = job_text(draft.job());
    const auto loaded = job::parse_job(parsed_text(text));
    if (loaded) return;
    const std::vector<std::string> keys = keys_by_line(draft.job(), text);
    bool changed = leave_out(draft, keys, loaded.error().where, loaded.error().message);
    for (const FurtherError& error : loaded.error().further)
      changed = leave_out(draft, keys, error.where, error.message) || changed;
    if (!changed) leave_out_last(draft, loaded.error().message);
    require_keys(draft);
  }
}

std::string effective(const std::vector<JobValue>& values) {
  const std::string text = job_text(values);
  const auto loaded = job::parse_job(parsed_text(text));
  CHECK(loaded.has_value());
  return job::print_job(loaded->spec);
}

// IM-3: leaves out each default of the framework without which the job is the same.
void drop_same_defaults(Draft& draft) {
  const std::string whole = effective(draft.job());
  std::vector<JobValue> kept = draft.job();
  for (const JobValue& value : draft.job()) {
    if (!value.by_default) continue;
    std::vector<JobValue> without = kept;
    std::erase_if(without, [&](const JobValue& one) { return one.path == value.path; });
    if (job::parse_job(parsed_text(job_text(without))) && effective(without) == whole)
      kept = std::move(without);
  }
  draft.job() = std::move(kept);
}

}  // namespace

Result<Translation> translate(const ForeignConfig& config, const Dialect& dialect) {
  ForeignConfig all = with_defaults(config, dialect);
  auto resolved = resolve(all);
  if (!resolved) return resolved.error();
  std::vector<Note> notes = config.notes();
  for (const Note& note : resolved->unknown)
    if (!note.where.empty()) notes.push_back(note);
  Draft draft(std::move(all), *std::move(resolved), notes, dialect);
  apply_rules(draft);
  dialect.derive(draft);
  tell_notes(draft, notes);
  const std::string origin = std::filesystem::path(config.origin()).filename();
  set_name(draft, origin);
  make_room(draft);
  require_keys(draft);
  make_loadable(draft);
  drop_same_defaults(draft);
  Translation translation{origin, std::string(dialect.title), std::move(draft.job()),
                          std::move(draft.findings())};
  std::ranges::stable_sort(translation.findings, {}, &Finding::severity);
  return translation;
}

}  // namespace tandem::translate
