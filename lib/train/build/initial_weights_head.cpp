#include "lib/train/build/initial_weights_head.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::train {
namespace {

// The tensors of the head that were taken from the weights.
NamedTensors taken_head(const Run& run, const checkpoint::WeightReport& report,
                        const NamedTensors& tensors) {
  NamedTensors head;
  const std::string prefix = run.learner.model->weight_rules().head + ".";
  for (const std::string& name : report.taken) {
    if (name.starts_with(prefix)) head.emplace(name, tensors.at(name));
  }
  return head;
}

// Returns the number in `theirs` of each class of `ours`; throws if one has a class that the other
// lacks.
std::vector<std::int64_t> rows_by_name(const format::ClassNames& ours,
                                       const format::ClassNames& theirs) {
  try {
    format::numbers_by_name(theirs.names, ours, theirs.owner);
    return format::numbers_by_name(ours.names, theirs, ours.owner);
  } catch (const core::DataError& error) {
    throw core::CheckpointError(
        error.place(), error.found(),
        fmt::format(
            "{} has {}: set /model/weights/new_head for other classes; where only the names "
            "differ, \"allow_other\": [\"class_names\"] takes the head by class numbers",
            ours.owner, format::shown_classes(ours.names)));
  }
}

}  // namespace

void match_head(const Run& run, const format::ClassNames& theirs,
                const checkpoint::WeightReport& report, const NamedTensors& tensors) {
  const NamedTensors head = taken_head(run, report, tensors);
  const format::ClassNames ours{run.sets.train.set->classes(), "data.train"};
  if (head.empty() || ours.names.empty() || theirs.names.empty() || ours.names == theirs.names) {
    return;
  }
  const std::vector<std::int64_t> by_name = rows_by_name(ours, theirs);
  // Names without a row: a sample of theirs is refused.
  if (std::ssize(by_name) > head.begin()->second.size(0)) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : head) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(tensor.size(0)));
    std::iota(rows.begin(), rows.end(), std::int64_t{0});  // classes without a name keep their rows
    std::copy(by_name.begin(), by_name.end(), rows.begin());
    tensor.copy_(tensor.index_select(0, at::tensor(rows).to(tensor.device())));
  }
  core::log("{}: the rows of its head are ordered by class name", theirs.owner);
}

}  // namespace scaletrain::train
