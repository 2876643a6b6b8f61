// The parts of a state folder (TANDEM_HOME) that a cluster of its own holds: the lock, by which one
// controller at a time has them, the journal, and controller.json, by which others find it.
//
// One thread at a time may use it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "actors/controller/durable.h"
#include "actors/runs/cluster_journal.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::app {

class StateFolder {
 public:
  // Takes the lock, begins an epoch, reads what the controller before this one remembered, and
  // takes the address of that one out of controller.json. Errors: another controller holds the
  // lock; the journal cannot be read or written.
  static Result<std::unique_ptr<StateFolder>> claim(const std::filesystem::path& home);
  // Removes controller.json if announce() wrote it.
  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  runs::ClusterJournal& journal() { return journal_; }
  // As of now: what remember() has taken is part of it.
  const controller::DurableState& remembered() const { return remembered_; }
  // Why that is not all that was remembered; empty where it is.
  const std::string& forgotten() const { return forgotten_; }
  // All of these changes are kept, or none.
  Result<void> remember(std::span<const controller::DurableEvent> events);

  // What nodes, clients and pages know of a controller that died, and the next one takes over so
  // that they find it. Ports are 0, and texts are empty, where none died.
  struct Former {
    std::uint16_t control = 0, http = 0;  // taken where any ports would do and these are free
    std::string control_socket;           // the endpoint that processes of this host dial; or empty
    std::string nonce;                    // HttpAuthRules::nonce
  };
  const Former& former() const { return former_; }

  // Writes controller.json.
  Result<void> announce(const nlohmann::json& content);

 private:
  StateFolder(std::filesystem::path home, FileLock lock, runs::ClusterJournal journal)
      : home_(std::move(home)), lock_(std::move(lock)), journal_(std::move(journal)) {}
  static Former take_former(const std::filesystem::path& home);
  Result<void> recall();
  Result<void> compact();

  const std::filesystem::path home_;
  FileLock lock_;
  runs::ClusterJournal journal_;
  controller::DurableState remembered_;
  std::size_t rows_ = 0;        // of remembered_ in the journal
  std::size_t compact_at_ = 0;  // rows, at which they are replaced by fewer
  std::string forgotten_;
  Former former_;
  bool announced_ = false;
};

}  // namespace tandem::app
