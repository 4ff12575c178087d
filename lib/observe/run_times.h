// Where the time of a run went, over all attempts: the ledger lines of metrics.jsonl together with
// the starts and failures of journal.jsonl.
//
// The wall time of an attempt lasts from the launcher's start of the workers to the last record or
// the failure. Between attempts of one job the time is that of the restart; between a job and the
// one that resumes it later, nobody waited, and the time is not counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "lib/core/process/time_ledger.h"

namespace scaletrain::observe {

// Rows of a run: those of core::TimeRow, then these.
inline constexpr std::size_t kRestartRow = core::kTimeRows;   // from a failure to the next step
inline constexpr std::size_t kLostRow = core::kTimeRows + 1;  // steps that an attempt did again
inline constexpr std::size_t kRunRows = core::kTimeRows + 2;

// Name of a row for programs, "data_wait", and for a person, "data wait".
std::string_view row_name(std::size_t row);
std::string_view row_label(std::size_t row);

struct RunTimes {
  std::array<double, kRunRows> seconds{};
  double wall_s = 0;  // of all attempts; the rows sum to it
  int attempts = 0;
  double slowest_rank_s = 0;  // time by which the slowest rank was slower than the second slowest

  double of(core::TimeRow row) const { return seconds[static_cast<std::size_t>(row)]; }
  double share(std::size_t row) const { return wall_s > 0 ? seconds.at(row) / wall_s : 0; }
  // Time of the steps that count, divided by the wall time of all attempts.
  double goodput() const;
  // Wall time of the run without data wait, without exposed communication, or if its slowest rank
  // were as fast as the next one.
  double without_data_wait_s() const { return wall_s - of(core::TimeRow::kDataWait); }
  double without_communication_s() const { return wall_s - of(core::TimeRow::kCommunication); }
  double without_slowest_rank_s() const { return wall_s - slowest_rank_s; }
};

// `ledger`: the lines of metrics.jsonl whose event is "ledger", in their order. `journal`: the
// lines of journal.jsonl. All 0 if `ledger` is empty.
RunTimes run_times(const std::vector<nlohmann::ordered_json>& ledger,
                   const std::vector<nlohmann::ordered_json>& journal);

// Reads the files of the run's folder. Lines that do not parse are left out.
RunTimes read_run_times(const std::filesystem::path& run);

}  // namespace scaletrain::observe
