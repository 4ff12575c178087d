#include "lib/train/loop/trace_requests.h"

#include <utility>

#include "lib/format/checkpoint/run_requests.h"

namespace scaletrain::train {
namespace {

constexpr double kRequestsEvery = 1;  // seconds

}  // namespace

TraceRequests::TraceRequests(std::filesystem::path run, bool leads)
    : run_(std::move(run)), leads_(leads) {}

std::int64_t TraceRequests::take() {
  if (!leads_ || core::seconds_since(looked_) < kRequestsEvery) return 0;
  looked_ = core::now();
  return format::take_trace_request(run_).value_or(0);
}

}  // namespace scaletrain::train
