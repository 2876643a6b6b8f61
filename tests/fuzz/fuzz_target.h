// The targets of the fuzzer: functions that give bytes of any content to one place where bytes from
// outside enter, and CHECK what must hold there. A target returns for every input; whatever ends
// the process is a finding. One program has them all (docs/reliability.md says why).
//
// A target keeps nothing from one input to the next but what is expensive to make, such as a
// server: an input that is found must be found again alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tandem::fuzz {

struct Target {
  std::string_view name;  // of the folder in tests/fuzz/corpus
  void (*run)(std::string_view input);
};

std::span<const Target> targets();
const Target* find_target(std::string_view name);  // null: there is none

// One for each source `NAME_fuzz.cc`, which says what comes from outside and what is checked.
void batch_log(std::string_view input);
void bulk(std::string_view input);
void chat_template(std::string_view input);
void checkpoint(std::string_view input);
void controller_journal(std::string_view input);
void datasets(std::string_view input);
void engine_answer(std::string_view input);
void foreign_config(std::string_view input);
void http(std::string_view input);
void job_file(std::string_view input);
void journal(std::string_view input);
void link(std::string_view input);
void model_config(std::string_view input);
void payload(std::string_view input);
void reward_line(std::string_view input);
void safetensors(std::string_view input);
void tokenizer(std::string_view input);
void weights(std::string_view input);
void wire(std::string_view input);

// Takes an input apart, from its front. What is asked for beyond its end is zero or empty.
class Pieces {
 public:
  explicit Pieces(std::string_view input) : rest_(input) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte();
  std::uint64_t number();  // eight bytes, little endian
  // Up to the next "\n--\n", which is left out, or to the end: inputs of text stay readable.
  std::string_view text();
  // As many bytes as the next two say, little endian.
  std::string_view bytes();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// A folder of this process, made at the first call and removed at its end.
const std::filesystem::path& scratch_folder();

}  // namespace tandem::fuzz
