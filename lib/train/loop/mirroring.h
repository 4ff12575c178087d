// Remote checkpoint copies of a run (/checkpoint/mirror): reports them, and handles failed copies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/error.h"
#include "lib/format/checkpoint/retention.h"
#include "lib/mirror/mirror.h"
#include "lib/train/loop/reporter.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

class Mirroring {
 public:
  // On rank 0, if the recipe names a place: copies the checkpoint from which the run resumes, if it
  // is not there yet, and later ones.
  Mirroring(Run& run, Reporter& reporter, const format::Retention& retention);

  // Adds a checkpoint that has become durable in the run's folder. Never waits.
  void add(const std::filesystem::path& checkpoint, std::int64_t step);

  // Reports durable copies. If the place fails, warns if the run continues without it
  // (checkpoint.on_failure), else throws core::Error.
  void look();

  // Waits for the newest copy, at most `limit_s` seconds if it is set; warns if it is not finished
  // by then. Throws the errors of look(), also if the place does not answer.
  void finish(std::optional<double> limit_s);

 private:
  std::string place() const;
  std::string what() const;  // text for messages: the copied files
  void warn_of_failure(const core::Error& error);

  Run& run_;
  Reporter& reporter_;
  std::filesystem::path newest_;            // newest checkpoint added
  bool has_warned_ = false;                 // about a failing target, until it works again
  bool lags_ = false;                       // copies lag behind, and a warning said so
  std::unique_ptr<mirror::Mirror> mirror_;  // nullptr: no copies
};

}  // namespace scaletrain::train
