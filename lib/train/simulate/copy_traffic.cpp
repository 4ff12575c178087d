#include "lib/train/simulate/copy_traffic.h"

namespace scaletrain::train {

parallel::BucketBytes copy_traffic(const std::optional<recipe::Compress>& compress,
                                   const std::vector<CopyBucket>& buckets) {
  parallel::BucketBytes all;
  for (const CopyBucket& bucket : buckets) {
    parallel::BucketBytes one;
    if (!compress) {
      const auto element = static_cast<std::int64_t>(c10::elementSize(bucket.type));
      one = {.reduces = 1, .reduced = bucket.elements * element};
    } else if (!bucket.slots.empty()) {
      one = parallel::bucket_bytes(*compress, bucket.slots, bucket.elements);
    }
    all.reduces += one.reduces;
    all.reduced += one.reduced;
    all.gathers += one.gathers;
    all.gathered += one.gathered;
    all.unsent += one.unsent;
  }
  return all;
}

}  // namespace scaletrain::train
