#include "launcher/jobs/nccl_recorder.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("a worker is asked through its pipe and its file is awaited; the pipe goes afterwards") {
  const test::TemporaryFolder folder;
  std::string pipe;
  {
    const NcclRecorder recorder(folder.path, {3, 4});
    auto variables = recorder.variables();
    CHECK(variables.at("TORCH_FR_DUMP_TEMP_FILE") == folder.file("nccl_trace_"));
    pipe = variables.at("TORCH_NCCL_DEBUG_INFO_PIPE_FILE") + "3.pipe";
    // Rank 3 as LibTorch does it; rank 4 has no group.
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    const int fd = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    std::thread worker([&] {
      std::string heard(8, '\0');
      ssize_t count = -1;
      while ((count = read(fd, heard.data(), heard.size())) <= 0) std::this_thread::yield();
      heard.resize(static_cast<std::size_t>(count));
      std::ofstream(folder.file("nccl_trace_3")) << heard;
    });
    recorder.record();
    worker.join();
    close(fd);
    CHECK(std::filesystem::file_size(folder.file("nccl_trace_3")) == 2);
  }
  CHECK_FALSE(std::filesystem::exists(pipe));
}

TEST_CASE("what a person has set stays") {
  setenv("TORCH_FR_BUFFER_SIZE", "7", 1);
  CHECK_FALSE(NcclRecorder(".", {0}).variables().contains("TORCH_FR_BUFFER_SIZE"));
  unsetenv("TORCH_FR_BUFFER_SIZE");
}

}  // namespace
}  // namespace scaletrain::launcher
