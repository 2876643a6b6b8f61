// Per key of the job file: wrong type, out of range, misspelt, not in this version; from the same
// table that drives the parsing, so a key cannot be forgotten.
#include "actors/job/job_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "actors/job/explain.h"
#include "actors/job/job_rules.h"
#include "actors/job/key_hints.h"
#include "actors/job/print_job.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "scheduler/fleet/placement.h"
#include "tests/actors/job/job_folder.h"
#include "tests/generated_page.h"

namespace tandem::job {
namespace {

struct Line {
  std::size_t number;      // from 1
  std::size_t begin, end;  // bytes of the text, without the line's end
};

// Where each key stands in the text that print_job made: two spaces of indentation per level.
std::map<std::string, Line> key_lines(const std::string& yaml) {
  std::map<std::string, Line> lines;
  std::vector<std::string> stack;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < yaml.size();) {
    const std::size_t end = yaml.find('\n', begin);
    const std::string text = yaml.substr(begin, end - begin);
    ++number;
    const std::size_t indent = text.find_first_not_of(' ');
    stack.resize(indent / 2);
    stack.push_back(text.substr(indent, text.find(':') - indent));
    std::string path;
    for (const std::string& part : stack) path += (path.empty() ? "" : ".") + part;
    lines[path] = {number, begin, end};
    begin = end + 1;
  }
  return lines;
}

// The printed job with `value` for `key`, or with the key under another name.
struct Edited {
  std::string yaml;
  std::string place;  // "job.yaml:LINE:"
};

Edited edit(const std::string& yaml, const std::string& key, const std::string& value,
            const std::string& renamed = "") {
  const Line line = key_lines(yaml).at(key);
  const std::string text = yaml.substr(line.begin, line.end - line.begin);
  const std::size_t indent = text.find_first_not_of(' ');
  const std::string name = renamed.empty() ? text.substr(indent, text.find(':') - indent) : renamed;
  const std::string replaced = std::string(indent, ' ') + name + ": " + value;
  return {yaml.substr(0, line.begin) + replaced + yaml.substr(line.end),
          "job.yaml:" + std::to_string(line.number) + ":"};
}

struct WrongValues {
  using List = std::vector<std::string>;
  List operator()(bool*) const { return {"3", "\"true\"", "yes", "[true]"}; }
  List operator()(std::int64_t*) const { return {"many", "1.5", "\"8\"", "[1]", "true"}; }
  List operator()(double*) const { return {"many", "\"0.5\"", "[0.5]", "true"}; }
  List operator()(std::string*) const { return {"5", "1e-3", "true", "[a]"}; }
  List operator()(std::filesystem::path*) const { return {"5", "[a]", "\"\""}; }
  List operator()(std::optional<std::int64_t>*) const { return {"many", "1.5", "[1]"}; }
  List operator()(std::optional<double>*) const { return {"many", "[1.5]", "true"}; }
  List operator()(std::optional<std::string>*) const { return {"5", "[a]", "false"}; }
  List operator()(std::vector<std::int64_t>*) const { return {"5", "[a]", "[1.5]"}; }
  List operator()(std::vector<std::string>*) const { return {"5", "[5]", "[[a]]", "{ a: b }"}; }
  List operator()(std::vector<std::filesystem::path>*) const { return {"5", "[5]", "\"\""}; }
  List operator()(std::array<double, 2>*) const { return {"0.9", "[0.9]", "[0.9, a]"}; }
  List operator()(std::optional<std::vector<std::string>>*) const { return {"5", "[5]"}; }
  List operator()(std::optional<std::array<double, 2>>*) const {
    return {"0.9", "[0.9]", "[a, 1]"};
  }
  List operator()(PlacedName*) const { return {"5", "[a]", "\"\""}; }
  List operator()(std::optional<PlacedName>*) const { return {"5", "[a]", "\"\""}; }
  List operator()(std::optional<std::filesystem::path>*) const { return {"5", "[a]", "\"\""}; }
  List operator()(std::map<std::string, std::string>*) const { return {"5", "[a]", "{ a: 1 }"}; }
  List operator()(std::map<std::string, double>*) const { return {"5", "[a]", "{ a: b }"}; }
  List operator()(NameOrPath*) const { return {"5", "true", "[a]", "\"\""}; }
  List operator()(JsonObject*) const { return {"5", "a", "[a]"}; }
  List operator()(const WordOrNumber& field) const {
    return {"zzzzzz", "true", "[1]", "\"1\"", std::string(field.word) + "s"};
  }
  List operator()(const EnumField& field) const {
    return {"zzzzzz", "5", "[" + std::string(field.names[0]) + "]"};
  }
};

// The path of a key in the job of JobFolder::full().
const TablePath kCounterPath{"", "counter", ""};
std::string own_path(const Key& key) { return users_path(key.path, kCounterPath); }

// The keys that are tried one by one; each third where a sanitizer makes reading a job slow.
std::vector<Key> tried_keys() {
  std::vector<Key> keys;
  for (std::size_t i = 0; i < job_keys().size(); i += TANDEM_SANITIZED ? 3 : 1)
    keys.push_back(job_keys()[i]);
  return keys;
}

bool is_integer(const FieldRef& field) {
  return std::holds_alternative<std::int64_t*>(field) ||
         std::holds_alternative<std::optional<std::int64_t>*>(field) ||
         (std::holds_alternative<WordOrNumber>(field) &&
          std::get<WordOrNumber>(field).number.index() == 0) ||
         std::holds_alternative<std::vector<std::int64_t>*>(field);
}

// The value as it is written for this key: a list holds the number, a pair holds it twice.
std::string wrap(const FieldRef& field, double value) {
  const std::string number = is_integer(field) ? std::to_string(static_cast<std::int64_t>(value))
                                               : print_value(FieldRef(&value));
  if (std::holds_alternative<std::vector<std::int64_t>*>(field)) return "[" + number + "]";
  if (std::holds_alternative<std::array<double, 2>*>(field) ||
      std::holds_alternative<std::optional<std::array<double, 2>>*>(field))
    return "[0.5, " + number + "]";
  if (std::holds_alternative<std::map<std::string, double>*>(field)) return "{ a: " + number + " }";
  return number;
}

std::vector<std::string> values_outside(const Key& key, const FieldRef& field) {
  std::vector<std::string> values;
  if (std::isfinite(key.range.min))
    values.push_back(wrap(field, key.range.min_open ? key.range.min : key.range.min - 1));
  if (std::isfinite(key.range.max))
    values.push_back(wrap(field, key.range.max_open ? key.range.max : key.range.max + 2));
  return values;
}

void expect_refused(const JobFolder& folder, const std::string& yaml, const Key& key,
                    const std::string& value, const std::string& wanted) {
  const std::string path = own_path(key);
  SCOPED_TRACE(path + ": " + value);
  const Edited edited = edit(yaml, path, value);
  const auto from_file = folder.parse(edited.yaml);
  ASSERT_FALSE(from_file);
  EXPECT_EQ(from_file.error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(from_file.error().where.starts_with(edited.place)) << from_file.error().where;
  EXPECT_NE(from_file.error().message.find(wanted), std::string::npos) << from_file.error().message;
  EXPECT_NE(from_file.error().message.find(path), std::string::npos);

  const std::string set = path + "=" + value;
  const auto from_set =
      folder.parse(folder.minimal(), {set});  // short: parsing YAML takes the time
  ASSERT_FALSE(from_set);
  EXPECT_EQ(from_set.error().message, from_file.error().message);
  EXPECT_EQ(from_set.error().where, "--set " + set);
}

TEST(JobTable, RefusesEveryKeyOfAWrongType) {
  const JobFolder folder;
  const std::string yaml = print_job(folder.full());
  JobSpec job = full_default_job();
  for (const Key& key : tried_keys()) {
    for (const std::string& value : std::visit(WrongValues{}, key.field(job)))
      expect_refused(folder, yaml, key, value, "expects");
    const FieldRef field = key.field(job);
    if (!std::holds_alternative<JsonObject*>(field) &&
        !std::holds_alternative<std::map<std::string, double>*>(field))
      expect_refused(folder, yaml, key, "{ a: 1 }", "expects");
  }
}

// Programs that write job files write null for what they have no value of.
TEST(JobTable, ANullIsAsIfTheKeyWereLeftOut) {
  const JobFolder folder;
  const std::string yaml = print_job(folder.full());
  JobSpec job = full_default_job();
  for (const Key& key : tried_keys()) {
    if (takes_null(key.field(job))) continue;
    const std::string path = own_path(key);
    SCOPED_TRACE(path);
    const Line line = key_lines(yaml).at(path);
    const std::string without = yaml.substr(0, line.begin) + yaml.substr(line.end + 1);
    const auto left_out = folder.parse(without);
    const auto null = folder.parse(edit(yaml, path, "null").yaml);
    const auto set = folder.parse(yaml, {path + "=null"});
    ASSERT_EQ(null.has_value(), left_out.has_value());
    ASSERT_EQ(set.has_value(), left_out.has_value());
    if (left_out) {
      EXPECT_EQ(print_job(null->spec), print_job(left_out->spec));
      EXPECT_EQ(print_job(set->spec), print_job(left_out->spec));
    } else {
      EXPECT_EQ(null.error().message, "`" + path + "` is missing");
      EXPECT_EQ(set.error().message, "`" + path + "` is missing");
    }
  }
}

TEST(JobTable, RefusesEveryKeyOutOfRange) {
  const JobFolder folder;
  const std::string yaml = print_job(folder.full());
  JobSpec job = full_default_job();
  for (const Key& key : tried_keys()) {
    const FieldRef field = key.field(job);
    for (const std::string& value : values_outside(key, field))
      expect_refused(folder, yaml, key, value, "out of range");
    if (std::holds_alternative<double*>(field)) {
      expect_refused(folder, yaml, key, ".nan", "out of range");
      expect_refused(folder, yaml, key, "1e999", "out of range");
    }
  }
}

TEST(JobTable, RefusesByNameWhatIsNotInThisVersion) {
  const JobFolder folder;
  const std::string yaml = print_job(folder.full());
  int refused = 0;
  for (const Key& key : job_keys()) {
    for (const std::string_view value : key.later_values) {
      expect_refused(folder, yaml, key, std::string(value), "not in this version");
      ++refused;
    }
    if (key.later_above) {
      expect_refused(folder, yaml, key, std::to_string(static_cast<int>(*key.later_above) + 1),
                     "not in this version");
      ++refused;
    }
  }
  EXPECT_GE(refused, 5);
}

TEST(JobTable, NamesTheKeyThatWasMisspelt) {
  const JobFolder folder;
  const std::string yaml = print_job(folder.full());
  for (const Key& key : tried_keys()) {
    SCOPED_TRACE(key.path);
    const std::string path = own_path(key);
    const std::string name = path.substr(path.rfind('.') + 1);
    const std::string misspelt = name + name.back();
    const Edited edited = edit(yaml, path, "1", misspelt);
    const auto job = folder.parse(edited.yaml);
    ASSERT_FALSE(job);
    EXPECT_EQ(job.error().code, ErrorCode::kInvalid);
    EXPECT_TRUE(job.error().where.starts_with(edited.place)) << job.error().where;
    EXPECT_NE(job.error().message.find("unknown key"), std::string::npos);
    EXPECT_NE(job.error().help.find("`" + path + "`"), std::string::npos) << job.error().help;
  }
}

TEST(JobTable, NamesTheRequiredKeyThatIsMissing) {
  const JobFolder folder;
  const std::string yaml = print_job(folder.full());
  int required = 0;
  for (const Key& key : job_keys()) {
    if (key.presence != Presence::kRequired) continue;
    ++required;
    const Line line = key_lines(yaml).at(own_path(key));
    const auto job = folder.parse(yaml.substr(0, line.begin) + yaml.substr(line.end + 1));
    ASSERT_FALSE(job) << key.path;
    EXPECT_EQ(job.error().message, "`" + own_path(key) + "` is missing");
    EXPECT_TRUE(job.error().where.starts_with("job.yaml")) << job.error().where;
  }
  EXPECT_EQ(required, 9);
}

// JT-1: print_job and the reference page rely on it.
TEST(JobTable, KeepsTheKeysOfASectionTogetherJT1) {
  std::set<std::string> seen, closed;
  std::string open;
  for (const Key& key : job_keys()) {
    EXPECT_TRUE(seen.insert(std::string(key.path)).second) << key.path;
    const std::string section(section_of(key.path));
    EXPECT_TRUE(section.empty() || find_section(section)) << key.path;
    EXPECT_FALSE(key.description.empty());
    if (section == open) continue;
    EXPECT_TRUE(closed.insert(section).second) << key.path << " reopens its section";
    open = section;
  }
}

TEST(JobTable, ScaleTakesTheSameRangeAsTheKeys) {
  for (const char* path : {"rollout.replicas", "reward.replicas"}) {
    EXPECT_EQ(find_key(path)->range.min, 1) << path;
    EXPECT_EQ(find_key(path)->range.max, scheduler::kReplicasMax) << path;
  }
}

// kernels/ops/sample.h CHECKs these bounds, in a rollout that has long been started.
TEST(JobTable, TheSamplerTakesWhatTheKeysOfSamplingTake) {
  EXPECT_TRUE(find_key("rollout.min_p")->range.contains(0));
  EXPECT_FALSE(find_key("rollout.min_p")->range.contains(1));
  EXPECT_FALSE(find_key("rollout.top_p")->range.contains(0));
  EXPECT_TRUE(find_key("rollout.top_p")->range.contains(1));
  EXPECT_FALSE(find_key("rollout.temperature")->range.contains(0));
  EXPECT_TRUE(find_key("rollout.top_k")->range.contains(0));
}

TEST(JobTable, DefaultsAreInRange) {
  const JobFolder folder;
  const auto job = folder.parse(print_job(folder.full()));
  EXPECT_TRUE(job) << render(job.error());
}

TEST(JobTable, ForeignNamesLeadToKeysOfOurs) {
  EXPECT_GE(foreign_keys().size(), 60u);
  for (const ForeignKey& key : foreign_keys()) {
    EXPECT_TRUE(find_key(key.ours) || key.ours.find(' ') != std::string_view::npos) << key.name;
    EXPECT_FALSE(find_key(key.name)) << key.name << " is ours";
  }
  EXPECT_NE(unknown_key_help("num_generations").find("TRL's `num_generations` is `rollout.n` here"),
            std::string::npos);
  EXPECT_NE(unknown_key_help("trainer.logger").find("`trackers`"), std::string::npos);
  EXPECT_NE(unknown_key_help("report_to").find("`trackers`"), std::string::npos);
  EXPECT_NE(unknown_key_help("wandb.project").find("`tracking.project`"), std::string::npos);
  EXPECT_NE(unknown_key_help("per_device_train_batch_size").find("`data.train_batch_size`"),
            std::string::npos);
  for (const auto& [theirs, ours] :
       {std::pair("warmup_ratio", "learner.optimizer.lr_warmup_steps_ratio"),
        std::pair("trainer.val_before_train", "learner.val_before_train"),
        std::pair("max_steps", "learner.total_training_steps"),
        std::pair("dynamic_filtering_reward_range", "algorithm.filter_groups.lower_bound"),
        std::pair("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "learner.max_token_len"),
        std::pair("grpo.val_at_start", "learner.val_before_train")})
    EXPECT_NE(unknown_key_help(theirs).find("`" + std::string(ours) + "`"), std::string::npos)
        << theirs << ": " << unknown_key_help(theirs);
}

// A name of another system in some section, and a piece of a name of ours, are no typing errors of
// a name nearby.
TEST(JobTable, NamesInOtherSectionsLeadToWhatTheyMean) {
  for (const auto& [tried, ours] :
       {std::pair("trainer.max_steps", "learner.total_training_steps"),
        std::pair("learner.max_steps", "learner.total_training_steps"),
        std::pair("eval_strategy", "learner.test_freq"),
        std::pair("learner.gradient_accumulation_steps", "learner.max_token_len"),
        std::pair("learner.optimizer.warmup_ratio", "learner.optimizer.lr_warmup_steps_ratio"),
        std::pair("tracking.name", "tracking.run_name"),
        std::pair("data.epochs", "data.total_epochs"),
        std::pair("learner.epochs", "data.total_epochs"),
        std::pair("data.filter_overlong", "data.filter_overlong_prompts"),
        std::pair("data.batch_size", "data.train_batch_size"),
        // What these led to before holds still: a slip of one letter, the same name elsewhere.
        std::pair("learner.optimizer.beta", "learner.optimizer.betas"),
        std::pair("warm_start.max_step", "warm_start.max_steps"),
        std::pair("rollout.temprature", "rollout.temperature"),
        std::pair("rollout.lr", "learner.optimizer.lr")})
    EXPECT_NE(unknown_key_help(tried).find("`" + std::string(ours) + "`"), std::string::npos)
        << tried << ": " << unknown_key_help(tried);
  EXPECT_EQ(unknown_key_help("trainer.max_steps"), "did you mean `learner.total_training_steps`?");
}

// Whatever this version lacks is said to be lacking, with what there is, wherever it stands.
TEST(JobTable, WhatIsNotInThisVersionIsSaidSo) {
  for (const AbsentThing& absent : absent_things()) {
    EXPECT_NE(absent.instead.find("in this version"), std::string_view::npos) << absent.name;
    for (const Key& key : job_keys()) EXPECT_FALSE(is_foreign(key.path)) << key.path << " is ours";
  }
  for (const auto& [path, instead] :
       {std::pair("lora", "all parameters are trained"), std::pair("mlflow", "metrics.jsonl"),
        std::pair("use_wandb", "`trackers`"),
        std::pair("actor_rollout_ref.model.lora_rank", "all parameters are trained"),
        std::pair("deepspeed", "learner.ranks"), std::pair("use_vllm", "rollout.name")})
    EXPECT_NE(unknown_key_help(path).find(instead), std::string::npos)
        << path << ": " << unknown_key_help(path);
}

// A random valid value for a field; rules between keys are the caller's concern.
struct Randomise {
  Rng& rng;
  const Key& key;

  double number() const {
    const double low = std::isfinite(key.range.min) ? key.range.min : -1e6;
    const double high = std::isfinite(key.range.max) ? std::min(key.range.max, 1e6) : low + 1e6;
    return low + (high - low) * (0.001 + 0.998 * rng.unit());
  }
  std::string text() const {
    static constexpr std::string_view kPieces[] = {"a",  "7",  " ", "\"",   "\\", "#",
                                                   ": ", "\n", "é", "-",    "[",  "{",
                                                   "'",  "&",  "*", "null", "\t"};
    std::string text;
    for (std::uint64_t i = rng.below(6); i > 0; --i) text += kPieces[rng.below(std::size(kPieces))];
    return text + "x";
  }
  void operator()(bool* v) const { *v = rng.below(2) == 1; }
  void operator()(std::int64_t* v) const { *v = static_cast<std::int64_t>(std::ceil(number())); }
  void operator()(double* v) const { *v = number(); }
  void operator()(std::string* v) const { *v = text(); }
  void operator()(std::filesystem::path* v) const { *v = "/tmp/" + text(); }
  template <class T>
  void operator()(std::optional<T>* v) const {
    v->reset();
    if (rng.below(2)) (*this)(&v->emplace());
  }
  template <class T>
  void operator()(std::vector<T>* v) const {
    v->resize(rng.below(4) + 1);
    for (T& item : *v) (*this)(&item);
  }
  void operator()(std::array<double, 2>* v) const { *v = {number(), number()}; }
  void operator()(PlacedName* v) const { v->text = "/tmp/" + text(); }
  void operator()(std::map<std::string, std::string>* v) const { *v = {{"A_1", text()}}; }
  void operator()(std::map<std::string, double>* v) const { *v = {{text(), 1 + number()}}; }
  void operator()(NameOrPath* v) const { v->text = text(); }
  void operator()(JsonObject* v) const {
    v->text = "{" + dump_json(text()) + ": [1, -2.5, true, null, " + dump_json(text()) + "]}";
  }
  void operator()(const WordOrNumber& field) const { std::visit(*this, field.number); }
  void operator()(const EnumField& field) const {
    field.nullable&& rng.below(2) ? field.set(std::nullopt)
                                  : field.set(field.names[rng.below(field.names.size())]);
  }
};

// Keys that rules tie to others stay as they are; everything else is random.
bool is_tied(const Key& key) {
  static const std::set<std::string_view> kTied{"name",
                                                "rollout.n",
                                                "eval.n",
                                                "eval.greedy",
                                                "learner.keep_best",
                                                "rollout.min_tokens",
                                                "rollout.block_size",
                                                "rollout.max_num_seqs",
                                                "rollout.max_num_batched_tokens",
                                                "reward.type",
                                                "reward.pattern",
                                                "reward.command",
                                                "reward.function",
                                                "reward.percent",
                                                "reward.signature",
                                                "reward.python",
                                                "reward.start_timeout_s",
                                                "reward.url",
                                                "reward.header_env",
                                                "reward.batch_size",
                                                "reward.concurrency",
                                                "reward.judge.model",
                                                "reward.judge.system",
                                                "reward.judge.prompt",
                                                "reward.judge.pattern",
                                                "reward.judge.range",
                                                "reward.judge.max_tokens",
                                                "reward.judge.temperature",
                                                "reward.judge.extra_body",
                                                "reward.language",
                                                "reward.score",
                                                "reward.case_timeout_s",
                                                "reward.cases_max",
                                                "reward.compile_timeout_s",
                                                "reward.code_memory_megabytes",
                                                "reward.sandbox",
                                                "reward.readable",
                                                "reward.timeout_s",
                                                "reward.limits.open_files",
                                                "reward.limits.file_size_megabytes",
                                                "reward.limits.cpu_seconds_per_line",
                                                "reward.limits.memory_megabytes",
                                                "reward.clip",
                                                "learner.max_token_len",
                                                "learner.ranks",
                                                "learner.ppo_mini_batch_size",
                                                "algorithm.rollout_is",
                                                "algorithm.rollout_is_batch_normalize",
                                                "algorithm.rollout_rs",
                                                "algorithm.rollout_rs_also",
                                                "algorithm.scale_rewards",
                                                "algorithm.advantage_batch_normalize",
                                                "algorithm.filter_groups.metric",
                                                "algorithm.filter_groups.lower_bound",
                                                "algorithm.filter_groups.upper_bound",
                                                "algorithm.overlong_buffer.len",
                                                "data.max_prompt_length",
                                                "data.max_response_length",
                                                "reward.env",
                                                "async.max_staleness",
                                                "async.lookahead",
                                                "async.trigger_parameter_sync_step",
                                                "async.schedule",
                                                "async.max_concurrent_rollouts",
                                                "data.train_batch_size",
                                                "data.system_prompt_file",
                                                "weight_broadcast.type",
                                                "trackers",
                                                "tracking.project",
                                                "tracking.entity",
                                                "tracking.run_name",
                                                "tracking.group",
                                                "tracking.tags",
                                                "pricing.currency",
                                                "rollout.replicas",
                                                "rollout.tensor_model_parallel_size",
                                                "rollout.data_parallel_size",
                                                "rollout.dtype",
                                                "rollout.quantization",
                                                "rollout.enforce_eager",
                                                "rollout.load_format",
                                                "pools.rollout.gpus_per_actor",
                                                "pools.rollout.autoscale.min",
                                                "pools.rollout.autoscale.max",
                                                "pools.learner.preemptible",
                                                "actors.NAME.gpus_per_actor",
                                                "actors.NAME.sandbox",
                                                "actors.NAME.readable",
                                                "actors.NAME.command"};
  return kTied.contains(key.path) || key.later_above.has_value();
}

// PJ-1
TEST(JobTable, PrintedJobsReadBackAsTheSameJobPJ1) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const JobFolder folder;
    JobSpec job = folder.full();
    for (const Key& key : job_keys())
      if (!is_tied(key)) {
        NamedField field(job, own_path(key) == key.path ? TablePath{} : kCounterPath);
        std::visit(Randomise{rng, key}, field.field(key));
        field.keep();
      }
    if (rng.below(2) == 0) job.actors["second-one"] = job.actors["counter"];
    if (rng.below(4) == 0) {  // the keys of the single form mean nothing beside parts
      RewardPartSpec part = job.reward;
      job.reward = {.replicas = job.reward.replicas, .on_failure = job.reward.on_failure};
      job.reward.parts = {{"one", part}, {"two-2", {}}};
    }
    if (rng.below(3) == 0) job.warm_start->until.reset();
    if (rng.below(3) == 0) job.warm_start.reset();
    if (rng.below(3) == 0) job.pricing.reset();
    if (job.rollout.name != EngineName::kNative) {  // what a server cannot do is refused
      job.rollout.engine.url.clear();
      job.rollout.engine.weight_transfer = WeightTransfer::kAuto;
      job.async.schedule = Schedule::kBudget;
      job.weight_broadcast.type = BroadcastType::kAuto;
    }
    if (job.rollout.name == EngineName::kTensorrtLlm) {
      job.rollout.engine.command = {"x"};
      job.rollout.sampling = {.stop = job.rollout.sampling.stop};
    }
    settle(job, [](std::string_view) { return true; });
    const std::string printed = print_job(job);
    const auto read = parse_job({.yaml = printed,
                                 .origin = "job.yaml",
                                 .base = "/nowhere",
                                 .set_base = "/nowhere",
                                 .sets = {},
                                 .files = Files::kUnchecked});
    ASSERT_TRUE(read) << render(read.error()) << "\n" << printed;
    EXPECT_EQ(print_job(read->spec), printed);
    EXPECT_EQ(read->spec.algorithm.clip_ratio_high, job.algorithm.clip_ratio_high);
    EXPECT_EQ(read->spec.rollout.sampling.stop, job.rollout.sampling.stop);
    EXPECT_EQ(read->spec.data.train_files, job.data.train_files);
    EXPECT_EQ(read->spec.warm_start.has_value(), job.warm_start.has_value());
    EXPECT_EQ(read->spec.pricing, job.pricing);
    EXPECT_EQ(read->spec.actors.at("counter").args, job.actors.at("counter").args);
    EXPECT_EQ(read->spec.actors.size(), job.actors.size());
    EXPECT_EQ(read->spec.reward.parts.size(), job.reward.parts.size());
  }
}

TEST(JobTable, TheReferencePageIsTheGeneratedOne) {
  expect_page(TANDEM_SOURCE_DIR "/docs/job-file.md", job_file_reference());
}

TEST(JobTable, ExplainsKeysSectionsAndTypingErrors) {
  const auto key = explain("async.max_head_offpolicyness");
  ASSERT_TRUE(key);
  EXPECT_NE(key->find("async.max_staleness: integer"), std::string::npos) << *key;
  EXPECT_NE(key->find("[0, 64] versions"), std::string::npos) << *key;
  EXPECT_NE(explain("algorithm")->find("algorithm.filter_groups.enable"), std::string::npos);
  EXPECT_NE(explain("")->find("weight_broadcast.type"), std::string::npos);
  const auto wrong = explain("async.max_stalenes");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(wrong.error().help, "did you mean `async.max_staleness`?");
}

}  // namespace
}  // namespace tandem::job
