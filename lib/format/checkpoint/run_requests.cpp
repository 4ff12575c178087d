#include "lib/format/checkpoint/run_requests.h"

#include <system_error>

namespace scaletrain::format {
namespace {

std::filesystem::path control(const std::filesystem::path& run) { return run / "control"; }

}  // namespace

void make_request(core::Disk& disk, const std::filesystem::path& run, const std::string& name) {
  disk.make_folders(control(run));
  core::write_durably(disk, control(run) / name, "");
}

bool take_request(const std::filesystem::path& run, const std::string& name) {
  // One that cannot be removed would be taken again and again.
  std::error_code unknown;
  return std::filesystem::remove(control(run) / name, unknown);
}

}  // namespace scaletrain::format
