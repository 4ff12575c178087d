#include "app/data/split_plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "lib/core/philox.h"

namespace scaletrain::app {
namespace {

// Samples that stand together.
struct Group {
  std::uint32_t begin = 0, count = 0;
  std::uint32_t draw = 0;  // decides the order of groups of one size
};

// Large groups first, since they are hardest to place; those of one size in random order.
std::vector<Group> make_groups(std::span<const SplitSample> sorted, std::uint64_t seed) {
  std::vector<Group> groups;
  for (std::uint32_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i].group != sorted[i - 1].group) {
      core::Philox random(seed, core::DrawPurpose::kTools, 0, sorted[i].group);
      groups.push_back({i, 0, static_cast<std::uint32_t>(random.next_u64())});
    }
    ++groups.back().count;
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return std::tie(b.count, a.draw, a.begin) < std::tie(a.count, b.draw, b.begin);
  });
  return groups;
}

}  // namespace

std::vector<std::uint8_t> plan_split(std::vector<SplitSample> samples,
                                     const std::vector<double>& shares, std::uint64_t seed) {
  std::sort(samples.begin(), samples.end(), [](const SplitSample& a, const SplitSample& b) {
    return std::tie(a.group, a.number) < std::tie(b.group, b.number);
  });
  // What each part still wants of each class.
  std::map<std::uint32_t, std::vector<double>> wanted;
  for (const SplitSample& sample : samples) {
    auto& parts = wanted.try_emplace(sample.label, shares.size()).first->second;
    for (std::size_t part = 0; part < shares.size(); ++part) parts[part] += shares[part];
  }
  std::vector<std::uint8_t> result(samples.size());
  for (const Group& group : make_groups(samples, seed)) {
    const auto members = std::span(samples).subspan(group.begin, group.count);
    std::vector<double> need(shares.size());
    for (const SplitSample& sample : members) {
      const std::vector<double>& parts = wanted.at(sample.label);
      for (std::size_t part = 0; part < shares.size(); ++part) need[part] += parts[part];
    }
    const auto part = std::max_element(need.begin(), need.end()) - need.begin();
    for (const SplitSample& sample : members) {
      result[sample.number] = static_cast<std::uint8_t>(part);
      wanted.at(sample.label)[static_cast<std::size_t>(part)] -= 1;
    }
  }
  return result;
}

}  // namespace scaletrain::app
