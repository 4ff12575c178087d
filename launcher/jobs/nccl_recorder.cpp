#include "launcher/jobs/nccl_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/platform/temporary_folder.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {
namespace {

constexpr double kPatienceS = 1.5;  // LibTorch checks its pipe once a second
constexpr std::chrono::milliseconds kRecordingLook{10};

}  // namespace

NcclRecorder::NcclRecorder(const std::filesystem::path& folder, std::vector<int> ranks)
    : files_((folder / "nccl_trace_").string()), ranks_(std::move(ranks)) {
  // Not in the run's folder: an object store mounted as one has no pipes.
  pipe_folder_ = make_temporary_folder("scaletrain-nccl-");
  pipes_ = (pipe_folder_ / "rank-").string();
}

NcclRecorder::~NcclRecorder() {
  std::error_code ignored;
  std::filesystem::remove_all(pipe_folder_, ignored);
}

std::map<std::string, std::string> NcclRecorder::variables() const {
  std::map<std::string, std::string> result{{"TORCH_FR_BUFFER_SIZE", "2000"},
                                            {"TORCH_NCCL_DUMP_ON_TIMEOUT", "1"},
                                            {"TORCH_FR_DUMP_TEMP_FILE", files_},
                                            {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", pipes_}};
  std::erase_if(result, [](const auto& one) { return std::getenv(one.first.c_str()) != nullptr; });
  return result;
}

void NcclRecorder::record() const {
  std::vector<std::string> awaited;
  for (const int rank : ranks_) {
    const std::string pipe = fmt::format("{}{}.pipe", pipes_, rank);
    const core::Descriptor fd(open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd && write(fd.get(), "1\n", 2) == 2) awaited.push_back(files_ + std::to_string(rank));
  }
  const core::SteadyTime start = core::now();
  while (!awaited.empty() && core::seconds_since(start) < kPatienceS) {
    std::erase_if(awaited, [](const std::string& file) {
      std::error_code absent;
      return std::filesystem::file_size(file, absent) > 0 && !absent;
    });
    std::this_thread::sleep_for(kRecordingLook);
  }
}

}  // namespace scaletrain::launcher
