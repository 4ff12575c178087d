// Messages that agents leave in the store for the leader.
#pragma once

#include <cstdint>
#include <vector>

#include "launcher/agents/key_store.h"
#include "launcher/agents/records.h"
#include "lib/core/clock.h"

namespace scaletrain::launcher {

class Inbox {
 public:
  // `store` must outlive this.
  explicit Inbox(KeyStore& store) : store_(store) {}

  // Returns the messages that have arrived since the last call, in order. Skips, with a warning,
  // invalid messages and those that were announced but not written for some time.
  std::vector<Message> read(core::SteadyTime now);

 private:
  KeyStore& store_;
  std::int64_t read_ = 0;
  core::SteadyTime due_{};  // time at which an announced but missing message is given up
};

}  // namespace scaletrain::launcher
