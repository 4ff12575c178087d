#include "launcher/workers/worker_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/core/line_start.h"

namespace scaletrain::launcher {

std::vector<core::Descriptor> WorkerOutput::attach(const WorkerPlan& plan,
                                                   core::SpawnRequest& request) {
  std::vector<core::Descriptor> child_ends;
  if (plan.standard_output.relayed) add(plan, /*is_error=*/false, request, child_ends);
  if (plan.standard_error.relayed) add(plan, /*is_error=*/true, request, child_ends);
  shares_error_stream_ |= plan.standard_output.unseen && output_.console.is_error_stream();
  return child_ends;
}

void WorkerOutput::add(const WorkerPlan& plan, bool is_error, core::SpawnRequest& request,
                       std::vector<core::Descriptor>& child_ends) {
  const StreamPlan& stream = is_error ? plan.standard_error : plan.standard_output;
  core::Pipe pipe = core::make_pipe();
  fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  request.descriptors.emplace_back(pipe.write.get(), is_error ? STDERR_FILENO : STDOUT_FILENO);
  child_ends.push_back(std::move(pipe.write));
  relays_.push_back(
      {.local_rank = plan.local_rank,
       .is_error = is_error,
       .relay = OutputRelay(std::move(pipe.read), (is_error ? error_ : output_).console,
                            LogFile(stream.copy), stream.prefix,
                            LineFilter(LogFile(stream.filtered), stream.wanted, stream.prefix))});
}

void WorkerOutput::watch(std::vector<pollfd>& watched) const {
  watched.reserve(watched.size() + relays_.size());
  for (const Relay& one : relays_) {
    watched.push_back(
        {.fd = one.relay.watched_fd(), .events = one.relay.watched_events(), .revents = 0});
  }
}

void WorkerOutput::advance(std::span<const pollfd> watched) {
  for (std::size_t i = 0; i < relays_.size(); ++i) {
    if (watched[i].revents != 0) relays_[i].relay.advance();
  }
}

void WorkerOutput::show_late(core::SteadyTime now) {
  for (Relay& one : relays_) one.relay.show_late(now);
}

std::optional<core::SteadyTime> WorkerOutput::late_at() const {
  std::optional<core::SteadyTime> first;
  for (const Relay& one : relays_) {
    const std::optional<core::SteadyTime> late = one.relay.late_at();
    if (late && (!first || *late < *first)) first = late;
  }
  return first;
}

void WorkerOutput::begin_patience(core::SteadyTime now) {
  next_look_ = now + kConsolePatience;
  for (Shared* const shared : {&output_, &error_}) shared->taken = shared->console.taken();
}

void WorkerOutput::look(core::SteadyTime now) {
  if (!next_look_ || now < *next_look_) return;
  next_look_ = now + kConsolePatience;
  for (Shared* const shared : {&output_, &error_}) {
    const std::size_t before = std::exchange(shared->taken, shared->console.taken());
    if (shared->taken == before && is_awaited(shared->console)) shared->console.give_up();
  }
}

bool WorkerOutput::is_awaited(const core::Console& console) const {
  return std::any_of(relays_.begin(), relays_.end(),
                     [&](const Relay& one) { return one.relay.late_console() == &console; });
}

void WorkerOutput::finish() {
  for (Relay& one : relays_) one.relay.finish();
  if (shares_error_stream_) core::suspect_error_stream();
}

std::vector<std::string> WorkerOutput::last_lines(int local_rank) const {
  for (const Relay& one : relays_) {
    if (one.local_rank == local_rank && one.is_error) return one.relay.last_lines();
  }
  return {};
}

}  // namespace scaletrain::launcher
