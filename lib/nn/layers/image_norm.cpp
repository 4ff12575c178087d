#include "lib/nn/layers/image_norm.h"

#include "lib/nn/layers/group_norm.h"
#include "lib/nn/layers/sync_batch_norm.h"

namespace scaletrain::nn {

std::shared_ptr<ImageNorm> make_image_norm(const std::string& kind, std::int64_t channels,
                                           const BatchNorm::Options& options) {
  if (kind == "group") return std::make_shared<GroupNorm>(channels, options.eps);
  if (kind == "sync_batch") return std::make_shared<SyncBatchNorm>(channels, options);
  return std::make_shared<BatchNorm>(channels, options);
}

}  // namespace scaletrain::nn
