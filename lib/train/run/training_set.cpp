#include "lib/train/run/training_set.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/core/log.h"
#include "lib/core/text/text.h"
#include "lib/data/set/set_digest.h"
#include "lib/train/rules/agreement.h"

namespace scaletrain::train {
namespace {

using Numbers = std::vector<std::int64_t>;

// Returns the elementwise maximum over the ranks.
Numbers highest(dist::Group& group, const Numbers& own, const char* name) {
  at::Tensor numbers = at::empty({static_cast<std::int64_t>(own.size())}, at::kLong);
  std::copy(own.begin(), own.end(), numbers.mutable_data_ptr<std::int64_t>());
  numbers = numbers.to(group.device());
  group.all_reduce_max(numbers, name).wait();
  numbers = group.to_host(numbers);
  const auto* const values = numbers.const_data_ptr<std::int64_t>();
  return {values, values + own.size()};
}

}  // namespace

TrainingSet::TrainingSet(const task::OpenSet& open, bool streamed, std::int64_t per_device)
    : set_(open.set), streamed_(streamed), per_device_(per_device), set_digest_(open.contents) {
  if (streamed_) return;
  samples_ = set_->size();
  index_digest_ = data::index_digest(*set_);
}

void TrainingSet::claim(std::vector<dist::Claim>& claims) const {
  claim_classes(claims, set_->classes());
  if (streamed_) return;
  claim_set(claims, "data.train", {.samples = samples_, .digest = index_digest_});
  claim_samples(claims, set_digest_);
}

void TrainingSet::describe(format::TrainState& state) const {
  state.set_samples = samples_;
  state.index_digest = index_digest_;
  state.set_digest = set_digest_;
  state.per_device = streamed_ ? per_device_ : 0;
  if (streamed_) return;
  state.shard_sizes.clear();
  state.shard_digests.clear();
}

void TrainingSet::gather(dist::Group& group, format::TrainState& state) const {
  if (!streamed_) return;
  state.shard_sizes = highest(group, set_->known_sizes(), "shard sizes");
  const Numbers own = set_->open_digests();
  const Numbers all = highest(group, own, "shard digests");
  state.shard_digests.resize(all.size(), -1);
  std::int64_t changed = 0;  // changed shards that this rank has not warned about
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int64_t& known = state.shard_digests[i];
    if (all[i] < 0) continue;
    if (known >= 0 && known != all[i] && own[i] < 0) ++changed;
    known = all[i];
  }
  if (changed > 0 && group.rank() == 0) {
    core::warn(
        "the resumed run is not bit for bit equal: {} that other ranks read {} other "
        "samples (their logs name them)",
        core::counted(changed, "shard"), changed == 1 ? "holds" : "hold");
  }
}

}  // namespace scaletrain::train
