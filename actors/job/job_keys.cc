// The rows of the job table that belong to no role, and the table's sections. The rows of the roles
// of training are in actors/main/roles, those of `actors` in actor_keys.cc.
//
// The order of sections, and within one that of rows, is the order of the printed job and of the
// reference page. A row says everything about a key that is not a rule over several keys: path,
// field, description, range, unit, and values that only later versions take. Descriptions are
// printed to users, and docs/job-file.md is generated from them: they are whole sentences and name
// keys in backquotes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <vector>

#include "actors/job/dataset.h"
#include "actors/job/job_table.h"
#include "actors/job/key_fields.h"

namespace tandem::job {
namespace {

constexpr std::array<std::string_view, 2> kLaterDtypes{"float16", "fp8"};
constexpr std::array<std::string_view, 2> kStalenessAliases{"async.max_head_offpolicyness",
                                                            "async.max_off_policy_steps"};

using J = JobSpec;

// `field` is a captureless lambda over the job, so that a row can be a constant: the table exists
// once, and each job that is parsed or printed lends its own fields.
const Key kKeys[] = {
    {.path = "name",
     .field = [](J& j) { return slot(j.name); },
     .description = "What the job is called; its id is the name and a number. Letters, digits, "
                    "`.`, `_` and `-`, starting with a letter or digit, at most 63.",
     .presence = Presence::kRequired},
    {.path = "seed",
     .field = [](J& j) { return slot(j.seed); },
     .description = "Everything random in the job follows from it: random weights, the order of "
                    "the data, every sampled token.",
     .range = between(0, 0x1p53)},
    {.path = "save_on_cancel",
     .field = [](J& j) { return slot(j.save_on_cancel); },
     .description = "A job that is cancelled while it trains finishes the step under way and saves "
                    "a checkpoint, for at most two minutes, before it stops; false: it stops at "
                    "once, and a resume begins at the checkpoint before."},
    {.path = "tensorboard",
     .field = [](J& j) { return slot(j.tensorboard); },
     .description = "The run directory has a folder `tensorboard` with event files of the scalars "
                    "of metrics.jsonl, for `tensorboard --logdir`; false: none are written, as "
                    "without it in `trackers`."},
    {.path = "trackers",
     .field = [](J& j) { return slot(j.trackers); },
     .description = "Which files the run directory has besides for other programs: `tensorboard`, "
                    "and `wandb`, a folder of that name with an offline run of Weights & Biases, "
                    "for `wandb sync`; []: none. Nothing is sent to anybody."},
    {.path = "record",
     .field = [](J& j) { return slot(j.record); },
     .description =
         "`replay`: the run keeps each batch that it trains in the folder `replay` of its run "
         "directory, so that `tandem replay` can train the same weights again. The oldest batches "
         "go once the folder has more than `retention.replay_bytes`. `recorded_bytes` in "
         "`result.json` is the folder's size. `none`: no batch is kept."},

    // Section `model`.
    {.path = "model.path",
     .field = [](J& j) { return slot(j.model.path); },
     .description = "A Hugging Face model directory.",
     .presence = Presence::kRequired},
    {.path = "model.init",
     .field = [](J& j) { return slot(j.model.init); },
     .description = "`pretrained` reads the safetensors; `random` needs only config.json and "
                    "tokenizer.json and draws the weights from the seed and initializer_range."},
    {.path = "model.dtype",
     .field = [](J& j) { return slot(j.model.dtype); },
     .description =
         "What the model computes in. With `bfloat16`, activations, keys and values, published "
         "versions and the weights that are multiplied with are bf16; sums, logits, gradients, "
         "the weights that AdamW updates and checkpoints are float32 all the same.",
     .later_values = kLaterDtypes},
    {.path = "model.batch_invariant",
     .field = [](J& j) { return slot(j.model.batch_invariant); },
     .description = "On a GPU, a row's numbers do not depend on its batch, so rollout and learner "
                    "agree to the bit and runs repeat; false: products as fast as the library has "
                    "them, and both agree but for roundings."},

    // Section `data`.
    {.path = "data.train_files",
     .field = [](J& j) { return slot(j.data.train_files); },
     .description =
         "Files of prompts: JSON lines, a JSON array, CSV or parquet. An entry may also be a "
         "pattern (`data/*.jsonl`) or a folder, of which the train split is taken.",
     .presence = Presence::kRequired},
    {.path = "data.val_files",
     .field = [](J& j) { return slot(j.data.val_files); },
     .description =
         "Files of held-out prompts for evaluation, as in `data.train_files`; of a folder the "
         "validation or test split is taken. Empty: no evaluation."},
    {.path = "data.prompt_key",
     .field = [](J& j) { return slot(j.data.prompt_key); },
     .description = "The field of a line that holds the prompt: a text, or a list of messages; "
                    "where it is absent `messages` is looked at. In this name and the next four a "
                    "dot leads into an object, unless a field has the dot in its name."},
    {.path = "data.answer_key",
     .field = [](J& j) { return slot(j.data.answer_key); },
     .description = "The field that holds the answer; any JSON, it reaches the reward untouched. "
                    "Of verl's files it is `reward_model.ground_truth`."},
    {.path = "data.completion_key",
     .field = [](J& j) { return slot(j.data.completion_key); },
     .description = "The field of a warm-start line that holds what to say."},
    {.path = "data.data_source_key",
     .field = [](J& j) { return slot(j.data.data_source_key); },
     .description = "The field that holds the name of the data set a line is from, a string: "
                    "evaluations have means for each name too. A line may have none."},
    {.path = "data.extra_keys",
     .field = [](J& j) { return slot(j.data.extra_keys); },
     .description = "The fields of a line that are kept for the reward, in memory too, beside the "
                    "prompt, the answer, the data source and a conversation's `messages`; null: "
                    "all fields."},
    {.path = "data.prompt_is",
     .field = [](J& j) { return slot(j.data.prompt_is); },
     .description = "What a prompt that is a text is: `text`, the prompt itself; `chat`, the "
                    "message of a user, of which the chat template makes the prompt. A list of "
                    "messages is a conversation with both."},
    {.path = "data.system_prompt",
     .field = [](J& j) { return slot(j.data.system_prompt); },
     .description = "The system message of each conversation that has none. A prompt that is a "
                    "text needs `prompt_is: chat`."},
    {.path = "data.system_prompt_file",
     .field = [](J& j) { return slot(j.data.system_prompt_file); },
     .description =
         "A file with the text of `system_prompt`, at most 64 KiB; a new line at its end "
         "does not count. The run's job.yaml has the text in place of the file."},
    {.path = "data.chat_template",
     .field = [](J& j) { return slot(j.data.chat_template); },
     .description =
         "How a line's messages become a prompt. auto: by the model's own template; or "
         "the name of another one of its directory; the path of a .jinja file; or one of "
         "smollm2, qwen2.5, qwen3, qwen3-instruct, llama3, llama3.1."},
    {.path = "data.chat_template_kwargs",
     .field = [](J& j) { return slot(j.data.chat_template_kwargs); },
     .description = "Further variables of a Jinja template, as keyword arguments of transformers' "
                    "`apply_chat_template` are."},
    {.path = "data.enable_thinking",
     .field = [](J& j) { return slot(j.data.enable_thinking); },
     .description = "false: a template that knows `enable_thinking` gets it as false, as Qwen3's, "
                    "whose prompts then end with an empty <think> block."},
    {.path = "data.chat_date",
     .field = [](J& j) { return slot(j.data.chat_date); },
     .description = "The date that a template tells: its `date_string`, and the day of "
                    "`strftime_now`."},
    {.path = "data.max_prompt_length",
     .field = [](J& j) { return slot(j.data.max_prompt_length); },
     .description = "Longer prompts are discarded with the reason `prompt_too_long`, unless "
                    "`truncation` or `filter_overlong_prompts` says otherwise.",
     .range = between(1, kTokensMax),
     .unit = "tokens"},
    {.path = "data.max_response_length",
     .field = [](J& j) { return slot(j.data.max_response_length); },
     .description = "A completion that reaches it ends there, truncated.",
     .range = between(1, kTokensMax),
     .unit = "tokens"},
    {.path = "data.train_batch_size",
     .field = [](J& j) { return slot(j.data.train_batch_size); },
     .description = "Groups per training step. A group is one prompt with its `rollout.n` "
                    "completions.",
     .range = between(1, kBatchMax),
     .unit = "groups"},
    {.path = "data.shuffle",
     .field = [](J& j) { return slot(j.data.shuffle); },
     .description = "Visit the prompts in an order drawn from the seed, anew each epoch; false: in "
                    "file order."},
    {.path = "data.total_epochs",
     .field = [](J& j) { return slot(j.data.total_epochs); },
     .description = "How often training visits each prompt, in place of "
                    "`learner.total_training_steps`, which the size of the data decides then; the "
                    "run's job.yaml has the steps. Where one file has both, the steps count, as "
                    "with verl and TRL; else the one that was given later, by `--set`. A batch "
                    "that is not full is left out. With `mixture` an epoch is as many prompts as "
                    "its data sets have together.",
     .range = between(1, 1e6),
     .unit = "epochs"},
    {.path = "data.filter_overlong_prompts",
     .field = [](J& j) { return slot(j.data.filter_overlong_prompts); },
     .description = "Prompts longer than `max_prompt_length` are counted, told and left out when "
                    "the data are read, also those of evaluations; false: they are discarded in "
                    "each epoch, and fail in each evaluation."},
    {.path = "data.truncation",
     .field = [](J& j) { return slot(j.data.truncation); },
     .description = "What becomes of prompts longer than `max_prompt_length`. `discard`: they are "
                    "not generated; `error`: the job is refused before it starts; `left`, `right` "
                    "and `middle`: the tokens at that side are cut off. The reward gets the whole "
                    "text."},
    {.path = "data.max_samples",
     .field = [](J& j) { return slot(j.data.max_samples); },
     .description = "So many prompts of `train_files` are used, drawn by the seed; with `shuffle: "
                    "false` the first ones. Long prompts are left out afterwards. null: all.",
     .range = between(1, static_cast<double>(kDatasetRecordsMax)),
     .unit = "prompts"},
    {.path = "data.max_val_samples",
     .field = [](J& j) { return slot(j.data.max_val_samples); },
     .description = "The same for `val_files`, which every evaluation then visits in file order.",
     .range = between(1, static_cast<double>(kDatasetRecordsMax)),
     .unit = "prompts"},
    {.path = "data.mixture",
     .field = [](J& j) { return slot(j.data.mixture); },
     .description = "How often each data set comes, as a map of weights by `data_source`, as in "
                    "{gsm8k: 0.7, math: 0.3}: batches have these shares. A line without a data "
                    "source is of the data set that its file's name says, up to the first dot and "
                    "without a shard's number. "
                    "Each data set needs a weight; 0 leaves it out. Empty: no weights.",
     .range = between(0, 1e9)},

    // Section `warm_start`, which may be left out: a field of it is there only while the section
    // is.
    {.path = "warm_start.train_files",
     .field = [](J& j) { return slot(j.warm_start->train_files); },
     .description =
         "Files of prompts with completions, as in `data.train_files`. A tenth is held out for "
         "`until`.",
     .presence = Presence::kRequired},
    {.path = "warm_start.lr",
     .field = [](J& j) { return slot(j.warm_start->lr); },
     .description = "Learning rate of the warm start.",
     .range = as_float(at_least(0))},
    {.path = "warm_start.lr_warmup_steps",
     .field = [](J& j) { return slot(j.warm_start->lr_warmup_steps); },
     .description = "Steps over which the rate rises linearly to `lr`, where it then stays.",
     .range = between(0, kStepsMax),
     .unit = "steps"},
    {.path = "warm_start.betas",
     .field = [](J& j) { return slot(j.warm_start->betas); },
     .description = "AdamW's decay rates of the first and second moment in the warm start.",
     .range = as_float(below(0, 1))},
    {.path = "warm_start.weight_decay",
     .field = [](J& j) { return slot(j.warm_start->weight_decay); },
     .description = "Decoupled weight decay in the warm start.",
     .range = as_float(at_least(0))},
    {.path = "warm_start.grad_clip",
     .field = [](J& j) { return slot(j.warm_start->grad_clip); },
     .description = "The norm to which the warm start clips its gradient; 0: off.",
     .range = at_least(0)},
    {.path = "warm_start.batch_size",
     .field = [](J& j) { return slot(j.warm_start->batch_size); },
     .description = "Completions per warm-start step.",
     .range = between(1, kBatchMax),
     .unit = "completions"},
    {.path = "warm_start.max_steps",
     .field = [](J& j) { return slot(j.warm_start->max_steps); },
     .description = "The warm start ends after so many steps, or earlier by `until`.",
     .range = between(1, kStepsMax),
     .unit = "steps"},
    {.path = "warm_start.eval_freq",
     .field = [](J& j) { return slot(j.warm_start->eval_freq); },
     .description = "How often `until` is measured.",
     .range = between(1, kStepsMax),
     .unit = "steps"},
    {.path = "warm_start.until.metric",
     .field = [](J& j) { return slot(j.warm_start->until->metric); },
     .description =
         "`sample_accuracy`: with which probability sampling at temperature 1 gives a "
         "held-out record's own `completion`, word for word; the mean over the records. It "
         "is computed, not sampled, and no reward takes part."},
    {.path = "warm_start.until.value",
     .field = [](J& j) { return slot(j.warm_start->until->value); },
     .description = "The warm start ends when the metric reaches it.",
     .range = between(0, 1),
     .presence = Presence::kRequired},

    {.path = "samples.per_step",
     .field = [](J& j) { return slot(j.samples.per_step); },
     .description =
         "Completions of each training step that samples.jsonl gets, of the first groups "
         "of its batch; null: those of one group. Failures come besides.",
     .range = between(0, kBatchMax),
     .unit = "completions"},
    {.path = "samples.evaluation",
     .field =
         [](J& j) {
           return FieldRef(WordOrNumber{"all", &j.samples.evaluation});
         },
     .description = "Completions of each evaluation that samples.jsonl gets, those of the first "
                    "prompts; `all`: each of them.",
     .range = between(0, 1e9),
     .unit = "completions"},

    {.path = "retention.samples_bytes",
     .field = [](J& j) { return slot(j.retention.samples_bytes); },
     .description = "The most that samples.jsonl may have. Beyond it the older half of the samples "
                    "goes.",
     .range = between(1 << 16, 1e15),
     .unit = "bytes"},
    {.path = "retention.metrics_bytes",
     .field = [](J& j) { return slot(j.retention.metrics_bytes); },
     .description =
         "The most that metrics.jsonl may have. Beyond it every second line of its older "
         "half goes, so that plots still show the whole run; records of evaluations "
         "stay.",
     .range = between(1 << 16, 1e15),
     .unit = "bytes"},
    {.path = "retention.journal_bytes",
     .field = [](J& j) { return slot(j.retention.journal_bytes); },
     .description = "How much of journal.sqlite may be rows that SQL can ask about. Beyond it the "
                    "oldest are packed into rows of the kind `archived`, a fifth as large, which a "
                    "resume and `tandem replay` still read.",
     .range = between(1 << 16, 1e15),
     .unit = "bytes"},
    {.path = "retention.archive_bytes",
     .field = [](J& j) { return slot(j.retention.archive_bytes); },
     .description =
         "How much of journal.sqlite may be rows of the kind `archived`. Beyond it the "
         "oldest are summed up in a few bytes. A resume still has all that it needs, from "
         "as many of the newest checkpoints as `max_ckpt_to_keep` says, but from two at "
         "least and sixteen at most. `tandem replay` no longer has those steps. Of their "
         "rows about actors, evaluations and checkpoints the newest 100000 stay.",
     .range = between(1 << 16, 1e15),
     .unit = "bytes"},
    {.path = "retention.tracker_bytes",
     .field = [](J& j) { return slot(j.retention.tracker_bytes); },
     .description = "The most that the files of each tracker may have. Beyond it no more of them "
                    "are written, and the run goes on; a resume with a larger limit writes the "
                    "lines of metrics.jsonl that are missing.",
     .range = between(1 << 16, 1e15),
     .unit = "bytes"},
    {.path = "retention.replay_bytes",
     .field = [](J& j) { return slot(j.retention.replay_bytes); },
     .description = "The most that `record: replay` may keep. Beyond it the oldest batches go, and "
                    "`tandem replay` can only begin with a checkpoint that came later. Choose more "
                    "than the batches between two checkpoints have.",
     .range = between(1 << 16, 1e15),
     .unit = "bytes"},

    {.path = "tracking.project",
     .field = [](J& j) { return slot(j.tracking.project); },
     .description = "The project in Weights & Biases; null: the tracker's default."},
    {.path = "tracking.entity",
     .field = [](J& j) { return slot(j.tracking.entity); },
     .description = "The user or team in Weights & Biases; null: the tracker's default."},
    {.path = "tracking.run_name",
     .field = [](J& j) { return slot(j.tracking.run_name); },
     .description = "What the run is called there; null: its id, such as `arithmetic-grpo-1`."},
    {.path = "tracking.group",
     .field = [](J& j) { return slot(j.tracking.group); },
     .description = "Runs of one group belong together, as those of one sweep: `tandem get runs "
                    "--group`, and the page draws their mean."},
    {.path = "tracking.tags",
     .field = [](J& j) { return slot(j.tracking.tags); },
     .description = "Words by which runs are found again: `tandem get runs --tag`."},
    {.path = "tracking.notes",
     .field = [](J& j) { return slot(j.tracking.notes); },
     .description = "A text about the run, for people."},

    // Section `async`. The aliases are the names of other systems for the same number.
    {.path = "async.max_staleness",
     .field = [](J& j) { return slot(j.async.max_staleness); },
     .description = "No trajectory trains on tokens, or on KV, older than so many policy versions. "
                    "Hard, and nothing is dropped for age; 0: strictly on-policy.",
     .range = between(0, kStalenessMax),
     .unit = "versions",
     .aliases = kStalenessAliases},
    {.path = "async.lookahead",
     .field = [](J& j) { return slot(j.async.lookahead); },
     .description = "How far ahead generation may run, at most `max_staleness` (K); null: K up to "
                    "2, K-1 up to 4, K-2 above.",
     .range = between(0, kStalenessMax),
     .unit = "versions"},
    {.path = "async.schedule",
     .field = [](J& j) { return slot(j.async.schedule); },
     .description = "`budget`: earliest deadline first. `fixed_lag`: every step's groups by "
                    "one fixed version, so that training repeats to the bit."},
    {.path = "async.partial_rollout",
     .field = [](J& j) { return slot(j.async.partial_rollout); },
     .description = "Sequences continue under new weights; false: an engine installs between "
                    "sequences. Off under `fixed_lag`."},
    {.path = "async.kv_on_update",
     .field = [](J& j) { return slot(j.async.kv_on_update); },
     .description = "What becomes of a running sequence's KV when weights change."},
    {.path = "async.trigger_parameter_sync_step",
     .field = [](J& j) { return slot(j.async.trigger_parameter_sync_step); },
     .description = "Training steps per publication of weights; at most lookahead + 1.",
     .range = between(1, kStalenessMax + 1),
     .unit = "steps"},
    {.path = "async.max_concurrent_rollouts",
     .field = [](J& j) { return slot(j.async.max_concurrent_rollouts); },
     .description = "Trajectories that a rollout actor holds at a time; null: what the engine can "
                    "run.",
     .range = between(1, kBatchMax),
     .unit = "trajectories"},

    // Section `weight_broadcast`.
    {.path = "weight_broadcast.type",
     .field = [](J& j) { return slot(j.weight_broadcast.type); },
     .description =
         "How weights reach the engines: by shared memory, files or TCP. `auto`: by shared memory "
         "on the learner's host, by TCP elsewhere; by files where shared memory is too small. "
         "`cuda_ipc`: from the learner's GPU memory, where it and all rollouts share one GPU. "
         "`nccl`: broadcast from the learner's GPU to all rollouts' at once; a rollout that joins "
         "late or misses a version fetches it as with `auto`."},
    {.path = "weight_broadcast.delta",
     .field = [](J& j) { return slot(j.weight_broadcast.delta); },
     .description = "Whether a rollout that fetches a version over TCP and has an earlier one gets "
                    "what has changed since, exactly. `auto`: where that is less than half of the "
                    "version, as with bf16 and small steps; `always`: whatever its size."},
    {.path = "weight_broadcast.timeout_s",
     .field = [](J& j) { return slot(j.weight_broadcast.timeout_s); },
     .description = "A version of the weights that makes no progress for so long, on its way to a "
                    "rollout or for want of a free place at the learner, has failed; with `nccl` "
                    "also each part of a broadcast.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds"},
    {.path = "weight_broadcast.bucket_megabytes",
     .field = [](J& j) { return slot(j.weight_broadcast.bucket_megabytes); },
     .description = "So much of a version is on its way to a rollout over TCP at a time; with "
                    "`nccl` the size of each of a rank's two staging buffers.",
     .range = between(1, 64),
     .unit = "MiB"},

    // Section `pricing`, which may be left out.
    {.path = "pricing.rollout",
     .field = [](J& j) { return slot(j.pricing->rollout); },
     .description = "The price of a rollout's device for an hour.",
     .range = between(0, scheduler::kPriceMax),
     .unit = "per device and hour",
     .presence = Presence::kRequired},
    {.path = "pricing.learner",
     .field = [](J& j) { return slot(j.pricing->learner); },
     .description = "The price of a learner's device for an hour.",
     .range = between(0, scheduler::kPriceMax),
     .unit = "per device and hour",
     .presence = Presence::kRequired},
    {.path = "pricing.currency",
     .field = [](J& j) { return slot(j.pricing->currency); },
     .description = "The currency of both prices, for people: a word of at most 16 letters."},
};

// The last two functions make an optional section present or absent and say whether it is.
// `warm_start.until` lies in another optional section, so that its function for presence asks for
// both.
const Section kSections[] = {
    {"model", "The policy's weights and tokenizer."},
    {"data", "Prompts, their limits and the batch."},
    {"warm_start", "Supervised steps before RL; leave the section out to start with RL.",
     [](J& j, bool there) { there ? void(j.warm_start.emplace()) : j.warm_start.reset(); },
     [](const J& j) { return j.warm_start.has_value(); }},
    {"warm_start.until", "When the warm start has done enough; left out: after `max_steps`.",
     [](J& j, bool there) {
       there ? void(j.warm_start->until.emplace()) : j.warm_start->until.reset();
     },
     [](const J& j) { return j.warm_start && j.warm_start->until; }},
    {"rollout", "The engines that generate and how they sample."},
    {"rollout.engine_kwargs",
     "Further settings of each kind of server; those of `rollout.name` are used."},
    {"rollout.engine", "The servers of an engine that has its own, as `rollout.name: vllm`."},
    {"eval", "How `data.val_files` are evaluated; `learner.test_freq` says how often."},
    {"reward", "What scores a completion."},
    {"reward.judge", "How the language model of type `judge` is asked, and its words are read."},
    {"reward.limits", "What the program of type `command` or `python` may take; null: no limit."},
    {"reward.parts",
     "Several verifiers, whose sum is the reward: `reward: [{ name: right, type: math, weight: 2 "
     "}, "
     "…]`, or a map by name here. A part has the keys of `reward` but `replicas` and `on_failure`; "
     "those of `reward` itself say how the sum is paid, and no more. Each part is a metric.",
     [](J& j, bool there) { there ? void() : j.reward.parts.clear(); },
     [](const J& j) { return !j.reward.parts.empty(); }},
    {"samples", "How many prompts and completions are kept for people, in samples.jsonl."},
    {"retention",
     "How much of what a run writes stays on the disk; reaching a limit is an event of the run, "
     "or for `journal_bytes` and `archive_bytes` a line of the controller's log. "
     "Logs: `TANDEM_LOG_MAX_BYTES`. Checkpoints: `learner.max_ckpt_to_keep`."},
    {"tracking", "How the run appears in trackers and lists of runs."},
    {"learner", "Training steps, checkpoints and evaluation."},
    {"learner.optimizer", "AdamW and its schedule."},
    {"algorithm", "Advantages and the loss."},
    {"algorithm.kl_ctrl", "How much of the KL divergence `use_kl_in_reward` takes."},
    {"algorithm.filter_groups", "Dynamic sampling."},
    {"algorithm.overlong_buffer", "Soft punishment of very long completions."},
    {"async", "How far generation and training may drift apart."},
    {"weight_broadcast", "How new weights travel."},
    {"pools", "What an actor of each role reserves and uses."},
    {"pools.rollout", "For each rollout actor."},
    {"pools.rollout.autoscale",
     "The job changes the number of its rollouts so that the learner does not wait, within these "
     "limits; it starts with `rollout.replicas`. `tandem scale JOB rollout=N` turns this off while "
     "the job runs, `rollout=auto` on again. Left out: the number stays.",
     [](J& j, bool there) {
       there ? void(j.pools.rollout.autoscale.emplace()) : j.pools.rollout.autoscale.reset();
     },
     [](const J& j) { return j.pools.rollout.autoscale.has_value(); }},
    {"pools.learner", "For each rank of the learner."},
    {"pools.reward", "For each reward actor."},
    {"pricing",
     "What the devices cost, for the figures of cost; leave the section out for those of `tandem "
     "up "
     "--pricing`, or none. A device is a GPU, or an actor without one; each rank of the learner is "
     "an actor.",
     [](J& j, bool there) { there ? void(j.pricing.emplace()) : j.pricing.reset(); },
     [](const J& j) { return j.pricing.has_value(); }},
    {"actors",
     "Programs of your own as actors, beside training or alone: a job of actors alone has `name` "
     "and `actors`, and no other key.",
     [](J& j, bool there) { there ? void() : j.actors.clear(); },
     [](const J& j) { return !j.actors.empty(); }},
    {"actors.NAME",
     "The role NAME: small letters, digits, `_` and `-`, starting with a letter, at most 32, and "
     "no name of a role of Tandem's. Its actors are JOB/NAME/0, JOB/NAME/1 and so on.",
     [](J& j, bool there) { there ? void(j.actors[kAnyActor]) : void(j.actors.erase(kAnyActor)); },
     [](const J& j) { return j.actors.contains(kAnyActor); }},
};

// The place of the key's section among kSections. Keys of no section come first.
std::ptrdiff_t place_of_section(const Key& key) {
  const std::string_view section = section_of(key.path);
  if (section.empty()) return -1;
  return std::ranges::find(kSections, section, &Section::path) - std::begin(kSections);
}

}  // namespace

// The order of kSections makes JT-1 true.
std::span<const Key> job_keys() {
  static const std::vector<Key> kAll = [] {
    std::vector<Key> all(std::begin(kKeys), std::end(kKeys));
    const auto add = [&all](std::span<const Key> rows) {
      all.insert(all.end(), rows.begin(), rows.end());
    };
    for (const RoleKeys& role : role_keys()) {
      add(role.own);
      add(role.pool);
    }
    add(actor_keys());
    std::ranges::stable_sort(all, {}, place_of_section);
    return all;
  }();
  return kAll;
}
std::span<const Section> job_sections() { return kSections; }

}  // namespace tandem::job
