#include "actors/main/state_folder.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/link/endpoint.h"
#include "runtime/wire/codec.h"

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAddressFile = "controller.json";

// The changes of days would make the file long, and the next start slow.
constexpr std::size_t kRowsMin = 4096;
constexpr std::size_t kRowsPerChange = 8;  // so many times the fewest rows that give the state

runs::StateRow row_of(const controller::DurableEvent& event) {
  return {std::string(kind_of(event)), subject_of(event), wire::encode(event)};
}

std::uint16_t port_of(const std::string& endpoint) {
  const auto at = link::parse_endpoint(endpoint);
  return at && !at->is_local() ? at->port : std::uint16_t{0};
}

}  // namespace

Result<std::unique_ptr<StateFolder>> StateFolder::claim(const fs::path& home) {
  auto lock = FileLock::take(home / "controller.lock", "the state in " + home.string(),
                             "stop it with `tandem down`, or set TANDEM_HOME to another folder");
  if (!lock) return lock.error();
  const Former former = take_former(home);
  auto journal = runs::ClusterJournal::begin(home, unix_ms());
  if (!journal) return journal.error();
  std::unique_ptr<StateFolder> folder(new StateFolder(home, *std::move(lock), *std::move(journal)));
  folder->former_ = former;
  if (auto read = folder->recall(); !read) return read.error();
  return folder;
}

StateFolder::~StateFolder() {
  std::error_code ignored;
  if (announced_) fs::remove(home_ / kAddressFile, ignored);
}

// The file is a dead controller's. Its address must not be taken for this one's, which has not
// written its own yet: the file that replaces it names no process and no address, but what the next
// controller takes over where this one dies before it is up.
StateFolder::Former StateFolder::take_former(const fs::path& home) {
  const auto text = read_file(home / kAddressFile);
  const nlohmann::json file = text ? parse_json(*text) : nlohmann::json();
  const auto text_at = [&file](const char* key, const char* otherwise) -> std::string {
    for (const char* one : {key, otherwise})
      if (const auto it = file.find(one); it != file.end() && it->is_string())
        return it->get<std::string>();
    return "";
  };
  if (!file.is_object()) return {};
  const std::string control = text_at("control", "former_control");
  const std::string http = text_at("http", "former_http");
  const Former former{.control = port_of(control),
                      .http = port_of(http),
                      .control_socket = text_at("control_socket", "former_control_socket"),
                      .nonce = text_at("nonce", "nonce")};
  const nlohmann::json left{{"former_control", control},
                            {"former_http", http},
                            {"former_control_socket", former.control_socket},
                            {"nonce", former.nonce}};
  // Where the disk does not take it the old file stays, whose pid is not that of the lock's owner:
  // readers of the file compare the two.
  (void)write_file_atomic(home / kAddressFile, dump_json(left, 2) + "\n");
  return former;
}

// Reads the rows of all changes, compares their state with each hash among them, and replaces them
// by the fewest rows that give the same state, and its hash.
Result<void> StateFolder::recall() {
  const auto kept = journal_.state(controller::kDurableSchema);
  if (!kept) return kept.error();
  if (kept->other_schema) forgotten_ = "another version of Tandem has remembered some";
  for (const runs::StateRow& row : kept->rows) {
    const auto event = wire::decode<controller::DurableEvent>(row.body);
    if (!event) {
      forgotten_ = "a row of the journal is damaged: " + event.error().message;
      continue;
    }
    remembered_.apply(*event);
    const auto* const hashed = std::get_if<controller::StateHashed>(&*event);
    if (hashed && hashed->hash != remembered_.hash() && forgotten_.empty())
      forgotten_ = "rows of the journal are missing, or others than were written";
  }
  log::info("event=state_recalled rows={} jobs={} actors={} hash={:016x}", kept->rows.size(),
            remembered_.jobs().size(), remembered_.actors().size(), remembered_.hash());
  return write_fewest();
}

Result<void> StateFolder::write_fewest() {
  std::vector<runs::StateRow> rows;
  for (const controller::DurableEvent& event : remembered_.events()) rows.push_back(row_of(event));
  rows.push_back(row_of(controller::StateHashed{remembered_.hash()}));
  const auto written = journal_.replace_state(rows, controller::kDurableSchema, unix_ms());
  const std::size_t more = std::max(kRowsMin, kRowsPerChange * rows.size());
  // After an error all rows are as they were: it is tried again in some time.
  rows_max_ = written ? more : rows_ + more;
  if (written) rows_ = rows.size();
  return written;
}

Result<void> StateFolder::remember(std::span<const controller::DurableEvent> events) {
  std::vector<runs::StateRow> rows;
  for (const controller::DurableEvent& event : events) rows.push_back(row_of(event));
  if (const auto done = journal_.append(rows, controller::kDurableSchema, unix_ms()); !done)
    return done;
  for (const controller::DurableEvent& event : events) remembered_.apply(event);
  rows_ += rows.size();
  // The rows are in the file: one that did not become shorter is no loss.
  if (rows_ > rows_max_)
    if (const auto done = write_fewest(); !done)
      log::warn("event=journal_not_shortened message=\"{}\"", done.error().message);
  return {};
}

Result<void> StateFolder::announce(const nlohmann::json& content) {
  auto written = write_file_atomic(home_ / kAddressFile, dump_json(content, 2) + "\n");
  announced_ = written.has_value();
  return written;
}

}  // namespace tandem::app
