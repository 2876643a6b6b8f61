#include "actors/job/foreign_input.h"

#include "actors/model/model_directory.h"

namespace tandem::job {

namespace fs = std::filesystem;

std::optional<Error> hub_id_error(const fs::path& path, const fs::path& base,
                                  const std::string& where) {
  std::error_code ignored;
  const fs::path relative = path.lexically_normal().lexically_relative(base.lexically_normal());
  if (!model::is_hub_id(relative) || fs::exists(path.parent_path(), ignored)) return std::nullopt;
  const std::string id = relative, name = relative.filename();
  return Error{ErrorCode::kFailed,
               "there is no folder " + path.string() + ": `" + id +
                   "` looks like a model's id on the Hugging Face Hub, and `model.path` is a "
                   "directory; Tandem downloads nothing",
               where,
               "get it with `hf download " + id + " --local-dir " + name +
                   "`, then set model.path to that folder"};
}

}  // namespace tandem::job
