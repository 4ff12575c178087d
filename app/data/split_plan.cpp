#include "app/data/split_plan.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "lib/core/philox.h"

namespace scaletrain::app {
namespace {

struct Group {
  std::vector<std::size_t> samples;
  std::uint64_t draw = 0;  // decides the order of groups of one size
};

// Large groups first, since they are hardest to place; those of one size in random order.
std::vector<Group> make_groups(const std::vector<SplitSample>& samples, std::uint64_t seed) {
  std::unordered_map<std::uint64_t, std::size_t> numbers;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto [found, is_new] = numbers.emplace(samples[i].group, groups.size());
    if (is_new) {
      groups.emplace_back().draw =
          core::Philox(seed, core::DrawPurpose::kTools, 0, found->second).next_u64();
    }
    groups[found->second].samples.push_back(i);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return std::pair(b.samples.size(), a.draw) < std::pair(a.samples.size(), b.draw);
  });
  return groups;
}

}  // namespace

std::vector<std::size_t> plan_split(const std::vector<SplitSample>& samples,
                                    const std::vector<double>& shares, std::uint64_t seed) {
  // What each part still wants of each class.
  std::map<std::int64_t, std::vector<double>> wanted;
  for (const SplitSample& sample : samples) {
    auto& parts = wanted.emplace(sample.label, std::vector<double>(shares.size())).first->second;
    for (std::size_t part = 0; part < shares.size(); ++part) parts[part] += shares[part];
  }
  std::vector<std::size_t> result(samples.size());
  for (const Group& group : make_groups(samples, seed)) {
    std::vector<double> need(shares.size());
    for (const std::size_t i : group.samples) {
      const std::vector<double>& parts = wanted.at(samples[i].label);
      for (std::size_t part = 0; part < shares.size(); ++part) need[part] += parts[part];
    }
    const auto part = static_cast<std::size_t>(
        std::distance(need.begin(), std::max_element(need.begin(), need.end())));
    for (const std::size_t i : group.samples) {
      result[i] = part;
      wanted.at(samples[i].label)[part] -= 1;
    }
  }
  return result;
}

}  // namespace scaletrain::app
