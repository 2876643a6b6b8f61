#include "actors/learner/packing.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tandem::learner {
namespace {

// The rows and items that a prompt and its completions take.
struct Need {
  std::int64_t rows = 0;
  std::int64_t items = 0;
  bool within(std::int64_t limit) const { return rows <= limit && items <= limit; }
};

Need operator+(Need a, Need b) { return {a.rows + b.rows, a.items + b.items}; }

// The need of a completion without the prompt, which is shared.
Need need_of(std::span<const std::int32_t> completion) {
  return {std::ssize(completion) - 1, std::ssize(completion)};
}

Need need_of(const PromptGroup& group) {
  Need need{std::ssize(group.prompt), 0};
  for (const auto& completion : group.completions) need = need + need_of(completion);
  return need;
}

void append_rows(MicroBatch& batch, std::span<const std::int32_t> tokens, std::int32_t prefix_begin,
                 std::int32_t prefix_rows) {
  batch.segments.push_back({prefix_begin, prefix_rows,
                            static_cast<std::int32_t>(batch.tokens.size()),
                            static_cast<std::int32_t>(tokens.size())});
  batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
}

// Adds completions [begin, end) of a group behind one copy of its prompt.
void append(MicroBatch& batch, const PromptGroup& group, std::size_t begin, std::size_t end) {
  const std::int32_t prompt_begin = static_cast<std::int32_t>(batch.tokens.size());
  const std::int32_t prompt_rows = static_cast<std::int32_t>(group.prompt.size());
  append_rows(batch, group.prompt, 0, 0);
  for (std::size_t i = begin; i < end; ++i) {
    const std::span<const std::int32_t> completion = group.completions[i];
    const std::int32_t first_row = static_cast<std::int32_t>(batch.tokens.size());
    // The last token needs no row; a completion of one token has no row at all.
    if (completion.size() > 1)
      append_rows(batch, completion.first(completion.size() - 1), prompt_begin, prompt_rows);
    batch.sequences.push_back(group.indices[i]);
    batch.items.push_back({prompt_begin + prompt_rows - 1, completion[0]});
    for (std::size_t t = 1; t < completion.size(); ++t)
      batch.items.push_back({first_row + static_cast<std::int32_t>(t) - 1, completion[t]});
    batch.sequence_begin.push_back(static_cast<std::int32_t>(batch.items.size()));
  }
}

}  // namespace

Result<std::vector<MicroBatch>> pack(std::span<const PromptGroup> groups, std::int64_t rows_max,
                                     device::DeviceKind device) {
  std::vector<MicroBatch> batches;
  Need used;  // the room that the last micro-batch takes
  const std::int64_t target = rows_target(device, rows_max);
  const auto add = [&](const PromptGroup& group, std::size_t begin, std::size_t end, Need need) {
    if (batches.empty() || !(used + need).within(target)) {
      batches.emplace_back().sequence_begin.push_back(0);
      used = {};
    }
    append(batches.back(), group, begin, end);
    used = used + need;
  };
  for (const PromptGroup& group : groups) {
    if (const Need whole = need_of(group); whole.within(rows_max)) {
      if (!group.completions.empty()) add(group, 0, group.completions.size(), whole);
      continue;
    }
    // The group alone is too large (PK-3): it is cut into runs of completions, each with the
    // prompt.
    for (std::size_t begin = 0; begin < group.completions.size();) {
      Need need = Need{std::ssize(group.prompt), 0} + need_of(group.completions[begin]);
      if (!need.within(rows_max))
        return Error{ErrorCode::kInfeasible,
                     "a sequence of " + std::to_string(need.rows) +
                         " tokens does not fit into one forward of " + std::to_string(rows_max),
                     "learner.max_token_len", "raise learner.max_token_len"};
      std::size_t end = begin + 1;
      while (end < group.completions.size()) {
        const Need more = need + need_of(group.completions[end]);
        if (!more.within(rows_max)) break;
        need = more;
        ++end;
      }
      add(group, begin, end, need);
      begin = end;
    }
  }
  return batches;
}

std::vector<PromptGroup> share_of(const TrainBatch& batch, const std::vector<bool>& chosen,
                                  int rank, int ranks) {
  std::vector<PromptGroup> share;
  int next = 0;
  std::int32_t index = 0;
  for (std::size_t g = 0; g < batch.groups.size(); ++g) {
    const BatchGroup& group = batch.groups[g];
    // Counts chosen groups only, so that ranks get equally many of them.
    const bool mine = chosen[g] && next % ranks == rank;
    next += chosen[g] ? 1 : 0;
    if (mine) share.push_back({group.prompt, {}, {}});
    for (const TrainTrajectory& trajectory : group.trajectories) {
      if (mine) {
        share.back().completions.emplace_back(trajectory.tokens);
        share.back().indices.push_back(index);
      }
      ++index;
    }
  }
  return share;
}

model::TrainLimits pack_limits(const TrainerConfig& config) {
  return {.rows_max = config.rows_max,
          .items_max = config.rows_max,
          .positions_max = config.positions_max,
          .checkpointing = config.enable_gradient_checkpointing,
          .products = config.products};
}

}  // namespace tandem::learner
