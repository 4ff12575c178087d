#include "app/data/split_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "lib/core/philox.h"

namespace scaletrain::app {
namespace {

// Samples that stay together.
struct Group {
  std::uint32_t begin = 0, count = 0;
  std::uint32_t draw = 0;  // decides the order of groups of one size
};

// Large groups come first, as they are hardest to place; groups of equal size are in random order.
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

// Returns how many samples of each class a part gets: its share rounded down, plus leftover
// samples, which are assigned so that the parts have the right size in total even if a class is too
// small for all parts. Classes take turns in random order.
std::map<std::uint32_t, std::vector<double>> quotas(const std::vector<SplitSample>& samples,
                                                    const std::vector<double>& shares,
                                                    std::uint64_t seed) {
  constexpr double kRounding = 1e-6;  // tolerance of a count
  std::map<std::uint32_t, std::int64_t> count_of;
  for (const SplitSample& sample : samples) ++count_of[sample.label];
  std::vector<std::pair<std::uint64_t, std::uint32_t>> turns;
  std::vector<double> owed(shares.size());  // samples that each part still lacks of its total share
  std::map<std::uint32_t, std::vector<double>> result;
  for (const auto& [label, count] : count_of) {
    core::Philox random(seed, core::DrawPurpose::kTools, 1, label);
    turns.emplace_back(random.next_u64(), label);
    for (const double share : shares) {
      const double exact = share * static_cast<double>(count);
      result[label].push_back(std::floor(exact + kRounding));
    }
  }
  std::sort(turns.begin(), turns.end());
  for (std::size_t part = 0; part < shares.size(); ++part) {
    owed[part] = shares[part] * static_cast<double>(samples.size());
    for (const auto& [label, parts] : result) owed[part] -= parts[part];
  }
  for (const auto& [draw, label] : turns) {
    std::vector<double>& parts = result.at(label);
    const auto count = static_cast<double>(count_of.at(label));
    std::vector<bool> may_have_more(shares.size());  // parts due another sample of this class
    for (std::size_t part = 0; part < shares.size(); ++part) {
      may_have_more[part] = shares[part] * count - parts[part] > kRounding;
    }
    const double given = std::accumulate(parts.begin(), parts.end(), 0.0);
    for (auto left = std::llround(count - given); left > 0; --left) {
      std::size_t most = shares.size();
      for (std::size_t part = 0; part < shares.size(); ++part) {
        if (!may_have_more[part]) continue;
        if (most == shares.size() || owed[part] > owed[most] + kRounding) most = part;
      }
      may_have_more[most] = false;
      parts[most] += 1;
      owed[most] -= 1;
    }
  }
  return result;
}

}  // namespace

SplitPlan plan_split(std::vector<SplitSample> samples, const std::vector<double>& shares,
                     std::uint64_t seed) {
  std::sort(samples.begin(), samples.end(), [](const SplitSample& a, const SplitSample& b) {
    return std::tie(a.group, a.number) < std::tie(b.group, b.number);
  });
  // Samples of each class that each part still needs.
  std::map<std::uint32_t, std::vector<double>> wanted = quotas(samples, shares, seed);
  const std::vector<Group> groups = make_groups(samples, seed);
  SplitPlan result{std::vector<std::uint8_t>(samples.size()), groups.size()};
  for (const Group& group : groups) {
    const auto members = std::span(samples).subspan(group.begin, group.count);
    std::vector<double> need(shares.size());
    for (const SplitSample& sample : members) {
      const std::vector<double>& parts = wanted.at(sample.label);
      for (std::size_t part = 0; part < shares.size(); ++part) need[part] += parts[part];
    }
    const auto part = std::max_element(need.begin(), need.end()) - need.begin();
    for (const SplitSample& sample : members) {
      result.parts[sample.number] = static_cast<std::uint8_t>(part);
      wanted.at(sample.label)[static_cast<std::size_t>(part)] -= 1;
    }
  }
  return result;
}

}  // namespace scaletrain::app
