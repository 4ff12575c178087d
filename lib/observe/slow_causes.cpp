#include "lib/observe/slow_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace scaletrain::observe {
namespace {

using core::TimeRow;

constexpr double kLeastSeconds = 10;
constexpr double kLeastShare = 0.02;
constexpr std::size_t kMostCauses = 4;
constexpr double kPackedMargin = 1.15;  // of an image's side, for random crops

double percent_of(const RunTimes& times, std::size_t row) { return 100 * times.share(row); }

double percent_of(const RunTimes& times, TimeRow row) {
  return percent_of(times, static_cast<std::size_t>(row));
}

// "raise data.threads from 1 to 3": as many as would end the waiting, if the cores suffice.
std::string more_threads(const RunTimes& times, const RunCosts& costs) {
  if (costs.threads_searched) return "give each rank more CPU cores";
  if (costs.threads == 0 || costs.cores == 0) return "raise data.threads";
  const double share = times.share(static_cast<std::size_t>(TimeRow::kDataWait));
  const double needed = static_cast<double>(costs.threads) / (1 - std::min(share, 0.9));
  const std::int64_t threads =
      std::min(std::llround(std::ceil(needed)), static_cast<long long>(costs.cores));
  if (threads <= costs.threads) return "give each rank more CPU cores";
  return fmt::format("raise data.threads from {} to {}", costs.threads, threads);
}

// Threads that wait for a disk or a store need no core.
std::string more_reads(const RunCosts& costs) {
  return costs.threads_searched ? "use data.cache" : R"(raise data.threads, or set it to "auto")";
}

std::string remedy_of_stage(const RunTimes& times, const RunCosts& costs) {
  const double slowest = std::max({costs.read_s, costs.decode_s, costs.augment_s});
  const auto takes = [slowest](const char* stage) {
    return fmt::format(", {} takes {:.3g} ms a sample: ", stage, 1000 * slowest);
  };
  if (slowest <= 0) return ": " + more_threads(times, costs) + " or data.prefetch";
  if (costs.image_size > 0 && costs.decode_s == slowest) {
    const auto side =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(costs.image_size) * kPackedMargin));
    return takes("decoding") + more_threads(times, costs) +
           fmt::format(" or run `scaletrain data pack --resize {}` once", side);
  }
  if (costs.augment_s == slowest) {
    return takes("augmentation") + more_threads(times, costs) + " or use fewer transforms";
  }
  return takes("reading") + "copy the data to a local disk or " + more_reads(costs);
}

std::string data_wait(const RunTimes& times, const RunCosts& costs) {
  return fmt::format("waited for data {:.0f} % of the time",
                     percent_of(times, TimeRow::kDataWait)) +
         remedy_of_stage(times, costs);
}

std::string checkpoint_stall(const RunTimes& times, const RunCosts& costs) {
  return fmt::format("waited for checkpoints {:.0f} % of the time: {}",
                     percent_of(times, TimeRow::kCheckpoint),
                     costs.saves_async ? "save less often (checkpoint.every)"
                                       : "set checkpoint.async to true or save less often");
}

struct Remedy {
  std::size_t row;
  std::string (*text)(const RunTimes&, const RunCosts&);
};

template <std::size_t kRow>
std::string plain(const RunTimes& times, const char* cause, const char* remedy) {
  return fmt::format("{} {:.0f} % of the time: {}", cause, percent_of(times, kRow), remedy);
}

constexpr std::size_t at(TimeRow row) { return static_cast<std::size_t>(row); }

const std::array<Remedy, 9> remedies{
    {{at(TimeRow::kStartUp),
      [](const RunTimes& times, const RunCosts& /*costs*/) {
        return plain<at(TimeRow::kStartUp)>(
            times, "started up",
            "keep data and weights on a local disk, and the index beside each shard "
            "(`scaletrain data index`)");
      }},
     {at(TimeRow::kDataWait), data_wait},
     {at(TimeRow::kHostToDevice),
      [](const RunTimes& times, const RunCosts& /*costs*/) {
        return plain<at(TimeRow::kHostToDevice)>(
            times, "copied and normalized batches",
            "lower data.image_size or leave out mixup and cutmix (mix)");
      }},
     {at(TimeRow::kCommunication),
      [](const RunTimes& times, const RunCosts& /*costs*/) {
        return plain<at(TimeRow::kCommunication)>(
            times, "waited in collectives",
            "raise batch.accumulate, compress gradients (compress), synchronize less often (sync) "
            "or look for a slow rank in `scaletrain watch`");
      }},
     {at(TimeRow::kOptimizer),
      [](const RunTimes& times, const RunCosts& /*costs*/) {
        return plain<at(TimeRow::kOptimizer)>(
            times, "updated weights",
            "raise batch.accumulate or shard the optimizer (parallel.shard)");
      }},
     {at(TimeRow::kEvaluation),
      [](const RunTimes& times, const RunCosts& /*costs*/) {
        return plain<at(TimeRow::kEvaluation)>(
            times, "evaluated", "validate less often (validate.every) or on a smaller set");
      }},
     {at(TimeRow::kCheckpoint), checkpoint_stall},
     {kRestartRow,
      [](const RunTimes& times, const RunCosts& /*costs*/) {
        return plain<kRestartRow>(
            times, "restarted",
            "find the cause of the failures (`scaletrain explain run`) and keep peer checkpoints "
            "(checkpoint.replicate)");
      }},
     {kLostRow, [](const RunTimes& times, const RunCosts& /*costs*/) {
        return plain<kLostRow>(times, "did steps again after failures",
                               "save more often (checkpoint.every, or \"auto\")");
      }}}};

// Share of the optimizer's time that is normal: every step needs an update.
constexpr double kUsualOptimizer = 0.2;

bool is_cause(const RunTimes& times, std::size_t row) {
  const double least = row == at(TimeRow::kOptimizer) ? kUsualOptimizer : kLeastShare;
  return times.share(row) >= least;
}

}  // namespace

std::vector<SlowCause> slow_causes(const RunTimes& times, const RunCosts& costs) {
  std::vector<SlowCause> causes;
  for (const Remedy& remedy : remedies) {
    if (is_cause(times, remedy.row)) causes.push_back({remedy.row, remedy.text(times, costs)});
  }
  std::stable_sort(causes.begin(), causes.end(), [&](const SlowCause& a, const SlowCause& b) {
    return times.seconds[a.row] > times.seconds[b.row];
  });
  if (causes.size() > kMostCauses) causes.resize(kMostCauses);
  return causes;
}

bool is_long_enough(const RunTimes& times) { return times.wall_s >= kLeastSeconds; }

}  // namespace scaletrain::observe
