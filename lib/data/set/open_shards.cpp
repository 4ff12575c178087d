#include "lib/data/set/open_shards.h"

#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/url.h"

namespace scaletrain::data {

OpenShards::OpenShards(std::shared_ptr<const storage::Stores> stores,
                       std::vector<std::string> paths, std::size_t limit)
    : stores_(std::move(stores)), paths_(std::move(paths)), limit_(limit), open_(paths_.size()) {}

std::shared_ptr<const storage::Object> OpenShards::get(std::int64_t shard,
                                                       const storage::Identity& identity) const {
  const auto i = static_cast<std::size_t>(shard);
  {
    const std::lock_guard lock(mutex_);
    if (open_[i]) return open_[i];
  }
  // Opened without the lock, since a remote shard may have to be downloaded.
  std::shared_ptr<const storage::Object> object = stores_->open(paths_[i]);
  if (object->identity() != identity) {
    throw core::DataError(core::shown_path(paths_[i]),
                          "is not the file that was indexed: its size or time changed",
                          "start again, and do not change shards while they are read");
  }
  const std::lock_guard lock(mutex_);
  if (open_[i]) return open_[i];
  if (order_.size() == limit_) {
    open_[order_.front()].reset();  // a reader of the shard keeps it open until it is done
    order_.pop_front();
  }
  order_.push_back(i);
  return open_[i] = std::move(object);
}

}  // namespace scaletrain::data
