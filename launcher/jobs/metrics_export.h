// Exports of a run's metrics to experiment trackers (log.to) and of its events (log.webhook,
// log.on_event): scaletrain-export, one process a run, which can neither stop nor slow the run.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lib/core/descriptor.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

class MetricsExport {
 public:
  // Starts `program` beside this one if the recipe names a tracker or a receiver of events; a
  // failure is a warning. The run's folder has a folder "logs".
  explicit MetricsExport(const recipe::Recipe& recipe,
                         const std::string& program = "scaletrain-export");

  // Process id; nullopt where none runs.
  std::optional<pid_t> pid() const;

  // Passes the exporters' warnings on. Warns, once, if the process has died.
  void look();

  // Lets the process write the last records, for a few seconds, and ends it. Reports what was
  // exported and what was lost.
  void finish();

 private:
  void start(const recipe::Recipe& recipe, const std::string& program);
  void pass_on();
  void warn_of_end(const core::ExitStatus& status) const;

  std::filesystem::path log_;
  core::Pipe lifeline_;
  core::Descriptor report_;
  std::int64_t reported_ = 0;  // bytes of the report that were passed on
  std::optional<core::Process> process_;
};

}  // namespace scaletrain::launcher
