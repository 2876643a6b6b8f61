#include "actors/translate/shared_keys.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <span>

#include "actors/job/job_spec.h"
#include "actors/job/job_table.h"
#include "actors/model/model_directory.h"

namespace tandem::translate {
namespace {

using nlohmann::json;
using enum Severity;

constexpr std::size_t kNameCharsMax = 63;
constexpr double kRejectionUpper = 2;  // of `algorithm.rollout_rs_threshold` where none is given
constexpr std::int64_t kSequencesDefault = 256, kTokensDefault = 8192;  // rollout, learner

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool has_data_ending(const std::string& name) {
  const auto endings = {".parquet", ".json", ".jsonl", ".csv", ".tsv", ".gz", ".zst", ".arrow"};
  return std::ranges::any_of(endings, [&](const char* ending) { return name.ends_with(ending); });
}

// A data set on the Hub: "open-r1/OpenR1-Math-220k", or one word as in "gsm8k".
bool is_hub_data(const std::string& name) {
  if (name.empty() || has_data_ending(name)) return false;
  if (name.find('/') == name.npos) return name[0] != '.' && name[0] != '~' && name[0] != '$';
  return model::is_hub_id(name);
}

std::string last_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string plain_name(std::string_view text) {
  std::string name;
  for (const unsigned char c : text) {
    const bool word = c < 128 && std::isalnum(c);
    if (name.empty() && !word) continue;
    name += word || c == '.' || c == '_' || c == '-' ? static_cast<char>(c) : '-';
  }
  name = name.substr(0, kNameCharsMax);
  return name.empty() ? "imported" : name;
}

std::int64_t whole(const Draft& draft, std::string_view ours, std::int64_t fallback) {
  const JobValue* const found = draft.find(ours);
  return found ? whole_of(found->value).value_or(fallback) : fallback;
}

}  // namespace

void set_model(Draft& draft, std::string_view key) {
  const std::string path = draft.text(key);
  if (path.empty()) return;
  if (!model::is_hub_id(path)) return draft.set("model.path", path, {key});
  const std::string folder = "models/" + last_of(path);
  draft.set("model.path", folder, {key}, path);
  draft.tell(Severity::kToDo, {key},
             "`" + path +
                 "` is a name on the Hugging Face Hub, and Tandem downloads nothing: `hf "
                 "download " +
                 path + " --local-dir " + folder + "`, in the job file's folder");
}

void set_data_files(Draft& draft, std::string_view ours, const std::vector<std::string>& files,
                    Draft::Keys keys) {
  json list = json::array();
  for (const std::string& file : files) {
    if (file.empty()) continue;
    if (!is_hub_data(file)) {
      list.push_back(file);
      continue;
    }
    const std::string folder = "data/" + last_of(file);
    // GSM8K has two configurations, of which the frameworks load `main`.
    list.push_back(last_of(file) == "gsm8k" ? folder + "/main" : folder);
    draft.tell(Severity::kToDo, keys,
               "`" + file +
                   "` is a data set on the Hugging Face Hub, and Tandem downloads nothing: "
                   "put its parquet or JSON files into `" +
                   folder +
                   "`, as `hf download --repo-type "
                   "dataset " +
                   file + " --local-dir " + folder + "` does, in the job file's folder");
  }
  if (!list.empty()) draft.set(ours, list, keys);
}

void set_data_files(Draft& draft, std::string_view ours, std::string_view key) {
  set_data_files(draft, ours, draft.texts(key), {key});
}

bool is_math_data(std::string_view name) {
  const auto words = {"gsm8k",      "math",   "aime", "amc",  "olympiad", "minerva",
                      "deepscaler", "numina", "gsm-", "gsm_", "dapo"};
  const std::string text = lower(name);
  return std::ranges::any_of(
      words, [&](const char* word) { return text.find(word) != std::string::npos; });
}

void set_trackers(Draft& draft, std::string_view key) {
  if (!draft.given(key)) return;
  json trackers = json::array();
  for (const std::string& name : draft.texts(key)) {
    const std::string tracker = lower(name);
    if (tracker == "wandb" || tracker == "tensorboard")
      trackers.push_back(tracker);
    else if (tracker == "all")
      trackers = {"tensorboard", "wandb"};
    else if (tracker != "console" && tracker != "none" && tracker != "file")
      draft.tell(Severity::kSame, {key},
                 "the tracker `" + name +
                     "` is not in this version; metrics.jsonl and `tandem "
                     "metrics` have the figures");
  }
  draft.set("trackers", trackers, {key});
}

void set_synchronous(Draft& draft) {
  draft.set("async.max_staleness", 0, {},
            std::string(draft.dialect().title) + " generates and trains in turn");
}

void set_batch(Draft& draft, std::int64_t prompts, std::int64_t mini, Draft::Keys batch_keys,
               Draft::Keys mini_keys) {
  draft.set("data.train_batch_size", prompts, batch_keys);
  if (mini <= 0 || mini >= prompts) return;
  if (prompts % mini == 0) return draft.set("learner.ppo_mini_batch_size", mini, mini_keys);
  draft.tell(Severity::kDiffers, mini_keys,
             "mini-batches of " + std::to_string(mini) + " prompts do not divide a batch of " +
                 std::to_string(prompts) +
                 ": the imported job makes one update with the whole batch");
}

void set_clip(Draft& draft, const Clip& clip, Draft::Keys low_keys, Draft::Keys high_keys,
              Draft::Keys dual_keys) {
  draft.set("algorithm.clip_ratio_low", clip.low, low_keys);
  draft.set("algorithm.clip_ratio_high", clip.high, high_keys);
  const JobValue* const mode = draft.find("algorithm.loss_mode");
  // The other losses have no dual clip.
  if (mode && mode->value != "vanilla") return;
  draft.set("algorithm.clip_ratio_c", clip.dual ? json(*clip.dual) : json(), dual_keys,
            clip.dual ? "" : "without a dual clip");
}

namespace {

// Whether its lower bound is another than 1 / the upper one.
bool has_own_lower(const Criterion& one) {
  constexpr double kRounding = 1e-6;
  return one.lower && one.upper && std::abs(*one.lower * *one.upper - 1) > kRounding;
}

// verl's first names of its forms with k1 stay names of the job.
std::string_view older_name(std::string_view form) {
  for (const auto& [newer, older] :
       {std::pair("token_k1", "token"), {"seq_sum_k1", "sequence"}, {"seq_mean_k1", "geometric"}})
    if (form == newer) return older;
  return form;
}

// The ratios, or divergences, that both take.
void narrow(Criterion& one, const Criterion& other) {
  if (!one.upper || !other.upper) return;
  const double lower =
      std::max(one.lower.value_or(1 / *one.upper), other.lower.value_or(1 / *other.upper));
  one.upper = std::min(*one.upper, *other.upper);
  if (bounds_ratio(one.form)) one.lower = lower;
}

}  // namespace

bool is_criterion(const std::string& form) {
  job::JobSpec spec;
  const job::FieldRef field = job::find_key("algorithm.rollout_rs")->field(spec);
  const job::Names names = std::get<job::EnumField>(field).names;
  return std::ranges::find(names, form) != names.end();
}

bool bounds_ratio(std::string_view form) {
  return !form.ends_with("_k2") && !form.ends_with("_k3");
}

void set_rejection(Draft& draft, std::vector<Criterion> all, std::string_view remark) {
  if (all.empty()) return;
  std::vector<Criterion> merged;
  for (const Criterion& one : all) {
    const auto same = std::ranges::find_if(
        merged, [&](auto& m) { return older_name(m.form) == older_name(one.form); });
    if (same == merged.end())
      merged.push_back(one);
    else
      narrow(*same, one);
  }
  const auto own = std::ranges::find_if(merged, has_own_lower);
  if (own != merged.end()) std::rotate(merged.begin(), own, own + 1);
  const Criterion& first = merged.front();
  draft.set("algorithm.rollout_rs", first.form, {first.form_key}, remark);
  if (first.upper) draft.set("algorithm.rollout_rs_threshold", *first.upper, {first.upper_key});
  if (first.lower && has_own_lower(first))
    draft.set("algorithm.rollout_rs_threshold_lower", *first.lower, {first.lower_key});
  json also = json::object();
  for (const Criterion& one : std::span(merged).subspan(1)) {
    if (has_own_lower(one) || !one.upper)
      draft.tell(kDiffers, {one.lower_key},
                 "of several criteria one alone has a lower bound of its own: that of `" +
                     one.form + "` becomes 1 / its upper one");
    also[one.form] = one.upper.value_or(kRejectionUpper);
  }
  if (!also.empty())
    draft.set("algorithm.rollout_rs_also", also, {merged[1].form_key, merged[1].upper_key});
}

void set_kl_loss(Draft& draft, double coefficient, std::string_view type, Draft::Keys keys,
                 Draft::Keys type_keys) {
  if (coefficient == 0) return;
  draft.set("algorithm.use_kl_loss", true, keys);
  draft.set("algorithm.kl_loss_coef", coefficient, keys);
  draft.set("algorithm.kl_loss_type", std::string(type), type_keys);
}

void set_open_prompt_limit(Draft& draft, std::int64_t tokens) {
  const std::string title(draft.dialect().title);
  draft.set("data.max_prompt_length", tokens, {}, title + " has no limit; raise it if need be");
  draft.set("data.truncation", "error", {}, "a longer prompt is told before the start");
}

void set_name(Draft& draft, const std::string& origin) {
  const JobValue* const given = draft.find("name");
  const std::string wanted =
      given ? text_of(given->value) : std::filesystem::path(origin).stem().string();
  const std::string comment = given ? given->comment : "the file's name";
  const std::string name = plain_name(wanted);
  draft.set("name", name, {}, comment);
  if (given && name != wanted && !draft.find("tracking.run_name") && wanted.size() <= 128 &&
      wanted.find(',') == wanted.npos)
    draft.set("tracking.run_name", wanted, {}, comment);
}

void make_room(Draft& draft) {
  const std::int64_t prompt = whole(draft, "data.max_prompt_length", 64);
  const std::int64_t response = whole(draft, "data.max_response_length", 64);
  if (whole(draft, "learner.max_token_len", kTokensDefault) < prompt + response)
    draft.set("learner.max_token_len", prompt + response, {}, "the longest sequence must fit");
  const std::int64_t group = std::max(whole(draft, "rollout.n", 8), whole(draft, "eval.n", 1));
  if (whole(draft, "rollout.max_num_seqs", kSequencesDefault) < group)
    draft.set("rollout.max_num_seqs", group, {}, "a group must fit");
  const std::int64_t sequences = whole(draft, "rollout.max_num_seqs", kSequencesDefault);
  if (whole(draft, "rollout.max_num_batched_tokens", kTokensDefault) < sequences)
    draft.set("rollout.max_num_batched_tokens", sequences, {}, "each sequence decodes a token");
  const std::int64_t ahead = whole(draft, "async.trigger_parameter_sync_step", 1) - 1;
  const std::int64_t stale = whole(draft, "async.max_staleness", 2);
  if (ahead > job::lookahead({.max_staleness = stale}) && !draft.find("async.lookahead"))
    draft.set("async.lookahead", std::min(ahead, stale), {},
              "the learner publishes each few steps");
}

void require_keys(Draft& draft) {
  if (!draft.find("name")) draft.set("name", "imported", {});
  if (!draft.find("model.path")) {
    draft.set("model.path", "model", {}, "a placeholder");
    draft.tell(Severity::kToDo, {"model.path"},
               "the configuration names no model: set it to a Hugging Face model directory");
  }
  if (!draft.find("data.train_files")) {
    draft.set("data.train_files", json::array({"data/train.jsonl"}), {}, "a placeholder");
    draft.tell(Severity::kToDo, {"data.train_files"},
               "the configuration names no data files: set it to files of prompts");
  }
}

}  // namespace tandem::translate
