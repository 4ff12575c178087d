#include "lib/train/loop/histograms.h"

#include <ATen/Context.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/histc.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "lib/core/error.h"
#include "lib/units/host_update.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kBuckets = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum SumColumn { kSum, kSumSquares, kNotFinite, kCount, kSumColumns };
enum EndColumn { kNegatedMin, kMax, kEndColumns };

// Doubles: sums and buckets count in the type of the values.
at::Tensor finite_of(const at::Tensor& values) {
  const at::Tensor flat = values.detach().flatten().to(at::kDouble);
  return flat.masked_select(flat.isfinite());
}

at::Tensor bucket_counts(const at::Tensor& finite, double min, double max) {
  // For CUDA, LibTorch has no deterministic kernel.
  const bool on_host = at::globalContext().deterministicAlgorithms();
  const at::Tensor source = on_host ? finite.to(at::kCPU) : finite;
  return at::histc(source, kBuckets, min, max).to(at::kCPU);
}

// The histograms of several ranks, from their local values.
class Merger {
 public:
  Merger(const std::vector<std::string>& names, const std::vector<LocalValues>& local,
         dist::Group& group)
      : names_(names), local_(local), group_(group) {
    for (const std::string& name : names) rows_.emplace(name, std::ssize(rows_));
  }

  std::vector<observe::HistogramRecord> merge() {
    measure();
    count();
    std::vector<observe::HistogramRecord> records;
    for (std::int64_t row = 0; row < std::ssize(names_); ++row) {
      if (cell(sums_, row, kCount) + cell(sums_, row, kNotFinite) > 0)
        records.push_back(record(row));
    }
    return records;
  }

 private:
  static double& cell(at::Tensor& table, std::int64_t row, std::int64_t column) {
    return table.mutable_data_ptr<double>()[row * table.size(1) + column];
  }

  at::Tensor table(std::int64_t columns, double value) const {
    return at::full({std::ssize(names_) + 1, columns}, value, at::kDouble);
  }

  // Finds the range and the sums of each tensor.
  void measure() {
    sums_ = table(kSumColumns, 0);
    ends_ = table(kEndColumns, -kInfinity);
    try_on_all(sums_, [this](std::int64_t row, const at::Tensor& values) {
      const at::Tensor finite = finite_of(values);
      cell(sums_, row, kNotFinite) += static_cast<double>(values.numel() - finite.numel());
      if (finite.numel() == 0) return;
      const auto [min, max] = at::aminmax(finite);
      cell(ends_, row, kNegatedMin) = std::max(cell(ends_, row, kNegatedMin), -min.item<double>());
      cell(ends_, row, kMax) = std::max(cell(ends_, row, kMax), max.item<double>());
      cell(sums_, row, kSum) += finite.sum().item<double>();
      cell(sums_, row, kSumSquares) += finite.square().sum().item<double>();
      cell(sums_, row, kCount) += static_cast<double>(finite.numel());
    });
    ends_ = ends_.to(group_.device());
    group_.all_reduce_max(ends_, "ranges of the histograms").wait();
    ends_ = group_.to_host(ends_);
  }

  // Counts the values in the buckets of the common range.
  void count() {
    counts_ = table(kBuckets, 0);
    try_on_all(counts_, [this](std::int64_t row, const at::Tensor& values) {
      if (min_of(row) == cell(ends_, row, kMax) || values.numel() == 0) return;
      const at::Tensor finite = finite_of(values);
      if (finite.numel() > 0) {
        counts_.select(0, row).add_(bucket_counts(finite, min_of(row), cell(ends_, row, kMax)));
      }
    });
  }

  double min_of(std::int64_t row) { return -cell(ends_, row, kNegatedMin); }

  // Calls `work` for the local values and sums `numbers` over the ranks. A rank that fails stays in
  // step with the others: the last row has the number of such ranks.
  void try_on_all(at::Tensor& numbers,
                  const std::function<void(std::int64_t row, const at::Tensor& values)>& work) {
    std::string failure;
    try {
      for (const LocalValues& one : local_) work(rows_.at(one.name), one.values);
    } catch (const c10::Error& error) {
      failure = error.what_without_backtrace();
    }
    const std::int64_t last = std::ssize(names_);
    cell(numbers, last, 0) = failure.empty() ? 0 : 1;
    numbers = numbers.to(group_.device());
    group_.all_reduce_sum(numbers, "histograms").wait();
    numbers = group_.to_host(numbers);
    if (cell(numbers, last, 0) == 0) return;
    throw core::OutOfMemoryError(
        fmt::format("rank {}", group_.job_rank()),
        failure.empty() ? "another rank could not copy a tensor for its histogram" : failure,
        "leave /log/histograms out");
  }

  observe::HistogramRecord record(std::int64_t row) {
    observe::HistogramRecord record{
        .name = names_[static_cast<std::size_t>(row)],
        .not_finite = static_cast<std::int64_t>(cell(sums_, row, kNotFinite)),
        .counts = {}};
    const auto count = static_cast<std::int64_t>(cell(sums_, row, kCount));
    if (count == 0) return record;
    record.min = min_of(row);
    record.max = cell(ends_, row, kMax);
    record.sum = cell(sums_, row, kSum);
    record.sum_squares = cell(sums_, row, kSumSquares);
    const double* const counts = &cell(counts_, row, 0);
    record.counts = {count};
    if (record.min < record.max) record.counts.assign(counts, counts + kBuckets);
    return record;
  }

  const std::vector<std::string>& names_;
  const std::vector<LocalValues>& local_;
  dist::Group& group_;
  std::map<std::string, std::int64_t> rows_;  // by name
  at::Tensor sums_, ends_, counts_;           // a row for each name; CPU memory
};

}  // namespace

std::vector<observe::HistogramRecord> histograms_of(const std::vector<std::string>& names,
                                                    const std::vector<LocalValues>& local,
                                                    dist::Group& group) {
  const at::NoGradGuard no_grad;
  return Merger(names, local, group).merge();
}

HistogramWriter::HistogramWriter(const Run& run, const core::WorkerEnv& env)
    : run_(run), writes_(env.rank == 0), media_(run.recipe.output, env.attempt, run.housekeeping) {
  const bool is_with_rank_0 = run.mesh->plan().model_group(run.mesh->rank()).front() == 0;
  if (is_with_rank_0 && run.recipe.log.histograms) {
    every_.emplace(*run.recipe.log.histograms, run.length);
  }
}

void HistogramWriter::look(std::int64_t step) {
  if (!every_ || !every_->due(step + 1, 0, 0)) return;
  try {
    write(step);
  } catch (const core::OutOfMemoryError& error) {
    if (!writes_) return;
    run_.housekeeping->failed("/log/histograms", error.found(),
                              "the run goes on without the histograms of that step");
  }
}

void HistogramWriter::write(std::int64_t step) {
  std::vector<std::string> names;
  for (const auto& item : run_.learner.model->named_parameters()) {
    for (const char* kind : {"weights/", "gradients/"}) names.push_back(kind + item.key());
  }
  std::vector<LocalValues> local;
  for (const units::NamedParameter& parameter : run_.engine->owned()) {
    if (!parameter.counts) continue;
    if (parameter.on_host) parameter.on_host->wait();
    local.push_back({.name = "weights/" + parameter.name, .values = parameter.tensor});
    const at::Tensor gradient = parameter.tensor.grad();
    if (gradient.defined()) local.push_back({"gradients/" + parameter.name, gradient});
  }
  const auto records = histograms_of(names, local, run_.mesh->model());
  if (writes_) media_.write(step + 1, records);
}

}  // namespace scaletrain::train
