#include "lib/track/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/text.h"

namespace scaletrain::track {

Exports::Exports(const std::vector<std::string>& names, ExportOptions options, Warn warn)
    : options_(std::move(options)), warn_(std::move(warn)) {
  for (const std::string& name : names) slots_.push_back({.row = &find_exporter(name)});
  for (Slot& slot : slots_) attempt(slot, [] {});
}

// Makes the exporter where it is not there, then calls `work`; false: one of both failed.
bool Exports::attempt(Slot& slot, const std::function<void()>& work) {
  try {
    if (!slot.exporter) slot.exporter = slot.row->make(options_);
    work();
    return true;
  } catch (const core::Error& error) {
    if (!std::exchange(slot.has_warned, true)) {
      warn_(fmt::format("export to {}: {}: {}; training goes on without it", slot.row->name,
                        error.place(), error.found()));
    }
  } catch (const std::exception& error) {
    if (!std::exchange(slot.has_warned, true)) {
      warn_(fmt::format("export to {}: {}; training goes on without it", slot.row->name,
                        core::describe(error)));
    }
  }
  return false;
}

void Exports::write(std::span<const Record> records) {
  const auto count = static_cast<std::int64_t>(records.size());
  records_ += count;
  for (Slot& slot : slots_) {
    if (!attempt(slot, [&] { slot.exporter->write(records); })) slot.lost += count;
  }
}

void Exports::write_picture(const Picture& picture) {
  for (Slot& slot : slots_) {
    if (!attempt(slot, [&] { slot.exporter->write_picture(picture); })) ++slot.lost;
  }
}

void Exports::write_histograms(const Histograms& histograms) {
  for (Slot& slot : slots_) {
    if (!attempt(slot, [&] { slot.exporter->write_histograms(histograms); })) ++slot.lost;
  }
}

void Exports::begin_again() {
  records_ = 0;
  for (Slot& slot : slots_) {
    slot.exporter.reset();
    slot.lost = 0;
  }
}

void Exports::finish() {
  for (Slot& slot : slots_) {
    attempt(slot, [&] { slot.exporter->finish(); });
  }
}

std::vector<int> Exports::sockets() const {
  std::vector<int> sockets;
  for (const Slot& slot : slots_) sockets.push_back(slot.exporter ? slot.exporter->socket() : -1);
  return sockets;
}

void Exports::serve(std::size_t index) {
  Slot& slot = slots_[index];
  if (slot.exporter) attempt(slot, [&] { slot.exporter->serve(); });
}

std::string Exports::summary() const {
  std::string names;
  for (const Slot& slot : slots_) {
    names += (names.empty() ? "" : ", ") + std::string(slot.row->name);
    if (slot.lost > 0) names += fmt::format(" ({} lost)", slot.lost);
  }
  return fmt::format("exported {} to {}", core::counted(records_, "record"), names);
}

bool Exports::lost_some() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.lost > 0; });
}

}  // namespace scaletrain::track
