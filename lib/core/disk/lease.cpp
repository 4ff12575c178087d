#include "lib/core/disk/lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/disk/exclusive_file.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/process/host_name.h"
#include "lib/core/process/process_start.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::core {
namespace {

using std::chrono::milliseconds;

struct Owner {
  std::string host, boot_id, pid_namespace;
  pid_t pid = 0;
  std::int64_t started = 0;
  int attempt = 0;
};

std::string read_system_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<Owner> parse(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    return Owner{.host = json.at("host"),
                 .boot_id = json.at("boot_id"),
                 .pid_namespace = json.value("pid_namespace", this_pid_namespace()),
                 .pid = json.at("pid"),
                 .started = json.at("started"),
                 .attempt = json.value("attempt", 0)};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// True if the owner is alive; nullopt if this host cannot know.
std::optional<bool> lives(const Owner& owner) {
  if (owner.host != host_name() || owner.boot_id != this_boot() ||
      owner.pid_namespace != this_pid_namespace()) {
    return std::nullopt;
  }
  return start_ticks(owner.pid) == owner.started;
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& text) {
  const std::optional<Owner> owner = parse(text);
  const std::string who = owner ? fmt::format("the running job with pid {} on host {}", owner->pid,
                                              printable(owner->host))
                                : "another running job";
  throw UsageError(file.parent_path().string(), "belongs to " + who,
                   "stop that job first, or give this one another folder: --set output=FOLDER");
}

// Watches a lease whose owner cannot be checked from here. Returns when it is stale; throws when it
// changes.
void watch(const std::filesystem::path& file, const std::string& text, milliseconds stale_after) {
  log("{}: watching for {:.0f} s whether its owner is alive", file.string(),
      std::chrono::duration<double>(stale_after).count());
  const SteadyTime end = now() + stale_after;
  while (now() < end) {
    std::this_thread::sleep_for(std::min<milliseconds>(stale_after / 20, milliseconds(1000)));
    const std::string seen = read_system_file(file);
    std::error_code unknown;
    // The owner has released it.
    if (seen.empty() && !std::filesystem::exists(file, unknown)) return;
    if (seen != text) refuse(file, seen);
  }
}

// Writes a complete file beside `file`, to be linked or renamed to it.
std::filesystem::path write_beside(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::path temporary = file.string() + fmt::format(".{}.{}", host_name(), getpid());
  const Descriptor fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    unlink(temporary.c_str());
    throw StorageError(file.string(), "cannot be written: " + errno_text(error),
                       "check the folder's permissions and free space");
  }
  return temporary;
}

// Creates `file` with `text`; false if the file exists.
bool create(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = write_beside(file, text);
  const Exclusive result = name_exclusively(temporary, file, text);
  unlink(temporary.c_str());
  if (result.link_error != 0) {
    warn("{}: no hard link can be made here: {}; the lock is made with O_EXCL", file.string(),
         errno_text(result.link_error));
  }
  if (result.error != 0) {
    throw StorageError(file.string(), "cannot be made: " + errno_text(result.error),
                       "check the folder's permissions");
  }
  return result.is_made;
}

// Removes a stale lease. One of several observers succeeds; a late one that has moved a new owner's
// lease moves it back.
void take_away(const std::filesystem::path& file, const std::string& stale) {
  const std::filesystem::path aside =
      file.string() + fmt::format(".stale.{}.{}", host_name(), getpid());
  if (rename(file.c_str(), aside.c_str()) != 0) return;  // another observer was faster
  const std::string moved = read_system_file(aside);
  if (moved != stale && !name_exclusively(aside, file, moved).is_made) {
    warn("{}: could not be put back", file.string());
  }
  unlink(aside.c_str());
}

// True if `fd` is the folder that currently has this name.
bool is_folder(int fd, const std::filesystem::path& folder) {
  struct stat held = {}, named = {};
  return fstat(fd, &held) == 0 && stat(folder.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace

std::optional<LeaseView> view_lease(const std::filesystem::path& file) {
  const std::optional<Owner> owner = parse(read_system_file(file));
  std::error_code gone;
  const auto changed = std::filesystem::last_write_time(file, gone);
  if (!owner || gone) return std::nullopt;
  return LeaseView{.host = owner->host,
                   .pid = owner->pid,
                   .attempt = owner->attempt,
                   .alive = lives(*owner),
                   .age_s = std::chrono::duration<double>(
                                std::filesystem::file_time_type::clock::now() - changed)
                                .count()};
}

Lease::Lease(std::filesystem::path file, int attempt, milliseconds stale_after)
    : file_(std::move(file)), attempt_(attempt) {
  written_ = text();
  hold_folder();
  while (!create(file_, written_)) {
    const std::string found = read_system_file(file_);
    const std::optional<Owner> owner = parse(found);
    const std::optional<bool> alive = owner ? lives(*owner) : std::nullopt;
    if (alive == true) refuse(file_, found);
    if (!alive.has_value()) watch(file_, found, stale_after);
    take_away(file_, found);
  }
}

// Locks the folder. Throws UsageError if another process of this machine holds it. On a file system
// without locks, only the lease file protects the run.
void Lease::hold_folder() {
  const std::filesystem::path folder = file_.has_parent_path() ? file_.parent_path() : ".";
  if (is_folder(folder_.get(), folder)) return;
  folder_ = Descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_ && flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    refuse(file_, read_system_file(file_));
  }
}

Lease::~Lease() {
  if (read_system_file(file_) == written_) unlink(file_.c_str());
}

bool Lease::beat() {
  const std::string seen = read_system_file(file_);
  if (!seen.empty() && seen != written_) return false;
  std::error_code unknown;
  if (!std::filesystem::exists(file_, unknown) && !unknown) {
    warn("{}: was removed while its job runs: it is written again", file_.string());
    std::filesystem::create_directories(file_.parent_path(), unknown);
  }
  try {
    hold_folder();
  } catch (const UsageError&) {
    return false;
  }
  ++beat_;
  const std::string next = text();
  try {
    const std::filesystem::path temporary = write_beside(file_, next);
    if (rename(temporary.c_str(), file_.c_str()) == 0) {
      written_ = next;
    } else {
      unlink(temporary.c_str());
    }
  } catch (const StorageError& error) {
    if (!std::exchange(has_warned_, true)) warn("the lease was not renewed: {}", error.what());
  }
  return true;
}

std::string Lease::text() const {
  const nlohmann::ordered_json json{{"host", host_name()},
                                    {"boot_id", this_boot()},
                                    {"pid_namespace", this_pid_namespace()},
                                    {"pid", getpid()},
                                    {"started", start_ticks(getpid())},
                                    {"attempt", attempt_},
                                    {"beat", beat_}};
  return json_text(json) + "\n";
}

}  // namespace scaletrain::core
