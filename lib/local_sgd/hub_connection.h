// A rank's connection to the replica coordinator, which runs on rank 0 of the job.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/dist/hub/hub.h"
#include "lib/dist/mesh.h"
#include "lib/local_sgd/hub_ranks.h"
#include "lib/local_sgd/membership.h"

namespace scaletrain::local_sgd {

struct HubConnection {
  // Creates the coordinator's rules, on rank 0 only.
  using MakeRules =
      std::function<std::unique_ptr<dist::HubRules>(const std::shared_ptr<Membership>&)>;

  // `steps` of training are done. Rank 0 opens the hub at `host`. Collective over `mesh`.
  HubConnection(std::int64_t steps, const dist::Mesh& mesh, const std::string& host,
                const MakeRules& make_rules)
      : ranks(hub_ranks(mesh.plan())),
        rank(hub_rank(mesh.plan(), mesh.rank())),
        membership(std::make_shared<Membership>(ranks.replicas, steps)) {
    std::string address;
    if (mesh.rank() == 0) {
      hub = std::make_unique<dist::Hub>(ranks.count(), make_rules(membership), host);
      address = hub->address(host);
    }
    address = mesh.world().broadcast_text(address, 0, "address of the replica coordinator");
    link = std::make_unique<dist::HubLink>(address, rank);
  }

  bool hosts() const { return hub != nullptr; }  // true on rank 0
  int replica() const { return ranks.replica(rank); }

  HubRanks ranks;
  int rank;                                // at the hub
  std::shared_ptr<Membership> membership;  // up to date on rank 0 only
  std::unique_ptr<dist::Hub> hub;          // rank 0 only
  std::unique_ptr<dist::HubLink> link;
};

}  // namespace scaletrain::local_sgd
