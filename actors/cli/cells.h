// Members of the API's JSON as the text of a table's cell: "-" where a value is missing or of
// another type, short forms of numbers, sizes and times. No value is an error. Pure, except for the
// time zone.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli::cells {

inline constexpr const char* kNone = "-";

// The member at a path of names, or null. Borrows `item`.
const nlohmann::json& at(const nlohmann::json& item, std::initializer_list<const char*> path);

// The GPUs of a node that its agent finds: an array.
nlohmann::json gpus_found(const nlohmann::json& node);
// Those that its agent does not find any more, and which ranks still hold: an array.
nlohmann::json gpus_gone(const nlohmann::json& node);
// What ranks hold of the GPUs that are found: a number, or null where the node does not say it.
nlohmann::json gpus_leased(const nlohmann::json& node);

std::string text(const nlohmann::json& value);
std::string count(const nlohmann::json& value);                           // "12.3k"
std::string bytes(const nlohmann::json& value);                           // "1.5 GiB"
std::string percent(const nlohmann::json& value);                         // "12%" of 0.12
std::string fixed(const nlohmann::json& value);                           // "0.120"
std::string cpu_of(const nlohmann::json& actor);                          // "150%" of one core
std::string of(const nlohmann::json& part, const nlohmann::json& whole);  // "3/20"
// How far a job is, "3/20"; in the warm start "warm 120/500".
std::string steps_of(const nlohmann::json& job);
// The time left of the job, or of its warm start.
std::string eta_of(const nlohmann::json& job);

// "WaitingForCapacity: needs 2 CPUs, 1 is free": the reason and what it says.
std::string reason_of(const nlohmann::json& item);

// A time of the API in milliseconds since 1970: from a number, which is that already, or from RFC
// 3339 text in UTC; anything else gives `otherwise`.
std::int64_t to_unix_ms(const nlohmann::json& time, std::int64_t otherwise);

// The time since `time`, as short as kubectl's: "3m20s".
std::string age_of(const nlohmann::json& time, std::int64_t now_ms);
// The AGE of a job, a run or an actor: the time since it was created, or since its state began.
std::string age_of_object(const nlohmann::json& item, std::int64_t now_ms);

// Local time: "17:46:47", with the date before it unless it is today's.
std::string clock_time(const nlohmann::json& time, std::int64_t now_ms);
// Local time with its date: "2026-11-22 17:46:47".
std::string date_time(const nlohmann::json& time);
// Local time as RFC 3339: "2026-11-22T17:46:47.123+01:00".
std::string full_time(const nlohmann::json& time);

}  // namespace tandem::cli::cells
