// How the ranks that write a checkpoint together agree on it: rank 0 names a folder, each other
// rank writes its share into it and reports what it has written, rank 0 publishes all of it.
//
// They put texts on a board, beside the collectives of training, on the threads that write:
//   order      rank 0's: "SAVE ATTEMPT FOLDER" asks for shares, "SAVE ATTEMPT" ends that save
//   done/R     "SAVE ATTEMPT", whose report is there
//   report/R   a manifest of the files of rank R, or its error
//   alive/R    "SAVE COUNT", again and again while rank R takes part in that save
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

// How long a rank that does not show itself is waited for.
struct Patience {
  double silent_s = 60;   // one that has taken part in this save
  double absent_s = 900;  // one that has not begun it
  double in_haste_s = 5;  // either, once hurry() was called
};

// Writers as one rank sees them; the thread that writes makes all calls but hurry().
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

  // Rank 0, for each save in turn: begin; for each attempt ask, then collect; end, however the save
  // went. collect() adds what the others have written to `files`. It throws, when all have
  // reported, the error of the first rank that could not write its share; core::StoppedError naming
  // a rank that shows itself no more.
  void begin();
  void ask(const std::string& folder);
  void collect(format::FolderFiles& files);
  void end();

  // Another rank, for each save in turn: writes its share as often as it is asked to, and reports
  // what it has written or the error. Throws core::StoppedError where rank 0 shows itself no more.
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
