#include "lib/optim/state_file.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/optim/optimizer.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/describe.h"
#include "tests/dist/ranks.h"
#include "tests/engine/counting_allocator.h"
#include "tests/temporary_folder.h"

namespace {

using namespace scaletrain;  // NOLINT(google-build-using-namespace)
using Way = core::AsyncFile::Way;

// The descriptor of the file without a name in `folder`; -1: there is none.
int nameless_file_in(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(entry.path(), gone).string();
    if (to.starts_with(folder.string()) && to.ends_with("(deleted)")) {
      return std::stoi(entry.path().filename().string());
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("state in a file is what it was, is changed in a step, and may be filled outside of it") {
  for (const Way way : {Way::kAuto, Way::kThread}) {
    const test::TemporaryFolder folder;
    optim::StateFile file(folder.path / "made", way);
    at::manual_seed(1);
    // Portions of several sizes; one has nothing to be in the file, and one a tensor twice.
    std::vector<std::vector<at::Tensor>> portions{
        {at::randn({3000}), at::randn({7})},
        {at::randn({2}), at::zeros({})},
        {at::randn({64, 64})},
        {at::randn({5000})},
        {at::randn({1 << 20})},
    };
    portions[3].push_back(portions[3][0].view({50, 100}));
    std::vector<std::vector<at::Tensor>> expected;
    for (const auto& tensors : portions) {
      for (const at::Tensor& tensor : tensors) REQUIRE(tensor.is_contiguous());
      auto& copies = expected.emplace_back();
      for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
      file.add(tensors);
    }
    const auto check = [&] {
      for (std::size_t i = 0; i < portions.size(); ++i) {
        for (std::size_t j = 0; j < portions[i].size(); ++j) {
          CAPTURE(i);
          CAPTURE(j);
          CHECK(at::equal(portions[i][j], expected[i][j]));
        }
      }
    };
    check();
    // In whole pages: 12,000, 16,384 and 20,000 bytes, 4 MB; what is less than a page is in memory.
    constexpr std::int64_t kBytes = 12288 + 16384 + 20480 + (4 << 20);
    CHECK(file.bytes() == kBytes);
    struct stat status {};
    REQUIRE(::fstat(nameless_file_in(folder.path), &status) == 0);
    CHECK(status.st_size == kBytes);
    // What was filled in since the last step is what the next one finds, and what a step leaves is
    // what is read after it, from pages too that were read before.
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < portions.size(); ++i) {
        portions[i][0].add_(round);
        expected[i][0].add_(round);
      }
      file.fetch(0);
      for (std::size_t i = 0; i < portions.size(); ++i) {
        file.enter(i);
        if (i + 1 < portions.size()) file.fetch(i + 1);
        CHECK(at::equal(portions[i][0], expected[i][0]));
        portions[i][0].mul_(3);
        expected[i][0].mul_(3);
        file.leave(i);
      }
      if (portions[3].size() > 1) expected[3][1] = expected[3][0].view({50, 100});
      file.finish();
      check();
    }
    CHECK(std::filesystem::is_empty(folder.path / "made"));  // the file has no name
  }
}

TEST_CASE("nothing of a file is left in memory behind it") {
  const test::TemporaryFolder folder;
  const auto is_mapped = [&] {
    std::ifstream maps("/proc/self/maps");
    const std::string text(std::istreambuf_iterator<char>(maps), {});
    return text.find(folder.path.string()) != std::string::npos;
  };
  {
    optim::StateFile file(folder.path);
    file.add({at::ones({4096})});
    CHECK(is_mapped());
  }
  CHECK_FALSE(is_mapped());
  CHECK(nameless_file_in(folder.path) == -1);
}

TEST_CASE("a folder that cannot be, a disk without room and a file that was cut are said") {
  const test::TemporaryFolder folder;
  folder.write("plain", "");
  CHECK_THROWS_AS(optim::StateFile(folder.path / "plain" / "below"), core::StorageError);
  CHECK_THROWS_AS(optim::StateFile("/proc/self"), core::StorageError);  // takes no files
  for (const Way way : {Way::kAuto, Way::kThread}) {
    optim::StateFile file(folder.path, way);
    const at::Tensor first = at::ones({4096}), second = at::ones({8192});
    file.add({first});
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{.rlim_cur = 20000, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_THROWS_WITH_AS(
        file.add({second}),
        (folder.path.string() +
         "/(optimizer state): cannot reserve 32768 bytes behind 16384 of the optimizer's state: "
         "File too large (EFBIG: the limit of file sizes is ulimit -f)\n  raise the limit of file "
         "sizes (ulimit -f), or use a file system for larger files")
            .c_str(),
        core::StorageError);
    setrlimit(RLIMIT_FSIZE, &before);
    const int fd = nameless_file_in(folder.path);
    REQUIRE(fd >= 0);
    REQUIRE(::ftruncate(fd, 8192) == 0);
    file.fetch(0);
    CHECK_THROWS_WITH_AS(
        file.enter(0),
        (folder.path.string() + "/(optimizer state): ends at byte 8192\n"
                                "  another program truncated it: give this job its own folder")
            .c_str(),
        core::StorageError);
  }
}

namespace {

// Bytes of tensors that lie in memory after three steps of AdamW, and at most.
std::string memory_of(const std::filesystem::path& folder) {
  constexpr int kParameters = 16;
  constexpr std::int64_t kElements = 1 << 18;  // 1 MB of fp32
  at::set_num_threads(1);                      // of a process that was forked
  testing::CountingAllocator& allocator = testing::CountingAllocator::install();
  std::vector<optim::NamedParameter> parameters;
  for (int i = 0; i < kParameters; ++i) {
    at::Tensor tensor = at::ones({kElements});
    tensor.mutable_grad() = at::ones({kElements});
    parameters.push_back({.name = fmt::format("{:02}", i), .tensor = tensor});
  }
  recipe::Optimizer config;
  recipe::choose(config, *recipe::optimizers().find("adamw"));
  const auto optimizer =
      optim::make_host_optimizer(config, parameters, {.folder = folder, .portion = kElements});
  optimizer->step(0.1);
  allocator.restart_peak();
  for (int step = 0; step < 2; ++step) optimizer->step(0.1);
  std::string text = fmt::format("{} {}", allocator.live(), allocator.peak());
  for (const auto& [name, tensor] : local_tensors(optimizer->state())) {
    if (tensor.numel() == kElements) text += tensor[0].item<float>() > 0 ? "" : " zeros";
  }
  return text;
}

}  // namespace

TEST_CASE("state in a file is not in memory, but for three portions of it") {
  const test::TemporaryFolder folder;
  std::vector<std::vector<std::int64_t>> bytes;
  for (const std::filesystem::path& where : {std::filesystem::path(), folder.path}) {
    const auto results = testing::run_ranks(
        {.world_size = 1}, [&](const core::WorkerEnv&) { return memory_of(where); });
    CAPTURE(results[0].text);
    std::istringstream stream(results[0].text);
    std::int64_t live = 0, peak = 0;
    REQUIRE((stream >> live >> peak));
    CHECK(stream.eof());
    bytes.push_back({live, peak});
  }
  // Two averages of 16 portions of 1 MB leave memory, and three buffers for two averages come.
  constexpr std::int64_t kMb = 1 << 20;
  const std::int64_t expected = (2 * 16 - 3 * 2) * kMb;
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(std::abs(bytes[0][i] - bytes[1][i] - expected) < kMb / 8);
  }
}
