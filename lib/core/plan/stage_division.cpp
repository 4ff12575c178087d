#include "lib/core/plan/stage_division.h"

#include <algorithm>
#include <limits>

namespace scaletrain::core {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

// Sums the costs of the units from `begin` to `end`.
class Costs {
 public:
  explicit Costs(const std::vector<double>& costs) : sums_(costs.size() + 1, 0.0) {
    for (std::size_t i = 0; i < costs.size(); ++i) sums_[i + 1] = sums_[i] + costs[i];
  }
  std::size_t count() const { return sums_.size() - 1; }
  double of(std::size_t begin, std::size_t end) const { return sums_[end] - sums_[begin]; }

 private:
  std::vector<double> sums_;
};

// Best first unit of the last stage, for a number of stages over a number of units, and the cost of
// that division.
struct Best {
  double value = kNone;
  std::size_t begin = 0;
};

// Indexed by stages and units; `together` combines the cost of earlier stages with a new last
// stage.
template <class Together>
std::vector<std::vector<Best>> best_divisions(const Costs& costs, std::size_t stages,
                                              const Together& together) {
  const std::size_t units = costs.count();
  std::vector<std::vector<Best>> best(stages + 1, std::vector<Best>(units + 1));
  best[0][0].value = 0;
  for (std::size_t stage = 1; stage <= stages; ++stage) {
    for (std::size_t end = stage; end <= units; ++end) {
      for (std::size_t begin = stage - 1; begin < end; ++begin) {
        const double before = best[stage - 1][begin].value;
        if (before == kNone) continue;
        const double value = together(before, costs.of(begin, end));
        if (value < best[stage][end].value) best[stage][end] = {.value = value, .begin = begin};
      }
    }
  }
  return best;
}

}  // namespace

std::vector<std::size_t> divide_into_stages(const std::vector<double>& costs, std::size_t stages) {
  const Costs sums(costs);
  const double limit = best_divisions(sums, stages,
                                      [](double before, double last) {
                                        return std::max(before, last);
                                      })[stages][costs.size()]
                           .value;
  const auto best = best_divisions(sums, stages, [limit](double before, double last) {
    return last > limit ? kNone : before + last * last;
  });
  std::vector<std::size_t> begins(stages);
  std::size_t end = costs.size();
  for (std::size_t stage = stages; stage > 0; --stage) {
    end = best[stage][end].begin;
    begins[stage - 1] = end;
  }
  return begins;
}

}  // namespace scaletrain::core
