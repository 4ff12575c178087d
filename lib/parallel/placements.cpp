#include <utility>

#include "lib/parallel/data_parallel.h"
#include "lib/parallel/placement.h"
#include "lib/parallel/sharded.h"
#include "lib/parallel/stage_parallel.h"

namespace scaletrain::parallel {

const std::vector<units::NamedParameter>& Placement::sharded_parameters() const {
  static const std::vector<units::NamedParameter> none;
  return none;
}

core::GradientPeak Placement::gradient_peak(bool /*accumulates*/) const {
  std::int64_t bytes = 0;
  for (const units::NamedParameter& one : owned()) {
    bytes += static_cast<std::int64_t>(one.tensor.nbytes());
  }
  return core::bucketed_gradients(bytes);
}

std::unique_ptr<Placement> make_placement(std::vector<units::NamedParameter> parameters,
                                          const dist::Mesh& mesh, const ShardingOptions& sharding,
                                          const GradientExchange& exchange) {
  if (mesh.size(core::Axis::kShard) > 1) {
    return std::make_unique<Sharded>(std::move(parameters), mesh, sharding, exchange);
  }
  if (mesh.size(core::Axis::kPipe) > 1) {
    return std::make_unique<StageParallel>(std::move(parameters), mesh, exchange);
  }
  return std::make_unique<DataParallel>(std::move(parameters), mesh, exchange);
}

}  // namespace scaletrain::parallel
