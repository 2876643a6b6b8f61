// Keys of the job that several dialects set in one way: the name, the model, the data, trackers,
// how far generation may run ahead, and what a job needs to load. Each function writes into the
// draft, and tells what a person has to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/translate/draft.h"

namespace tandem::translate {

// `model.path` of a directory, or of a name on the Hugging Face Hub, for which it is the folder
// where the model is to be put.
void set_model(Draft& draft, std::string_view key);

// A list of data files. A name on the Hub becomes the folder where its files are to be put.
void set_data_files(Draft& draft, std::string_view ours, std::string_view key);
void set_data_files(Draft& draft, std::string_view ours, const std::vector<std::string>& files,
                    Draft::Keys keys);
// Whether the file's or the data set's name is one of mathematical problems with checkable answers.
bool is_math_data(std::string_view name);

// `trackers` of the names of loggers: those that Tandem has; the others are told.
void set_trackers(Draft& draft, std::string_view key);

// Generation and training take turns: nothing is trained that an older policy generated.
void set_synchronous(Draft& draft);

// The batch in prompts, and the mini-batch in prompts where it is smaller and divides the batch; a
// mini-batch that does not is told.
void set_batch(Draft& draft, std::int64_t prompts, std::int64_t mini, Draft::Keys batch_keys,
               Draft::Keys mini_keys);

// A clip of two sides; `vanilla` has a dual clip too where `dual` is set, else it is off.
struct Clip {
  double low = 0.2, high = 0.2;
  std::optional<double> dual = {};
};
void set_clip(Draft& draft, const Clip& clip, Draft::Keys low_keys, Draft::Keys high_keys,
              Draft::Keys dual_keys);

// One criterion by which tokens are rejected, in the terms of `algorithm.rollout_rs`. Without an
// upper bound the job's own holds; without a lower one it is 1 / the upper one.
struct Criterion {
  std::string form;  // a name that `rollout_rs` takes
  std::optional<double> lower = {}, upper = {};
  // The framework's keys of the form and of its bounds.
  std::string_view form_key = {}, lower_key = {}, upper_key = {};
};
bool is_criterion(const std::string& form);  // the job knows it
bool bounds_ratio(std::string_view form);    // from both sides; else a divergence from above
// `algorithm.rollout_rs` with its thresholds, and `rollout_rs_also`. Two criteria of one form
// become the narrower one. Of several, one alone can have a lower bound of its own: another such
// is told.
void set_rejection(Draft& draft, std::vector<Criterion> all, std::string_view remark = {});

// The divergence from the first policy as a term of the loss. A coefficient of 0 is none.
void set_kl_loss(Draft& draft, double coefficient, std::string_view type, Draft::Keys keys,
                 Draft::Keys type_keys);

// A limit of prompts that the framework does not have: a longer one is an error before the start.
void set_open_prompt_limit(Draft& draft, std::int64_t tokens);

// `name`: what the draft has, else the name of the file, in the letters that a name may have.
void set_name(Draft& draft, const std::string& origin);
// Limits that must be wide enough for one sequence or one group, and change no result.
void make_room(Draft& draft);
// The keys without which no job loads, as placeholders that are told.
void require_keys(Draft& draft);

}  // namespace tandem::translate
