// The records of a data set as an exchange holds them, millions perhaps: their texts lie behind one
// another in large blocks, and a prompt that stands in its line as it is is not stored twice.
//
// Copies share the texts, so that a configuration is copied in no time. add() is for the one who
// fills the records, before the first copy; all else may be called from any thread after that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::exchange {

struct ExchangeRecord {
  std::string prompt, data;  // data: the dataset's line
};

class ExchangeRecords {
 public:
  ExchangeRecords();

  // CHECKs that no copy shares the texts yet.
  void add(std::string_view prompt, std::string_view data);

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  ExchangeRecord operator[](std::size_t index) const;
  // The memory of the texts and of the index that finds them.
  std::size_t memory_bytes() const;

 private:
  struct Texts;
  std::shared_ptr<Texts> texts_;
};

}  // namespace tandem::exchange
