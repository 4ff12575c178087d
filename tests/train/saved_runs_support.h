// Runs of several ranks in a folder of their own, and what they leave there: checkpoints, metrics.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/checkpoint/tensors.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::testing {

// Who runs: so many ranks, and what each does first.
struct RunBy {
  int ranks = 3;
  std::function<void(int rank)> before = [](int) {};
};

// By step, as metrics.jsonl has them; the losses of validations behind them, by split.
struct RunCourse {
  std::vector<double> losses = {}, norms = {};
  std::vector<std::string> order_digests = {};
  std::map<std::string, std::vector<double>> validated = {};
};

class SavedRuns {
 public:
  // `changes` of all runs, as --set takes them.
  explicit SavedRuns(std::vector<std::string> changes) : changes_(std::move(changes)) {}

  recipe::Recipe recipe(const std::string& output, const std::vector<std::string>& more = {}) const;
  std::string path(const std::string& name) const { return tiny_.path(name); }

  // Of each rank "code 0 after step 8", with what it warned of.
  static std::vector<RankResult> run(const recipe::Recipe& asked, const RunBy& by = {},
                                     const std::optional<std::filesystem::path>& resume = {});

  std::filesystem::path saved(const std::string& output, std::int64_t step) const;
  nlohmann::json state(const std::string& output, std::int64_t step) const;
  // Of a checkpoint the bytes of its safetensors files.
  std::map<std::string, std::string> bytes(const std::string& output, std::int64_t step) const;
  // Whole tensors of such a file, however it was written.
  checkpoint::Tensors tensors(const std::string& output, std::int64_t step, const char* file) const;
  RunCourse course(const std::string& output) const;

 private:
  TinyRun tiny_;
  std::vector<std::string> changes_;
};

// "" where both have the same tensors, to `most` of each one's largest value.
std::string tensors_apart(const checkpoint::Tensors& found, const checkpoint::Tensors& expected,
                          double most);

// The largest share by which one of `a` differs from that of `b`; 1 where they are not as many.
double largest_apart(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace scaletrain::testing
