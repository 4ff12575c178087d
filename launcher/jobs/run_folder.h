// The folder of a run: one node of the job owns it by a lease and writes its files.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/jobs/provenance.h"
#include "launcher/workers/failure.h"
#include "lib/core/disk/lease.h"
#include "lib/observe/journal.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

class RunFolder {
 public:
  // The folder `recipe.output`; `recipe` must outlive this.
  explicit RunFolder(const recipe::Recipe& recipe);

  const std::filesystem::path& path() const { return path_; }

  // Creates the folder if it does not exist.
  void create();

  // Takes the lease and prepares the folder for an attempt: removes temporary files and the results
  // of earlier attempts, writes the recipe and begins to record the provenance. `is_first` is false
  // for a successor, which waits until the previous leader has noticed that it was cut off. Throws
  // core::UsageError if another job owns the folder.
  void own(bool is_first);
  bool is_owned() const { return lease_ != nullptr; }
  void give_up_ownership() { lease_.reset(); }

  // Renews the lease. Returns why the job must stop if another job has taken the folder; "": it has
  // not.
  std::string renew_lease();

  // Begins the attempt `number`, which the owner has chosen with next_attempt().
  int next_attempt() const;
  void begin_attempt(int number);
  int attempt() const { return attempt_; }
  std::filesystem::path attempt_logs() const;  // RUN/logs/attempt_N

  // True once the current attempt has finished the run. Any thread may call it.
  bool is_finished_now() const;

  // The following apply to the owner of the folder only.
  void settle_links() const;  // checkpoints/latest and best: format::settle_links
  void write_event(const std::string& event, const nlohmann::ordered_json& fields);
  void write_failure(const Failure& failure) const;

  // True if this job has made the folder and no run has begun in it.
  bool is_unused() const;
  // Removes an unused folder. A node that does not own it removes its own one, where nodes share no
  // file system.
  void remove();

 private:
  void take_lease(bool is_first);

  const recipe::Recipe& recipe_;
  std::filesystem::path path_;
  bool is_new_ = false;  // made by create(), on this node or on another one of the job
  std::unique_ptr<core::Lease> lease_;
  observe::RunJournal journal_;
  std::unique_ptr<ProvenanceRecorder> provenance_;  // of a run that begins
  int attempt_ = 0;
  std::atomic<bool> was_unfinished_{false};  // when the current attempt began
};

}  // namespace scaletrain::launcher
