#include "launcher/jobs/job_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/replica/secret.h"

namespace scaletrain::launcher {
namespace {

constexpr const char* kSecretVariable = "SCALETRAIN_SECRET_FILE";
constexpr std::size_t kLeastSecretBytes = 32;
constexpr std::size_t kMostSecretBytes = 4096;
constexpr std::chrono::seconds kWritePatience{5};  // with another launcher that writes the file
constexpr std::chrono::milliseconds kWriteLook{20};

struct ReadSecret {
  std::string text;
  std::string why_not;  // "": it may be used
};

ReadSecret read_secret(const std::filesystem::path& path) {
  const core::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return {.text = "", .why_not = "cannot be read: " + core::errno_text(errno)};
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return {.text = "", .why_not = core::errno_text(errno)};
  if (!S_ISREG(found.st_mode)) return {.text = "", .why_not = "is not a regular file"};
  if (found.st_uid != ::geteuid()) return {.text = "", .why_not = "belongs to another user"};
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return {
        .text = "",
        .why_not = fmt::format("has mode {:04o}, and others may use it", found.st_mode & 07777U)};
  }
  std::array<char, kMostSecretBytes> bytes{};
  const ssize_t count = ::read(fd.get(), bytes.data(), bytes.size());
  if (count < 0) return {.text = "", .why_not = core::errno_text(errno)};
  std::string text(bytes.data(), static_cast<std::size_t>(count));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() >= kLeastSecretBytes) return {.text = std::move(text), .why_not = ""};
  return {.text = "",
          .why_not = fmt::format("has {} bytes, and a secret has at least {}", text.size(),
                                 kLeastSecretBytes)};
}

// Makes the file unless it is there.
void make_secret(const std::filesystem::path& path) {
  const core::Descriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return;
  const std::string text = replica::random_digits();
  const bool written =
      ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written) ::unlink(path.c_str());
}

}  // namespace

std::string job_secret(const std::filesystem::path& run) {
  const char* const named = std::getenv(kSecretVariable);
  if (named != nullptr && *named != '\0') {
    ReadSecret secret = read_secret(named);
    if (secret.why_not.empty()) return std::move(secret.text);
    throw core::UsageError(
        fmt::format("{} {}", kSecretVariable, core::printable(named)), secret.why_not,
        "name a file of 32 bytes or more: openssl rand -hex 32 > FILE; chmod 600 FILE");
  }
  const std::filesystem::path path = run / "peer-secret";
  make_secret(path);
  ReadSecret secret = read_secret(path);
  const core::SteadyTime end = core::now() + kWritePatience;
  while (!secret.why_not.empty() && core::now() < end && ::access(path.c_str(), F_OK) == 0) {
    std::this_thread::sleep_for(kWriteLook);
    secret = read_secret(path);
  }
  if (!secret.why_not.empty()) {
    core::warn(
        "/checkpoint/replicate: {} {}, so there are no peer checkpoints\n"
        "  give all nodes the same secret: one file that {} names on each",
        path.string(), secret.why_not, kSecretVariable);
  }
  return secret.text;
}

}  // namespace scaletrain::launcher
