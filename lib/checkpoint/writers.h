// Coordinates the ranks that write a checkpoint together: rank 0 names a folder, each other rank
// writes its share into it and reports what it wrote, and rank 0 publishes the checkpoint.
//
// The writing threads exchange texts through the key-value store, apart from the collectives of
// training:
//   order      rank 0: "SAVE ATTEMPT FOLDER" asks for shares, "SAVE ATTEMPT" ends that save
//   done/R     "SAVE ATTEMPT" for which the report of rank R is complete
//   report/R   manifest of the files of rank R, or its error
//   alive/R    "SAVE COUNT", repeated while rank R takes part in that save
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/job/board.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::checkpoint {

// Timeouts for ranks that show no sign of life.
struct Patience {
  double silent_s = 60;   // a rank that has taken part in this save
  double absent_s = 900;  // a rank that has not begun this save
  double in_haste_s = 5;  // any rank, once hurry() was called
};

// One rank's view of the writers. The writing thread makes all calls except hurry().
class Writers {
 public:
  Writers(std::shared_ptr<core::Board> board, int rank, int count, Patience patience = {});
  ~Writers();
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;

  int rank() const { return rank_; }
  int count() const { return count_; }

  // Writes this rank's share into the folder of that name.
  using WriteShare = std::function<format::FolderFiles(const std::string& folder)>;

  // For rank 0. For each save: begin(), then for each attempt ask() and collect(), then end(),
  // whether the save succeeded or not. collect() adds the files of the other ranks to `files`. Once
  // all have reported, it throws the error of the first rank that could not write its share, or
  // core::StoppedError naming a rank that stopped responding.
  void begin();
  void ask(const std::string& folder);
  void collect(format::FolderFiles& files);
  void end();

  // For other ranks, once for each save: writes this rank's share for each attempt, and reports its
  // files or the error. Throws core::StoppedError if rank 0 stops responding.
  void follow(const WriteShare& write);

  // Shortens the wait for unresponsive ranks from now on: training has failed.
  void hurry() { in_haste_ = true; }

 private:
  struct Order;
  class Watch;

  std::string stamp() const;
  void serve(const WriteShare& write);
  void report(const WriteShare& write, const std::string& folder);
  void take_part(bool takes_part);
  void show();  // announces that this rank takes part

  const std::shared_ptr<core::Board> board_;
  const int rank_, count_;
  const Patience patience_;
  std::atomic<bool> in_haste_ = false;
  std::int64_t save_ = 0, attempt_ = 0;  // counted from 1
  std::mutex mutex_;                     // guards the next two
  std::int64_t shown_save_ = 0;          // 0: none
  std::int64_t shown_ = 0;
  std::jthread showing_;
};

}  // namespace scaletrain::checkpoint
