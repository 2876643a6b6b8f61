// How durable a record is to be. A header of its own, so that an interface can ask for it without
// knowing SQLite.
#pragma once

namespace tandem::sqlite {

enum class Durability { kKill, kPowerCut };  // the worst event that a record survives

}  // namespace tandem::sqlite
