#include "lib/storage/pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/url.h"

namespace scaletrain::storage {
namespace {

constexpr std::chrono::seconds kEndPatience{
    10};  // between the end of the output and of the command

// False if nothing happens on `fd` during `patience`.
bool wait_for(int fd, std::chrono::milliseconds patience) {
  pollfd watch{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&watch, 1, static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

class PipeStream : public Stream {
 public:
  PipeStream(const std::string& path, std::chrono::seconds stall)
      : place_(core::shown_path(path)), stall_(stall) {
    core::Pipe pipe = core::make_pipe();
    output_ = std::move(pipe.read);
    core::SpawnRequest request;
    request.arguments = {"/bin/sh", "-c", path.substr(path.find(':') + 1)};
    request.descriptors = {{pipe.write.get(), STDOUT_FILENO}};
    command_ = std::make_unique<core::Process>(core::Process::spawn(request));
  }

  std::size_t read(std::span<std::byte> out) override {
    if (out.empty() || ended_) return 0;
    if (!wait_for(output_.get(), stall_)) {
      fail(fmt::format("wrote nothing for {} s", stall_.count()));
    }
    ssize_t got = 0;
    do {
      got = ::read(output_.get(), out.data(), out.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail(core::errno_text(errno));
    if (got == 0) check_end();
    return static_cast<std::size_t>(got);
  }

 private:
  // The output is complete only if the command exits with success.
  void check_end() {
    if (!wait_for(command_->pidfd(), kEndPatience)) fail("closed its output and does not end");
    const std::optional<core::ExitStatus> status = command_->ended();
    if (!status || !status->ok()) fail(status ? core::to_text(*status) : "has no exit status");
    ended_ = true;
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw core::StorageError(place_, "the command failed: " + found,
                             "its own messages are in the log; run it by hand");
  }

  std::string place_;
  std::chrono::seconds stall_;
  core::Descriptor output_;
  std::unique_ptr<core::Process> command_;
  bool ended_ = false;
};

class PipeStorage : public Storage {
 public:
  explicit PipeStorage(std::chrono::seconds stall) : stall_(stall) {}

  std::unique_ptr<Stream> stream(const std::string& path) const override {
    return std::make_unique<PipeStream>(path, stall_);
  }
  std::unique_ptr<Object> open(const std::string& path) const override {
    refuse(path, "a command's output is read from the front only",
           "name a folder in /data/cache, where it is kept as a file");
  }
  std::vector<Entry> list(const std::string& folder) const override {
    refuse(folder, "a command cannot be listed", "");
  }
  void write(const std::string& path, std::string_view /*bytes*/) const override {
    refuse(path, "a command is not written to", "");
  }
  bool write_if_absent(const std::string& path, std::string_view /*bytes*/) const override {
    refuse(path, "a command is not written to", "");
  }

 private:
  [[noreturn]] static void refuse(const std::string& path, const std::string& found,
                                  const std::string& remedy) {
    throw core::DataError(core::shown_path(path), found, remedy);
  }

  std::chrono::seconds stall_;
};

}  // namespace

std::unique_ptr<Storage> make_pipe_storage(std::chrono::seconds stall) {
  return std::make_unique<PipeStorage>(stall);
}

}  // namespace scaletrain::storage
