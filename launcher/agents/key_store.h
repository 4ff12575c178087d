// The key-value store through which the launchers of a job talk: c10d's TCPStore, or a map in
// tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::launcher {

// The store does not answer in time, or the connection is lost: its node has failed, or this node
// is disconnected.
struct StoreLost : core::StoppedError {
  using StoppedError::StoppedError;
};

// Each call returns at once or throws StoreLost; none waits for a key.
class KeyStore {
 public:
  virtual ~KeyStore() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Returns the value of `key`; nullopt if the key does not exist yet.
  virtual std::optional<std::string> get(const std::string& key) = 0;
  // The values of keys that all exist, in one exchange.
  virtual std::vector<std::string> get_all(const std::vector<std::string>& keys) = 0;
  // Adds to a counter, which is 0 if it does not exist, and returns its new value.
  virtual std::int64_t add(const std::string& key, std::int64_t delta) = 0;
};

}  // namespace scaletrain::launcher
