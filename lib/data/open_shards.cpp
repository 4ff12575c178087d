#include "lib/data/open_shards.h"

#include <utility>

#include "lib/core/error.h"

namespace scaletrain::data {

OpenShards::OpenShards(std::vector<std::string> paths, std::size_t limit)
    : paths_(std::move(paths)), limit_(limit), open_(paths_.size()) {}

std::shared_ptr<const storage::Object> OpenShards::get(std::int64_t shard,
                                                       const storage::Identity& identity) const {
  const auto i = static_cast<std::size_t>(shard);
  const std::lock_guard lock(mutex_);
  if (open_[i]) return open_[i];
  std::shared_ptr<const storage::Object> object = storage::file_storage().open(paths_[i]);
  if (object->identity() != identity) {
    throw core::DataError(paths_[i], "is not the file that was indexed: its size or time changed",
                          "start again, and leave shards alone while they are read");
  }
  if (order_.size() == limit_) {
    open_[order_.front()].reset();  // whoever reads from it keeps it open until then
    order_.pop_front();
  }
  order_.push_back(i);
  return open_[i] = std::move(object);
}

}  // namespace scaletrain::data
