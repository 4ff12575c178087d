#include "lib/train/loop/histograms.h"

#include <ATen/Context.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/histc.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <tuple>
#include <utility>
#include <vector>

#include "lib/units/host_update.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kBuckets = 64;

std::vector<std::int64_t> bucket_counts(const at::Tensor& finite, double min, double max) {
  if (min == max) return {finite.numel()};
  // For CUDA, LibTorch has no deterministic kernel.
  const bool on_host = at::globalContext().deterministicAlgorithms();
  const at::Tensor source = on_host ? finite.to(at::kCPU) : finite;
  const at::Tensor counts = at::histc(source, kBuckets, min, max).to(at::kCPU);
  const double* const values = counts.const_data_ptr<double>();
  return {values, values + counts.numel()};
}

}  // namespace

observe::HistogramRecord histogram_of(const std::string& name, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  // Doubles: buckets count in the type of the values.
  const at::Tensor flat = values.detach().flatten().to(at::kDouble);
  const at::Tensor finite = flat.masked_select(flat.isfinite());
  observe::HistogramRecord record{
      .name = name, .not_finite = flat.numel() - finite.numel(), .counts = {}};
  if (finite.numel() == 0) return record;
  const auto [min, max] = at::aminmax(finite);
  record.min = min.item<double>();
  record.max = max.item<double>();
  record.sum = finite.sum().item<double>();
  record.sum_squares = finite.square().sum().item<double>();
  record.counts = bucket_counts(finite, record.min, record.max);
  return record;
}

HistogramWriter::HistogramWriter(const Run& run, const core::WorkerEnv& env)
    : run_(run), media_(run.recipe.output, env.attempt, run.housekeeping) {
  if (env.rank == 0 && run.recipe.log.histograms) {
    every_.emplace(*run.recipe.log.histograms, run.length);
  }
}

void HistogramWriter::look(std::int64_t step) {
  if (!every_ || !every_->due(step + 1, 0, 0)) return;
  try {
    write(step);
  } catch (const c10::Error& error) {  // no memory for the copy of a tensor
    run_.housekeeping->failed("/log/histograms", error.what_without_backtrace(),
                              "the run goes on without the histograms of that step");
  }
}

void HistogramWriter::write(std::int64_t step) {
  std::vector<observe::HistogramRecord> records;
  for (const units::NamedParameter& parameter : run_.engine->owned()) {
    if (parameter.on_host) parameter.on_host->wait();
    records.push_back(histogram_of("weights/" + parameter.name, parameter.tensor));
    const at::Tensor gradient = parameter.tensor.grad();
    if (gradient.defined())
      records.push_back(histogram_of("gradients/" + parameter.name, gradient));
  }
  media_.write(step + 1, records);
}

}  // namespace scaletrain::train
