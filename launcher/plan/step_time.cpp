#include "launcher/plan/step_time.h"

#include <algorithm>

namespace scaletrain::launcher {
namespace {

double ratio(double value, double speed) { return speed > 0 ? value / speed : 0; }

double seconds_of(const StepExchange& exchange, const DeviceSpeed& speed) {
  const LinkSpeed& link = exchange.between_nodes ? speed.between : speed.inside;
  return static_cast<double>(exchange.calls) * link.latency_s +
         ratio(exchange.sent_bytes, link.bytes_per_s);
}

}  // namespace

StepTime predict_step_time(const StepWork& work, const std::vector<StepExchange>& exchanges,
                           const DeviceSpeed& speed) {
  StepTime time{.forward = ratio(work.forward_flops, speed.flops_per_s),
                .backward = ratio(work.backward_flops, speed.flops_per_s),
                .optimizer = ratio(work.optimizer_bytes, speed.memory_bytes_per_s)};
  const double compute = time.forward + time.backward;
  time.idle = compute / (1 - work.idle_share) - compute;
  double hidden = 0, last_calls = 0;
  for (const StepExchange& one : exchanges) {
    if (one.calls == 0) continue;
    const double seconds = seconds_of(one, speed);
    time.communication += seconds;
    if (one.overlaps) {
      hidden += seconds;
      last_calls += seconds / static_cast<double>(one.calls);
    } else {
      time.exposed += seconds;
    }
  }
  time.exposed += std::max(last_calls, hidden - compute);
  return time;
}

}  // namespace scaletrain::launcher
