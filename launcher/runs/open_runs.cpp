#include "launcher/runs/open_runs.h"

#include <filesystem>

#include "launcher/jobs/checks/data_program.h"
#include "lib/core/text/url.h"

namespace scaletrain::launcher {

OpenRuns::OpenRuns(const std::vector<std::string>& paths) {
  runs_.reserve(paths.size());
  for (const std::string& path : paths) {
    if (!core::is_url(path)) {
      runs_.push_back(read_run(path, path));
      continue;
    }
    if (!scratch_) scratch_ = std::make_unique<ScratchFolder>("scaletrain-runs-");
    const std::filesystem::path folder = scratch_->file(std::to_string(runs_.size()));
    ask_data_program({.arguments = {"fetch-run", path, "--to", folder.string()},
                      .key = core::shown_path(path),
                      .place = path,
                      .what = "the files of the run"});
    runs_.push_back(read_run(folder, core::shown_path(path)));
  }
}

}  // namespace scaletrain::launcher
