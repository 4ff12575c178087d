// How a group's communicator ends.
#include <future>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "lib/core/log.h"
#include "lib/dist/collective_watch.h"
#include "lib/dist/group.h"

namespace scaletrain::dist {
namespace {

constexpr std::chrono::seconds kShutDownLimit{30};

}  // namespace

void Group::go_alone(const char* name) {
  if (world_size_ == 1) return;
  barrier(name);
  shut_down();
  if (watch_) watch_->remove_abort(this);
  process_group_.reset();
  store_.reset();
  world_size_ = 1;
  exchange_.clear();
}

void Group::go_with(const std::vector<int>& ranks, const std::string& name) {
  Group part(*this, ranks, name);
  go_alone(name.c_str());
  rank_ = part.rank_;
  world_size_ = part.world_size_;
  if (world_size_ == 1) return;
  exchange_ = part.exchange_;
  store_ = part.store_;
  process_group_ = part.process_group_;
  watch_->add_abort(this, [group = process_group_] { group->abort(); });
}

void Group::end(const char* name) {
  barrier(name);
  shut_down();
}

void Group::shut_down() {
  if (!process_group_) return;
  std::packaged_task<void()> task([group = process_group_] { group->shutdown(); });
  const std::future<void> done = task.get_future();
  std::thread thread(std::move(task));
  if (done.wait_for(kShutDownLimit) == std::future_status::ready) {
    thread.join();
  } else {
    core::warn("the communicator was not shut down within {} s", kShutDownLimit.count());
    thread.detach();  // it ends with the process
  }
}

}  // namespace scaletrain::dist
