#include "lib/observe/slow_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace scaletrain::observe {
namespace {

constexpr double kLeastSeconds = 10;
constexpr double kMuchWaiting = 0.1;  // share of the time
constexpr double kMuchSaving = 0.05;
constexpr double kPackedMargin = 1.15;  // of an image's side, for random crops

double data_share(const RunCosts& costs) { return costs.data_s / costs.seconds; }

double saving_share(const RunCosts& costs) {
  return costs.saving_s / (costs.seconds + costs.saving_s);
}

bool waits(const RunCosts& costs) { return data_share(costs) >= kMuchWaiting; }

double slowest_stage(const RunCosts& costs) {
  return std::max({costs.read_s, costs.decode_s, costs.augment_s});
}

// "raise data.threads from 1 to 3": as many as would end the waiting, if the cores suffice.
std::string more_threads(const RunCosts& costs) {
  const double needed = static_cast<double>(costs.threads) / (1 - std::min(data_share(costs), 0.9));
  const std::int64_t threads =
      std::min(std::llround(std::ceil(needed)), static_cast<long long>(costs.cores));
  if (threads <= costs.threads) return "give each rank more CPU cores";
  return fmt::format("raise data.threads from {} to {}", costs.threads, threads);
}

std::string waiting(const RunCosts& costs, const char* stage, double seconds) {
  return fmt::format("waited for data {:.0f} % of the time, {} takes {:.3g} ms a sample: ",
                     100 * data_share(costs), stage, 1000 * seconds);
}

std::string decoding(const RunCosts& costs) {
  const auto side =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(costs.image_size) * kPackedMargin));
  return waiting(costs, "decoding", costs.decode_s) + more_threads(costs) +
         fmt::format(" or run `scaletrain data pack --resize {}` once", side);
}

std::string augmenting(const RunCosts& costs) {
  return waiting(costs, "augmentation", costs.augment_s) + more_threads(costs) +
         " or use fewer transforms";
}

std::string reading(const RunCosts& costs) {
  return waiting(costs, "reading", costs.read_s) +
         "copy the data to a local disk or raise data.threads";
}

std::string saving(const RunCosts& costs) {
  return fmt::format("waited for checkpoints {:.0f} % of the time: {}", 100 * saving_share(costs),
                     costs.saves_async ? "save less often (checkpoint.every)"
                                       : "set checkpoint.async to true or save less often");
}

struct Rule {
  bool (*applies)(const RunCosts&);
  std::string (*text)(const RunCosts&);
};

constexpr std::array kRules{
    Rule{[](const RunCosts& costs) {
           return waits(costs) && costs.image_size > 0 && costs.decode_s == slowest_stage(costs);
         },
         decoding},
    Rule{[](const RunCosts& costs) {
           return waits(costs) && costs.augment_s == slowest_stage(costs) &&
                  costs.augment_s > costs.decode_s;
         },
         augmenting},
    Rule{[](const RunCosts& costs) {
           return waits(costs) && costs.read_s == slowest_stage(costs) &&
                  costs.read_s > std::max(costs.decode_s, costs.augment_s);
         },
         reading},
    Rule{[](const RunCosts& costs) { return saving_share(costs) >= kMuchSaving; }, saving}};

}  // namespace

std::vector<std::string> slow_causes(const RunCosts& costs) {
  std::vector<std::string> causes;
  if (costs.seconds < kLeastSeconds) return causes;
  for (const Rule& rule : kRules) {
    if (rule.applies(costs)) causes.push_back(rule.text(costs));
  }
  return causes;
}

}  // namespace scaletrain::observe
