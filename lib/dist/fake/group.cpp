// Functions of dist::Group for a simulated job, of which one rank exists.
#include "lib/dist/group.h"

#include <numeric>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "lib/dist/collective_watch.h"
#include "lib/dist/fake/backend.h"

namespace scaletrain::dist {

using c10d::ProcessGroup;

Group::Group(std::shared_ptr<FakeNetwork> network, at::Device device)
    : rank_(network->job().rank),
      world_size_(network->job().world_size),
      job_rank_(rank_),
      device_(device),
      timeout_(0),
      fake_(std::move(network)),
      watch_(std::make_shared<CollectiveWatch>(
          CollectiveWatch::Options{.rank = rank_, .leave = [](const std::exception_ptr&) {}},
          beat_)) {
  if (world_size_ == 1) return;
  std::vector<int> ranks(static_cast<std::size_t>(world_size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  connect_fake(std::move(ranks), "job");
}

void Group::connect_fake(std::vector<int> ranks, const std::string& name) {
  exchange_ = "fake";
  process_group_ =
      c10::make_intrusive<ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), rank_, world_size_);
  process_group_->setGroupDesc(name);
  process_group_->setDefaultBackend(ProcessGroup::BackendType::CUSTOM);
  process_group_->setBackend(device_.type(), ProcessGroup::BackendType::CUSTOM,
                             c10::make_intrusive<FakeBackend>(fake_, std::move(ranks), rank_));
}

}  // namespace scaletrain::dist
