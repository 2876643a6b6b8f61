// The config.json of a model that somebody downloaded. Checked: an error names the file; a model
// that is taken has sizes that fit each other, and the layout of its weights can be made, however
// large they are; config_json() writes the same model.
#include "actors/model/model_config.h"
#include "actors/model/parameters.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {

void model_config(std::string_view input) {
  const auto config = model::parse_model_config(input, "config.json");
  if (!config) {
    CHECK(config.error().where.starts_with("config.json"));
    return;
  }
  CHECK(config->vocab_size > 0 && config->hidden_size > 0 && config->layers > 0);
  CHECK(config->kv_heads > 0 && config->heads % config->kv_heads == 0);
  CHECK(config->head_dim > 0 && config->head_dim % 16 == 0);
  CHECK(model::make_manifest(*config).bytes_total > 0);
  const auto again = model::parse_model_config(model::config_json(*config), "config.json");
  CHECK(again.has_value() && *again == *config);
}

}  // namespace tandem::fuzz
