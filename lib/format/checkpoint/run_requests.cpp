#include "lib/format/checkpoint/run_requests.h"

#include <fstream>
#include <system_error>

#include "lib/core/text/text.h"

namespace scaletrain::format {
namespace {

std::filesystem::path control(const std::filesystem::path& run) { return run / "control"; }

}  // namespace

void make_request(core::Disk& disk, const std::filesystem::path& run, const std::string& name,
                  const std::string& content) {
  disk.make_folders(control(run));
  core::write_durably(disk, control(run) / name, content);
}

bool take_request(const std::filesystem::path& run, const std::string& name) {
  // One that cannot be removed would be taken again and again.
  std::error_code unknown;
  return std::filesystem::remove(control(run) / name, unknown);
}

void request_trace(core::Disk& disk, const std::filesystem::path& run, std::int64_t steps) {
  make_request(disk, run, kTraceRequest, std::to_string(steps));
}

std::optional<std::int64_t> take_trace_request(const std::filesystem::path& run) {
  std::ifstream file(control(run) / kTraceRequest);
  if (!file) return std::nullopt;
  std::string text;
  std::getline(file, text);
  if (!take_request(run, kTraceRequest)) return std::nullopt;
  const std::optional<std::int64_t> steps = core::parse_number<std::int64_t>(text);
  return steps && *steps >= 1 && *steps <= kMaxTraceSteps ? steps : std::nullopt;
}

}  // namespace scaletrain::format
