#include "lib/local_sgd/hub_connection.h"

namespace scaletrain::local_sgd {

HubConnection::HubConnection(std::int64_t steps, const dist::Mesh& mesh, const std::string& host,
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

}  // namespace scaletrain::local_sgd
