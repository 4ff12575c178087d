#include "lib/local_sgd/decoupled.h"

#include <utility>

namespace scaletrain::local_sgd {

void Decoupled::decouple(std::int64_t steps, const std::function<std::string()>& host,
                         const std::function<void()>& before) {
  if (before) before();
  steps_ = steps;
  std::string address;
  if (mesh_.rank() == 0) {
    const HubRanks ranks = hub_ranks(mesh_.plan());
    const std::string name = host();
    auto coordinator = make_coordinator(ranks);
    coordinator_ = coordinator.get();
    hub_ = std::make_unique<dist::Hub>(ranks.count(), std::move(coordinator), name);
    address = hub_->address(name);
  }
  address = mesh_.world().broadcast_text(address, 0, "address of the replica coordinator");
  link_ = std::make_unique<dist::HubLink>(address, hub_rank(mesh_.plan(), mesh_.rank()));
  join();
  mesh_.part_replicas();
}

}  // namespace scaletrain::local_sgd
