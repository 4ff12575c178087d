#include "launcher/jobs/provenance.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "launcher/jobs/data_files.h"
#include "launcher/platform/git_changes.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/housekeeping.h"
#include "lib/core/log.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/json_text.h"
#include "lib/core/thread_limit.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kFormatVersion = 1;
constexpr const char* kConsequence = "`scaletrain reproduce` cannot compare the data of this run";

void write_private(const fs::path& path, const std::string& text) {
  ::unlink(path.c_str());
  const core::Descriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  std::size_t written = 0;
  while (fd && written < text.size()) {
    const ssize_t count = ::write(fd.get(), text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) break;
    if (count > 0) written += static_cast<std::size_t>(count);
  }
  if (fd && written == text.size()) return;
  throw core::StorageError(path.string(), "cannot be written: " + core::errno_text(errno),
                           "check the disk of the run's folder");
}

}  // namespace

ProvenanceRecorder::ProvenanceRecorder(fs::path run, recipe::Data data, std::string weights)
    : run_(std::move(run)), data_(std::move(data)), weights_(std::move(weights)) {
  // Stop signals are for the launcher's loop, which does not exist yet.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    thread_ = std::thread([this] { record(); });
  } catch (const std::system_error&) {
    core::warn("{}; {}", core::kNoThread, kConsequence);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProvenanceRecorder::~ProvenanceRecorder() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void ProvenanceRecorder::record() {
  core::Housekeeping housekeeping;
  try {
    housekeeping.attempt(kConsequence, [this] { write(); });
  } catch (const std::exception& error) {
    housekeeping.failed(run_.string(), error.what(), kConsequence);
  }
}

void ProvenanceRecorder::write() {
  const std::optional<std::vector<DataFile>> files = data_files(data_, weights_, stop_);
  if (!files) return;
  const std::string changes = git_changes(fs::current_path(), stop_);
  if (stop_) return;  // git was cut short: no changes would be wrong
  nlohmann::ordered_json json{
      {"version", kFormatVersion}, {"time", core::unix_time()}, {"data", data_files_json(*files)}};
  if (!changes.empty()) {
    write_private(run_ / "changes.diff", changes);
    json["changes_sha256"] = core::Sha256().update(changes).hex();
  }
  core::write_durably(core::system_disk(), run_ / "provenance.json",
                      core::json_text(json, 2) + "\n");
}

}  // namespace scaletrain::launcher
