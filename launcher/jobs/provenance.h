// provenance.json of a run: the data files that it reads and the state of the git repository in
// which it was started, for `scaletrain reproduce`.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "lib/recipe/sections/data/data.h"

namespace scaletrain::launcher {

// Writes RUN/provenance.json in a thread beside the start of the workers, because an image folder
// has many files, and RUN/changes.diff with the uncommitted changes of the repository, if any. Only
// the owner of the run may read changes.diff (mode 0600): a source may hold a secret. A failure is
// a warning.
class ProvenanceRecorder {
 public:
  // `weights`: path of the initial weights, "" for none.
  ProvenanceRecorder(std::filesystem::path run, recipe::Data data, std::string weights);
  // Ends the look at files and repository early; then nothing is written.
  ~ProvenanceRecorder();
  ProvenanceRecorder(const ProvenanceRecorder&) = delete;
  ProvenanceRecorder& operator=(const ProvenanceRecorder&) = delete;

 private:
  void record();
  void write();

  std::filesystem::path run_;
  recipe::Data data_;
  std::string weights_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace scaletrain::launcher
