#include "launcher/platform/gpu_paths.h"

#include <doctest/doctest.h>

#include <string>

namespace scaletrain::launcher {
namespace {

using Order = std::vector<int>;

// Two GPUs a NUMA node, and NVLink between those of `links`.
GpuPaths paths_of(int count, const std::vector<std::pair<int, int>>& links) {
  const auto size = static_cast<std::size_t>(count);
  GpuPaths paths(size, std::vector<GpuPath>(size, GpuPath::kSystem));
  const auto join = [&](int one, int other, GpuPath path) {
    paths[static_cast<std::size_t>(one)][static_cast<std::size_t>(other)] = path;
    paths[static_cast<std::size_t>(other)][static_cast<std::size_t>(one)] = path;
  };
  for (int i = 0; i < count; i += 2) join(i, i + 1, GpuPath::kNumaNode);
  for (const auto& [one, other] : links) join(one, other, GpuPath::kNvLink);
  return paths;
}

TEST_CASE("the longest path is that of the worst pair inside any group") {
  const GpuPaths paths = paths_of(4, {{0, 2}, {1, 3}});
  CHECK(longest_path(paths, {0, 2, 1, 3}, 2) == GpuPath::kNvLink);
  CHECK(longest_path(paths, {0, 1, 2, 3}, 2) == GpuPath::kNumaNode);
  CHECK(longest_path(paths, {0, 2, 1, 3}, 4) == GpuPath::kSystem);
  CHECK(longest_path(paths, {0, 2, 3, 0}, 2) == GpuPath::kSystem);
}

TEST_CASE("GPUs are ordered so that the worst group is as near as it can be") {
  struct Case {
    std::vector<std::pair<int, int>> links;
    int count, size;
    std::optional<Order> wanted;
  };
  const std::vector<Case> cases{
      {{{0, 2}, {1, 3}}, 4, 2, Order{0, 2, 1, 3}},
      {{{0, 1}, {2, 3}}, 4, 2, std::nullopt},  // as they are
      {{{0, 2}}, 4, 2, std::nullopt},          // 1 and 3 would be further apart than now
      {{{0, 3}, {1, 2}}, 4, 2, Order{0, 3, 1, 2}},
      // The first partner that fits is not always the right one.
      {{{0, 1}, {0, 3}, {1, 2}}, 4, 2, Order{0, 3, 1, 2}},
      {{{0, 2}, {0, 4}, {2, 4}, {1, 3}, {1, 5}, {3, 5}}, 6, 3, Order{0, 2, 4, 1, 3, 5}},
      {{{0, 2}, {0, 4}, {1, 3}, {1, 5}, {3, 5}}, 6, 3, std::nullopt},  // 2 and 4 are not joined
      {{{0, 2}, {1, 3}, {4, 5}}, 4, 2, Order{0, 2, 1, 3}},             // of six the first four
  };
  for (const Case& one : cases) {
    CAPTURE(one.links.size());
    CHECK(nearer_order(paths_of(6, one.links), one.count, one.size) == one.wanted);
  }
}

TEST_CASE("each path has a name") {
  CHECK(std::string(path_text(GpuPath::kNvLink)) == "NVLink");
  CHECK(std::string(path_text(GpuPath::kSystem)) == "several NUMA nodes");
}

}  // namespace
}  // namespace scaletrain::launcher
