#include "lib/parallel/compress/hook.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include "lib/core/process/time_ledger.h"

namespace scaletrain::parallel {
namespace {

c10::intrusive_ptr<c10::ivalue::Future> future_of(const at::Tensor& flat) {
  std::vector<at::Device> devices;
  if (!flat.is_cpu()) devices.push_back(flat.device());
  return c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get(), std::move(devices));
}

}  // namespace

c10::intrusive_ptr<c10::ivalue::Future> ExchangeHook::runHook(c10d::GradBucket& bucket) {
  const BucketExchanges& exchanges = *state_->now;
  const std::size_t index = bucket.getIndex();
  if (index == 0) under_way_.clear();  // drops buckets of the previous step
  const at::Tensor& flat = bucket.getBufferRef();
  under_way_.push_back({flat, future_of(flat)});
  const c10::intrusive_ptr<c10::ivalue::Future> own = under_way_.back().done;
  exchanges[index]->begin(flat);
  if (index > 0) exchanges[index - 1]->go_on();
  if (!bucket.isLast()) return own;
  // No computation is left to overlap with.
  const core::TimeScope time(core::TimeRow::kCommunication);
  exchanges[index]->go_on();
  for (std::size_t i = 0; i < under_way_.size(); ++i) {
    exchanges[i]->finish();
    under_way_[i].done->markCompleted(under_way_[i].flat);
  }
  return own;
}

}  // namespace scaletrain::parallel
