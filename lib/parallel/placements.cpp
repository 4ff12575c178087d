#include <utility>

#include "lib/parallel/data_parallel.h"
#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

std::unique_ptr<Placement> make_placement(std::vector<units::NamedParameter> parameters,
                                          const dist::Mesh& mesh,
                                          const GradientExchange& exchange) {
  return std::make_unique<DataParallel>(std::move(parameters), mesh, exchange);
}

}  // namespace scaletrain::parallel
