// Strict reader for JSON files that scaletrain writes: a repeated key, a fraction for an integer,
// or an unused key is an error.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

namespace scaletrain::format {

// Parses `text`, an object at most 64 levels deep without repeated keys. Throws
// core::CheckpointError naming `place`.
nlohmann::json parse_object(std::string_view text, const std::string& place);

// Returns why `text` is not JSON, for a message: "is not JSON at its byte 7", or NaN or Infinity,
// which Python's json.dumps writes, by name. "" if it is JSON.
std::string json_problem(std::string_view text);

// Reads the members of one object, each once. Throws core::CheckpointError naming place, pointer,
// the value found and the allowed values.
class JsonFields {
 public:
  // `object` must outlive this object; `pointer` is its JSON pointer in the file, "" for the top.
  JsonFields(const nlohmann::json& object, std::string place, std::string pointer = "");

  std::int64_t integer(const std::string& key,
                       std::int64_t lowest = std::numeric_limits<std::int64_t>::min());
  // True if the key exists; for keys that older versions did not write.
  bool has(const std::string& key) const { return object_.contains(key); }

  double number(const std::string& key);
  const std::string& text(const std::string& key);
  const nlohmann::json& value(const std::string& key);

  // Call after reading every key: any other key is an error.
  void done() const;

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& allowed) const;

  const nlohmann::json& object_;
  std::string place_, pointer_;
  std::set<std::string> asked_;
};

}  // namespace scaletrain::format
