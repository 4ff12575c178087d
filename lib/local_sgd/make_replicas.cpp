#include "lib/local_sgd/make_replicas.h"

#include <utility>

#include "lib/local_sgd/async_replicas.h"
#include "lib/local_sgd/decoupled_diloco.h"

namespace scaletrain::local_sgd {

std::unique_ptr<Replicas> make_replicas(LocalSgdOptions options,
                                        const std::vector<units::NamedParameter>& parameters,
                                        const Fragments& fragments, dist::Mesh& mesh,
                                        bool decoupled) {
  const std::string name = options.sync.name;
  if (name == "every_step") return std::make_unique<Replicas>();
  if (!decoupled || mesh.plan().model_copies() == 1) {
    return std::make_unique<WeightSync>(std::move(options), parameters, fragments, mesh);
  }
  if (name == "async") {
    return std::make_unique<AsyncReplicas>(std::move(options), parameters, fragments, mesh);
  }
  return std::make_unique<DecoupledDiloco>(std::move(options), parameters, fragments, mesh);
}

}  // namespace scaletrain::local_sgd
