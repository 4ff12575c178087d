// Scores a prediction of `scaletrain plan` against a finished run, and keeps the scores of all runs
// on this machine.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::launcher {

struct ScoredValue {
  double predicted = 0, measured = 0;

  // Relative error of the prediction: 0.1 if it is 10 % too high.
  double error() const { return predicted / measured - 1; }
};

struct Score {
  std::string run, device;
  std::optional<ScoredValue> step_s{}, memory_bytes{}, seconds{};
};

nlohmann::ordered_json score_json(const Score& score);

// File of all scores, one JSON object a line: $XDG_STATE_HOME/scaletrain/plan_scores.jsonl.
// Returns "" without a home folder.
std::filesystem::path scores_file();

// Appends `line` to `file` in one write, so that jobs that end together do not mix. Makes the
// folder; only its owner may read a file that is made. Throws core::StorageError.
void append_private_line(const std::filesystem::path& file, const std::string& line);

// Appends `score` to `file` likewise.
void append_score(const std::filesystem::path& file, const Score& score);

// Reads `file`; skips lines that are damaged. A run that was scored again counts once, as scored
// last.
std::vector<Score> read_scores(const std::filesystem::path& file);

// Distribution of the errors of one value.
struct ErrorSpread {
  std::size_t count = 0;
  double median = 0;          // of the signed errors
  double half = 0, most = 0;  // half and nine tenths of the errors are at most so large
};

// nullopt for no errors.
std::optional<ErrorSpread> spread_of(std::vector<double> errors);

// A table by device and value.
std::string scores_text(const std::vector<Score>& scores);

}  // namespace scaletrain::launcher
