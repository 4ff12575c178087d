// Search for the best number of loader threads while training runs (data.threads: "auto").
//
// Hill climbing on the rate at which training takes samples, measured over windows of some batches.
// While training waits for data, the search adds threads, and then read-ahead, as long as the rate
// rises; while it does not wait, the search removes threads as long as the rate does not fall, so
// that they do not compete with training for cores. The order of the data does not depend on the
// number of threads, so a run with a search is as reproducible as one without.
#pragma once

#include <cstddef>
#include <optional>

namespace scaletrain::data {

// Read-ahead of a loader: the threads that fill batches, and how many batches may be in memory.
struct ReadAheadSize {
  int threads = 1;
  int prefetch = 1;
  friend bool operator==(const ReadAheadSize&, const ReadAheadSize&) = default;
};

class ThreadSearch {
 public:
  // Starts with `initial`. Tries at most four times as many threads (8 to 64), and at most four
  // times the read-ahead.
  // `least_window_s`: least duration of a window.
  explicit ThreadSearch(ReadAheadSize initial, double least_window_s = 1);

  // Adds a window's measurement with the present size: samples per second, and the share of the
  // time, 0 to 1, in which training waited for data. Returns true if size() has changed.
  bool add(double samples_per_s, double waited_share);

  ReadAheadSize size() const { return size_; }
  ReadAheadSize best() const { return best_; }
  ReadAheadSize most() const { return most_; }
  double least_window_s() const { return least_window_s_; }
  // True once no further size is tried. A search starts again if training waits clearly more than
  // it did at the end of the last one, for example because progressive resizing made images larger.
  bool is_settled() const { return move_ == Move::kNone; }

 private:
  enum class Move { kNone, kMoreThreads, kFewerThreads, kMorePrefetch };

  void start(double samples_per_s, double waited_share);
  bool is_better(double samples_per_s) const;
  std::optional<ReadAheadSize> candidate(Move move) const;
  Move next_move() const;
  void try_next(Move move);

  double least_window_s_;
  ReadAheadSize most_;
  ReadAheadSize size_;              // measured at present
  ReadAheadSize best_;              // best so far
  std::optional<double> rate_;      // of best_; nullopt before the first measurement
  double waited_ = 0;               // share of best_
  Move move_ = Move::kMoreThreads;  // that led from best_ to size_
  bool has_gained_ = false;         // a candidate of `move_` was better
};

}  // namespace scaletrain::data
