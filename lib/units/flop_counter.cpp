#include "lib/units/flop_counter.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "lib/units/operation_flops.h"

namespace scaletrain::units {
namespace {

thread_local FlopPass current = FlopPass::kForward;
thread_local int counted_depth = 0;  // operations that run inside a counted one are part of it
thread_local bool counts_thread = false;
thread_local PassFlops of_thread;

std::atomic<bool> counts_all = false;
std::mutex all_mutex;
PassFlops of_all;  // guarded by all_mutex

struct Operation : at::ObserverContext {
  bool is_counted = false, is_node = false;
  FlopPass before = FlopPass::kForward;  // if it is a node
};

void add_to(PassFlops& sums, const Flops& flops) {
  switch (current) {
    case FlopPass::kForward:
      sums.forward += flops;
      break;
    case FlopPass::kBackward:
      sums.backward += flops;
      break;
    case FlopPass::kRecomputed:
      sums.recomputed += flops;
      break;
    case FlopPass::kNone:
      break;
  }
}

void add(const Flops& flops) {
  if (counts_thread) return add_to(of_thread, flops);
  const std::lock_guard lock(all_mutex);
  add_to(of_all, flops);
}

std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& function) {
  auto operation = std::make_unique<Operation>();
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    operation->is_node = true;
    operation->before = std::exchange(current, FlopPass::kBackward);
    return operation;
  }
  if (counted_depth == 0) {
    const std::optional<Flops> flops = flops_of(function);
    if (!flops) return operation;
    add(*flops);
  }
  operation->is_counted = true;
  ++counted_depth;
  return operation;
}

void end(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  const auto* const operation = dynamic_cast<const Operation*>(context);
  if (operation == nullptr) return;
  if (operation->is_node) current = operation->before;
  if (operation->is_counted) --counted_depth;
}

at::RecordFunctionCallback callback() {
  return at::RecordFunctionCallback(start, end)
      .needsInputs(true)
      .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION});
}

PassFlops sums_of(FlopCounter::Threads threads) {
  if (threads == FlopCounter::Threads::kThis) return of_thread;
  const std::lock_guard lock(all_mutex);
  return of_all;
}

}  // namespace

FlopPassScope::FlopPassScope(FlopPass pass) : before_(std::exchange(current, pass)) {}

FlopPassScope::~FlopPassScope() { current = before_; }

void announce_flops(const Flops& flops) {
  if (counted_depth > 0 || !(counts_thread || counts_all.load(std::memory_order_relaxed))) return;
  add(flops);
}

FlopCounter::FlopCounter(Threads threads)
    : threads_(threads),
      handle_(threads == Threads::kThis ? at::addThreadLocalCallback(callback())
                                        : at::addGlobalCallback(callback())),
      start_(sums_of(threads)) {
  if (threads == Threads::kThis) {
    counts_thread = true;
  } else {
    counts_all = true;
  }
}

FlopCounter::~FlopCounter() {
  if (threads_ == Threads::kThis) {
    counts_thread = false;
  } else {
    counts_all = false;
  }
  at::removeCallback(handle_);
}

PassFlops FlopCounter::count() const { return sums_of(threads_) - start_; }

}  // namespace scaletrain::units
