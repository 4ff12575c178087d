#include "lib/dist/device_time_marks.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <deque>
#include <utility>
#include <vector>

namespace scaletrain::dist {
namespace {

constexpr double kMsPerSecond = 1000;

class EventMarks : public core::TimeMarks {
 public:
  explicit EventMarks(c10::Device device) : device_(device), guard_(device.type()) {
    guard_.synchronizeDevice(device.index());
  }

  void place() override {
    c10::Event event = free_event();
    event.record(guard_.getStream(device_));
    placed_.push_back(std::move(event));
  }

  std::optional<double> next(bool waits) override {
    if (placed_.size() < 2) return std::nullopt;
    if (waits) placed_[1].synchronize();
    if (!placed_[1].query()) return std::nullopt;
    const double seconds = placed_[0].elapsedTime(placed_[1]) / kMsPerSecond;
    free_.push_back(std::move(placed_.front()));
    placed_.pop_front();
    return seconds;
  }

 private:
  c10::Event free_event() {
    // The default of a backend measures time, unlike that of PyTorch.
    if (free_.empty()) return {device_.type(), c10::EventFlag::BACKEND_DEFAULT};
    c10::Event event = std::move(free_.back());
    free_.pop_back();
    return event;
  }

  const c10::Device device_;
  const c10::impl::VirtualGuardImpl guard_;
  std::deque<c10::Event> placed_;
  std::vector<c10::Event> free_;  // events that were read
};

}  // namespace

std::unique_ptr<core::TimeMarks> make_time_marks(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  return std::make_unique<EventMarks>(device);
}

}  // namespace scaletrain::dist
