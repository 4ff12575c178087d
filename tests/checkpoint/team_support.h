// Ranks as threads of a test, which write a checkpoint together.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/checkpoint/writers.h"
#include "lib/core/job/board.h"

namespace scaletrain::test {

class MemoryBoard : public core::Board {
 public:
  void put(const std::string& key, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    texts_[key] = text;
  }
  std::string get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    return texts_[key];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

// Calls `body` of each rank in a thread of its own, rank 0's in this one; what rank 0 throws passes
// on when all have ended.
using RankBody = std::function<void(checkpoint::Writers& writers)>;
inline void as_ranks(int count, const RankBody& body, checkpoint::Patience patience = {}) {
  const auto board = std::make_shared<MemoryBoard>();
  std::vector<std::jthread> others;
  for (int rank = 1; rank < count; ++rank) {
    others.emplace_back([&body, board, rank, count, patience] {
      checkpoint::Writers writers(board, rank, count, patience);
      body(writers);
    });
  }
  checkpoint::Writers writers(board, 0, count, patience);
  body(writers);
}

}  // namespace scaletrain::test
