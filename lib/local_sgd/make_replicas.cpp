#include "lib/local_sgd/make_replicas.h"

#include <utility>

#include "lib/local_sgd/async_replicas.h"
#include "lib/local_sgd/decoupled_diloco.h"

namespace scaletrain::local_sgd {

std::unique_ptr<Replicas> make_replicas(LocalSgdOptions options,
                                        const std::vector<units::NamedParameter>& parameters,
                                        const Fragments& fragments, dist::Mesh& mesh) {
  if (!options.sync.is_rare()) return std::make_unique<Replicas>();
  options.decoupled = options.decoupled && mesh.plan().model_copies() > 1;
  if (!options.decoupled) {
    return std::make_unique<WeightSync>(std::move(options), parameters, fragments, mesh);
  }
  if (options.sync.is_async()) {
    return std::make_unique<AsyncReplicas>(std::move(options), parameters, fragments, mesh);
  }
  return std::make_unique<DecoupledDiloco>(std::move(options), parameters, fragments, mesh);
}

}  // namespace scaletrain::local_sgd
