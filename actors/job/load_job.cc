// The file is walked by the table of keys: a name in it is a section, a key or an error. The place
// at which each key was given is remembered, so that a rule over several keys, or a missing file,
// can point at its key even after all sources are merged.
//
//   order of events   check the bytes, parse the YAML, read the file, read each --set in turn,
//                     look for missing required keys, settle, check rules, look for the named files
//
// All faults of reading are told together, and so are all missing keys, all broken rules and all
// missing files. A later one of these checks is made only where the earlier ones found nothing: it
// would otherwise judge values that were refused, and tell a mistake a second time.
//
// A job file is input that nobody has checked, from the network too (a submitted job): its length
// and nesting (yaml_document.h) and the number of --set options are bounded.
#include "actors/job/load_job.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <map>

#include "actors/job/data_files.h"
#include "actors/job/job_faults.h"
#include "actors/job/job_files.h"
#include "actors/job/job_rules.h"
#include "actors/job/job_table.h"
#include "actors/job/key_hints.h"
#include "actors/job/yaml_document.h"
#include "actors/job/yaml_merge.h"
#include "actors/job/yaml_value.h"
#include "actors/messages/roles.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::job {
namespace {

namespace fs = std::filesystem;

static_assert(kJobFileBytesMax == kYamlBytesMax);

// Where values come from: the job file, or one --set.
struct Source {
  std::string name;        // "job.yaml" or "--set rollout.n=8"
  std::size_t number = 0;  // 0: the file; N: the Nth --set
  fs::path base;
};

struct LineColumn {
  int line = -1, column = -1;  // from 0; -1: unknown
  LineColumn(int l, int c) : line(l), column(c) {}
  LineColumn(const YAML::Mark& mark) : line(mark.line), column(mark.column) {}
};

SourcePosition position_in(const Source& source, LineColumn at) {
  SourcePosition position{source.number, at.line, at.column, source.name};
  if (source.number == 0 && at.line >= 0)
    position.text += ":" + std::to_string(at.line + 1) + ":" + std::to_string(at.column + 1);
  return position;
}

Error invalid(std::string message, std::string where, std::string help) {
  return {ErrorCode::kInvalid, std::move(message), std::move(where), std::move(help)};
}

Result<void> check_part_name(std::string_view name) {
  constexpr std::size_t kPartNameCharsMax = 63;
  const bool good = !name.empty() && name.size() <= kPartNameCharsMax && name != "pred" &&
                    name != "raw" && std::ranges::all_of(name, [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '_' || c == '-';
                    });
  if (good) return {};
  return invalid("`" + std::string(name) + "` cannot name a part of `reward`", "",
                 "letters, digits, `_` and `-`, at most " + std::to_string(kPartNameCharsMax) +
                     "; `pred` and `raw` have meanings of their own");
}

// Reads the sources one after the other into one JobSpec; a later source replaces values of an
// earlier one, and within one source a key may be given once.
class JobReader {
 public:
  explicit JobReader(const std::string& origin) : origin_{.text = origin} {}

  void read_file(const YAML::Node& root, const Source& source) {
    if (!root.IsDefined() || root.IsNull())
      return faults_.add(origin_, "the job file is empty", "see configs/arithmetic.yaml");
    if (!root.IsMap())
      return faults_.add(position_in(source, root.Mark()),
                         "a job file is a list of `key: value`, found " + describe(root),
                         "see configs/arithmetic.yaml");
    read_members(root, "", source);
  }

  // `number` is from 1. Each --set is a source of its own: the same key in two of them is no error,
  // and the last one wins.
  void read_set(const std::string& text, std::size_t number, const fs::path& base) {
    const Source source{"--set " + text, number, base};
    const SourcePosition whole = position_in(source, YAML::Mark::null_mark());
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return faults_.add(whole, "`" + text + "` is not KEY=VALUE", "as in --set rollout.n=8");
    auto node = parse_yaml(std::string_view(text).substr(equals + 1),
                           {.name = source.name, .has_lines = false});
    if (!node) return faults_.add(whole, node.error().message, node.error().help);
    given_now_.clear();
    read_name(text.substr(0, equals), *node, YAML::Mark::null_mark(), source);
  }

  Result<LoadedJob> finish(const JobText& text) {
    if (faults_.empty()) check_required();
    if (!faults_.empty()) return faults_.error(ErrorCode::kInvalid);
    LoadedJob job{std::move(spec_), {}, {{"", origin_.text}}};
    for (const auto& [key, at] : positions_) job.places.emplace(key, at.text);
    if (trains(job.spec))
      job.warnings = settle(job.spec, [this](std::string_view key) -> std::size_t {
        const auto at = positions_.find(std::string(key));
        return at == positions_.end() ? 0 : at->second.source + 1;
      });
    for (Violation& broken : broken_rules(job.spec))
      faults_.add(position_of(broken.key), std::move(broken.message), std::move(broken.help));
    if (!faults_.empty()) return faults_.error(ErrorCode::kInvalid);
    if (trains(job.spec))
      for (std::string& warning : job_warnings(job.spec))
        job.warnings.push_back(std::move(warning));
    if (text.files == Files::kMustExist) {
      const PositionOf place = [this](std::string_view key) { return position_of(key); };
      if (trains(job.spec)) settle_data_files(job.spec, place, faults_);
      const std::array bases{text.base, text.set_base};
      check_files(job.spec, {text.yaml, bases}, place, faults_);
      if (faults_.empty()) take_system_prompt(job.spec, place, faults_);
    }
    if (text.files == Files::kOfReward && trains(job.spec))
      check_reward_files(
          job.spec, [this](std::string_view key) { return position_of(key); }, faults_);
    if (!faults_.empty()) return faults_.error(ErrorCode::kFailed);
    return job;
  }

 private:
  void read_members(const YAML::Node& map, const std::string& section, const Source& source) {
    if (!map.IsMap()) return;
    const auto members = members_of(map);
    if (const auto* failure = std::get_if<ValueError>(&members))
      return faults_.add(position_in(source, failure->mark), failure->message, failure->help);
    for (const auto& [key, value] : std::get<std::vector<YamlMember>>(members)) {
      if (key.IsScalar())
        read_name((section.empty() ? "" : section + ".") + key.Scalar(), value, key.Mark(), source);
      else
        faults_.add(position_in(source, key.Mark()), "a key must be a name, found " + describe(key),
                    "");
    }
  }

  void read_name(const std::string& path, const YAML::Node& node, const YAML::Mark& mark,
                 const Source& source) {
    const SourcePosition at = position_in(source, mark);
    const TablePath in_table = table_path(path);
    const Key* key = find_key(in_table.path);
    const Section* section = find_section(in_table.path);
    if (!in_table.actor.empty() || path == "actors.")
      if (const auto good = messages::check_role_name(in_table.actor); !good)
        return faults_.add(at, "`actors`: " + good.error().message, good.error().help);
    if (!in_table.part.empty() || path == "reward.parts.") {
      if (const auto good = check_part_name(in_table.part); !good)
        return faults_.add(at, good.error().message, good.error().help);
      // The name that a part has in a list.
      if (in_table.path == "reward.name" && node.IsScalar() && node.Scalar() == in_table.part)
        return;
      if (key && !key->of_part) key = nullptr;
    }
    if (!key && !section) return unknown(path, node, mark, source);
    // An alias and its key are the same key: giving both is giving it twice.
    const std::string canonical = users_path(key ? key->path : section->path, in_table);
    if (const auto [before, first] = given_now_.emplace(canonical, at.text); !first)
      return faults_.add(at, "`" + canonical + "` is given twice",
                         "the first is at " + before->second + "; remove one");
    make_present(section_of(canonical));
    if (section) return read_section(*section, canonical, node, source);
    NamedField field(spec_, in_table);
    if (node.IsNull() && !takes_null(field.field(*key))) return leave_out(*key, canonical, field);
    Key named = *key;
    named.path = canonical;  // for messages
    if (auto failure = assign(named, field.field(*key), node, source.base))
      return faults_.add(failure->mark.is_null() ? at : position_in(source, failure->mark),
                         failure->message, failure->help);
    field.keep();
    positions_[canonical] = at;
  }

  // A null for a key that has no value of that kind: it is as if nothing had given the key.
  void leave_out(const Key& key, const std::string& canonical, NamedField& field) {
    JobSpec defaults = full_default_job();
    copy_field(field.field(key), key.field(defaults));
    field.keep();
    positions_.erase(canonical);
  }

  // `path` is the section's own, or has the user's name in the place of kAnyActor.
  void read_section(const Section& section, const std::string& path, const YAML::Node& node,
                    const Source& source) {
    if (node.IsSequence() && (path == "reward" || path == "reward.parts"))
      return read_parts(node, source);
    if (!node.IsMap() && !node.IsNull())
      return faults_.add(position_in(source, node.Mark()),
                         "`" + path + "` is a section, found " + describe(node),
                         "`tandem explain " + std::string(section.path) + "` lists its keys");
    // `--set warm_start=null` leaves an optional section out, with all that the file gave for it.
    if (const std::string part = table_path(path).part; node.IsNull() && !part.empty()) {
      if (path == "reward.parts." + part) spec_.reward.parts.erase(part);
      return;
    }
    if (node.IsNull() && section.set_present) {
      const std::string actor = table_path(path).actor;
      actor.empty() ? section.set_present(spec_, false) : void(spec_.actors.erase(actor));
      const std::string prefix = path + ".";
      std::erase_if(positions_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
      positions_.erase(path);
      return;
    }
    make_present(path);
    positions_[path] = position_in(source, node.Mark());
    read_members(node, path, source);
  }

  // The parts of a reward as a list, each with its `name`: the same as a map of these names. A part
  // without a name has that of its type. A list of --set is the whole reward, whatever came before.
  void read_parts(const YAML::Node& list, const Source& source) {
    if (list.size() == 0)
      return faults_.add(position_in(source, list.Mark()), "`reward` is an empty list",
                         "as in [{ name: right, type: math }]");
    if (source.number > 0)
      spec_.reward = {.replicas = spec_.reward.replicas, .on_failure = spec_.reward.on_failure};
    positions_["reward.parts"] = position_in(source, list.Mark());
    for (const YAML::Node& entry : list) {
      const SourcePosition at = position_in(source, entry.Mark());
      if (!entry.IsMap())
        return faults_.add(at,
                           "a part of `reward` is a list of `key: value`, found " + describe(entry),
                           "as in { name: right, type: math }");
      const YAML::Node named = entry["name"] ? entry["name"] : entry["type"];
      if (!named || !named.IsScalar())
        return faults_.add(at, "a part of `reward` has no `name`", "as in { name: right, … }");
      if (const auto good = check_part_name(named.Scalar()); !good)
        return faults_.add(at, good.error().message, good.error().help);
      read_name("reward.parts." + named.Scalar(), entry, named.Mark(), source);
    }
  }

  // Makes the section of a key, and the sections around it, present: a key may be given by --set
  // alone.
  void make_present(std::string_view path) {
    if (path.empty()) return;
    make_present(section_of(path));
    const TablePath in_table = table_path(path);
    if (!in_table.actor.empty()) return void(spec_.actors[in_table.actor]);
    if (!in_table.part.empty()) return void(spec_.reward.parts[in_table.part]);
    const Section* section = find_section(path);
    if (section->set_present && !section->present(spec_)) section->set_present(spec_, true);
  }

  // An error about a leaf below an unknown section helps more than one about the section:
  // `actor_rollout_ref.rollout.n` can be translated. At most four levels are looked at.
  void unknown(std::string path, YAML::Node node, const YAML::Mark& mark, const Source& source) {
    std::string shown = path;
    SourcePosition at = position_in(source, mark);
    for (int depth = 0; depth < 4 && node.IsMap() && node.size() > 0; ++depth) {
      const auto member = *node.begin();
      if (!member.first.IsScalar()) break;
      path += "." + member.first.Scalar();
      node.reset(member.second);
      if (is_foreign(path)) {
        shown = path;
        at = position_in(source, member.first.Mark());
        break;
      }
    }
    const TablePath in_table = table_path(shown);
    // The help compares a name with all others, and a file can have a hundred thousand wrong names.
    std::string help = faults_.would_tell(at) ? unknown_key_help(in_table.path) : "";
    if (!in_table.part.empty()) help = "`tandem explain reward` lists the keys";
    if (const std::size_t of_actor = help.find("`actors." + std::string(kAnyActor) + ".");
        of_actor != help.npos && !in_table.actor.empty())
      help.replace(help.find(kAnyActor, of_actor), std::string_view(kAnyActor).size(),
                   in_table.actor);
    faults_.add(at, "unknown key `" + shown + "`", std::move(help));
  }

  // The first key that only a job which trains has; empty: `name` and `actors` alone are given.
  std::string key_of_training() const {
    for (const auto& [path, position] : positions_)
      if (path != "name" && path != "actors" && !path.starts_with("actors.")) return path;
    return "";
  }

  // A required key of an optional section is missing only if that section is present, and the keys
  // of training only if the job trains.
  void check_required() {
    const std::string training = key_of_training();
    const bool actors_alone = !spec_.actors.empty() && training.empty();
    const auto require = [&](const std::string& path, const Key& key) {
      if (positions_.contains(path)) return;
      const bool of_training =
          !spec_.actors.empty() && path != "name" && !path.starts_with("actors.");
      faults_.add(position_of(section_of(path)), "`" + path + "` is missing",
                  of_training
                      ? "a job of actors alone has only `name` and `actors`, and this one also `" +
                            training + "`: remove it, or add what training needs"
                      : std::string(key.description));
    };
    for (const Key& key : job_keys()) {
      const std::string path(key.path);
      if (key.presence != Presence::kRequired) continue;
      if (!table_path(path).actor.empty()) {
        for (const auto& [name, actor] : spec_.actors)
          require(users_path(path, {"", name, ""}), key);
        continue;
      }
      const Section* section = find_section(section_of(path));
      const bool present = !section || !section->present || section->present(spec_);
      const bool used = path == "name" || !actors_alone;
      if (present && used) require(path, key);
    }
  }

  SourcePosition position_of(std::string_view path) const {
    const auto at = positions_.find(std::string(path));
    return at == positions_.end() ? origin_ : at->second;
  }

  const SourcePosition origin_;  // the job file as a whole
  JobSpec spec_;
  JobFaults faults_;
  std::map<std::string, SourcePosition> positions_;  // key or section -> where it was last given
  std::map<std::string, std::string> given_now_;     // the same within the present source
};

}  // namespace

std::string place_of(const LoadedJob& job, std::string_view key) {
  const auto at = job.places.find(key);
  return at == job.places.end() ? job.places.find("")->second : at->second;
}

Result<LoadedJob> parse_job(const JobText& text) {
  if (text.sets.size() > kSetsMax)
    return invalid("more than " + std::to_string(kSetsMax) + " --set options", "", "");
  const Source source{text.origin, 0, text.base};
  auto root = parse_yaml(text.yaml, {.name = text.origin});
  if (!root) return root.error();
  JobReader reader(text.origin);
  reader.read_file(*root, source);
  for (std::size_t i = 0; i < text.sets.size(); ++i)
    reader.read_set(text.sets[i], i + 1, text.set_base);
  return reader.finish(text);
}

Result<LoadedJob> load_job(const fs::path& path, const std::vector<std::string>& sets,
                           Files files) {
  const auto content = read_file_or_pipe(path, kJobFileBytesMax, kJobFileSilenceMax);
  if (!content) {
    Error error = content.error();
    error.message = "cannot read the job file: " + cause_of(error);
    return error;
  }
  std::error_code failure;
  const fs::path here = fs::current_path(failure);
  // The folder of a descriptor, /dev/fd, means nothing to the one who writes the job.
  const fs::path folder = fs::absolute(path, failure).parent_path();
  return parse_job({.yaml = *content,
                    .origin = path.string(),
                    .base = is_descriptor(path) ? here : folder,
                    .set_base = here,
                    .sets = sets,
                    .files = files});
}

Result<JobSpec> parse_job_of_run(const std::string& yaml, const fs::path& run_dir) {
  auto loaded = parse_job({.yaml = yaml,
                           .origin = "job.yaml",
                           .base = run_dir,
                           .set_base = run_dir,
                           .sets = {},
                           .files = Files::kUnchecked});
  if (!loaded) return loaded.error();
  return std::move(loaded->spec);
}

}  // namespace tandem::job
