#include "lib/track/feed/source.h"

#include <nlohmann/json.hpp>

namespace scaletrain::track {

Source::Source(SourceOptions options)
    : options_(std::move(options)), lines_(options_.file, options_.from), offset_(options_.from) {}

bool Source::fill(const std::function<void()>& begin_again) {
  const auto restart = [&] {
    read_ = written_ = 0;
    begin_again();
  };
  bool has_lines = true;
  while (held_ == 0 && has_lines) {  // lines may have no items
    lines_.read(
        restart, [this](const nlohmann::ordered_json& line) { held_ += add(line); },
        options_.batch);
    has_lines = offset_.exchange(lines_.offset()) != lines_.offset();
    read_ += held_;
  }
  return held_ > 0;
}

void Source::settle(bool is_written) {
  if (is_written) written_ += held_;
  held_ = 0;
  clear();
}

void Source::rewind() {
  settle(false);
  read_ = written_ = 0;
  lines_ = observe::LineFollower(options_.file);
  offset_ = 0;
}

std::int64_t Source::count() const {
  std::int64_t count = read_;
  observe::LineFollower rest(options_.file, offset_);
  rest.read([] {}, [&](const nlohmann::ordered_json& line) { count += items_in(line); });
  return count;
}

}  // namespace scaletrain::track
