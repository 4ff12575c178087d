// Reads the config.json of another program's model. Keys that are read must be valid; other keys
// are ignored.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

namespace scaletrain::exchange {

class ForeignConfig {
 public:
  // `object` must outlive this object; `place` is its file and `pointer` its JSON pointer in it.
  ForeignConfig(const nlohmann::json& object, std::string place, std::string pointer = "");

  const std::string& place() const { return place_; }
  const nlohmann::json& object() const { return object_; }

  // True if the key is present; null counts as absent.
  bool has(const std::string& key) const;

  // Return the value of a key, or `standard` if it is absent. Throw core::CheckpointError naming
  // place and key for another type.
  std::int64_t integer(const std::string& key, std::int64_t standard) const;
  double number(const std::string& key, double standard) const;
  bool flag(const std::string& key, bool standard) const;
  std::string text(const std::string& key, const std::string& standard) const;
  ForeignConfig inner(const std::string& key) const;  // nested object; empty if absent

  // Returns the value of a key that must be present.
  std::int64_t integer(const std::string& key) const;
  std::string text(const std::string& key) const;

  // Throws core::CheckpointError if the key is present with another value than these.
  void allow(const std::string& key, std::initializer_list<nlohmann::json> values) const;

  // Throws core::CheckpointError: scaletrain's models do not support the value of `key`.
  [[noreturn]] void refuse(const std::string& key, const std::string& allowed) const;

 private:
  const nlohmann::json& value(const std::string& key) const;
  const nlohmann::json& needed(const std::string& key) const;

  const nlohmann::json& object_;
  std::string place_, pointer_;
};

}  // namespace scaletrain::exchange
