// Copies of a run's checkpoints in its second place (/checkpoint/mirror): what a person hears of
// them, and what becomes of a run whose copies fail.
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
  // Rank 0 copies, where the recipe names a place: first the checkpoint that the run goes on from,
  // which may not be there yet.
  Mirroring(Run& run, Reporter& reporter, const format::Retention& retention);

  // One that has become durable in the run's folder. Never waits.
  void add(const std::filesystem::path& checkpoint, std::int64_t step);

  // Reports the copies that have become durable. A place that fails is warned about where the run
  // goes on without (checkpoint.on_failure), else throws core::Error.
  void look();

  // Waits for the newest copy, for `limit_s` at most where there is a limit; one that is not
  // finished by then is warned about. Throws as look, and where the place does not answer.
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
