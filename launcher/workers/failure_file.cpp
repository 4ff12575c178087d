#include "launcher/workers/failure_file.h"

#include <nlohmann/json.hpp>

#include "launcher/platform/record_json.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {

// In this namespace, so that record_json.h finds it.
static void each_field(Is<FailureFile> auto& file, const auto& field) {
  field("time", file.time);
  field("attempt", file.attempt);
  field("host", file.host);
  field("node", file.node);
  field("device", file.device);
  field("rank", file.rank);
  field("local_rank", file.local_rank);
  field("pid", file.pid);
  field("exit_code", file.exit_code);
  field("signal", file.signal);
  field("cause", file.cause);
  field("step", file.step);
  field("hang", file.hang);
  field("log", file.log);
  field("last_lines", file.last_lines);
}

namespace {

constexpr const char* kFileName = "failure.json";
constexpr std::int64_t kMaxFailureBytes = 64 << 20;

}  // namespace

FailureFile failure_file(const Failure& failure, int attempt) {
  FailureFile file{.time = failure.time,
                   .attempt = attempt,
                   .host = failure.host,
                   .rank = failure.rank,
                   .local_rank = failure.local_rank,
                   .pid = failure.pid,
                   .exit_code = failure.status.shell_code(),
                   .cause = failure.hang.empty() ? failure.cause : failure.hang,
                   .hang = failure.hang_lines,
                   .log = failure.log,
                   .last_lines = failure.last_lines};
  if (failure.status.signal != 0) file.signal = core::signal_name(failure.status.signal);
  if (failure.node >= 0) file.node = failure.node;
  if (!failure.device.empty()) file.device = failure.device;
  if (failure.step >= 0) file.step = failure.step;
  return file;
}

std::string to_json(const FailureFile& file) {
  return core::json_text(json_of<nlohmann::ordered_json>(file), 2) + "\n";
}

void write_failure(const std::filesystem::path& folder, const Failure& failure, int attempt) {
  try {
    core::write_durably(core::system_disk(), folder / kFileName,
                        to_json(failure_file(failure, attempt)));
  } catch (const core::StorageError& error) {
    core::warn("failure.json was not written: {}", error.what());
  }
}

std::optional<FailureFile> read_failure(const std::filesystem::path& folder) {
  std::error_code absent;
  if (!std::filesystem::exists(folder / kFileName, absent)) return std::nullopt;
  try {
    FailureFile file;
    read_known(nlohmann::json::parse(
                   core::read_file(folder / kFileName, kMaxFailureBytes, core::ExitCode::kData)),
               file);
    return file;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace scaletrain::launcher
