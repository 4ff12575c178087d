// A private temporary folder of a command, removed at its end, also after a signal.
#pragma once

#include <filesystem>
#include <string>

#include "launcher/platform/stop_signals.h"

namespace scaletrain::launcher {

class ScratchFolder {
 public:
  // Creates the folder (make_temporary_folder). Blocks stop signals, so that none ends the process
  // before the destructor runs: code that waits meanwhile must check stops(). Throws
  // core::StorageError.
  explicit ScratchFolder(const std::string& label, const std::filesystem::path& parent = {});
  ~ScratchFolder();  // removes the folder with its contents
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  StopSignals& stops() { return stops_; }

 private:
  StopSignals stops_{{}};
  std::filesystem::path path_;
};

}  // namespace scaletrain::launcher
