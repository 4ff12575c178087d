#include "lib/track/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/core/text/text.h"
#include "lib/track/events/event_command.h"
#include "lib/track/events/webhook.h"

namespace scaletrain::track {
namespace {

using Line = nlohmann::ordered_json;

std::vector<Record> parse_records(const Line& line) {
  std::vector<Record> records;
  if (std::optional<Record> record = parse_record(line)) records.push_back(std::move(*record));
  return records;
}

std::unique_ptr<Feed> tracker_feed(const ExporterRow& row, const ExportOptions& options,
                                   const Exports::Warn& warn) {
  DeliveryOptions delivery{.what = fmt::format("export to {}", row.name),
                           .file = options.run / "metrics.jsonl",
                           .batch = row.batch,
                           .keeps = row.resumes,
                           .consequence = "training goes on without it",
                           .warn = warn};
  const auto make = [make = row.make, options] { return make(options); };
  return std::make_unique<Feed>(
      std::make_unique<SinkDelivery<Record>>(std::move(delivery), parse_records, make));
}

std::unique_ptr<Feed> receiver_feed(const std::string& name, const ExportOptions& options,
                                    const EventOptions& events, const Exports::Warn& warn,
                                    SinkDelivery<Event>::Make make) {
  DeliveryOptions delivery{.what = "events to " + name,
                           .file = options.run / "journal.jsonl",
                           .from = events.journal_from,
                           .batch = 1,
                           .consequence = "the event is lost, and training goes on",
                           .warn = warn};
  const auto parse = [run = options.name, names = events.names](const Line& line) {
    std::vector<Event> found = parse_events(line, run);
    std::erase_if(found, [&names](const Event& event) {
      return !names.empty() && std::find(names.begin(), names.end(), event.name) == names.end();
    });
    return found;
  };
  return std::make_unique<Feed>(
      std::make_unique<SinkDelivery<Event>>(std::move(delivery), parse, std::move(make)));
}

}  // namespace

Exports::Exports(const std::vector<std::string>& names, const ExportOptions& options,
                 const EventOptions& events, const Warn& warn) {
  std::vector<const ExporterRow*> rows;
  for (const std::string& name : names) rows.push_back(&find_exporter(name));
  for (const ExporterRow* row : rows) {
    trackers_.push_back({.name = std::string(row->name),
                         .resumes = row->resumes,
                         .feed = tracker_feed(*row, options, warn)});
  }
  const auto receive = [&](const char* name, SinkDelivery<Event>::Make make) {
    receivers_.push_back(
        {.name = name, .feed = receiver_feed(name, options, events, warn, std::move(make))});
  };
  if (!events.webhook.empty()) {
    receive("webhook", [setting = events.webhook] {
      return make_webhook(webhook_url(setting, storage::process_variables()));
    });
  }
  if (!events.command.empty()) {
    receive("on_event", [command = events.command] { return make_event_command(command); });
  }
}

bool Exports::finish(core::SteadyTime until) {
  for (const auto* slots : {&trackers_, &receivers_}) {
    for (const Slot& slot : *slots) slot.feed->end();
  }
  bool all = true;
  for (const auto* slots : {&trackers_, &receivers_}) {
    for (const Slot& slot : *slots) all = slot.feed->wait_until(until) && all;
  }
  return all;
}

std::int64_t Exports::missing(const Slot& slot) {
  const Delivery& delivery = slot.feed->delivery();
  return delivery.count() - delivery.written();
}

std::string Exports::line(const std::string& verb, const std::string& noun,
                          const std::vector<Slot>& slots) {
  std::string names;
  std::int64_t count = 0;
  for (const Slot& slot : slots) {
    count = std::max(count, slot.feed->delivery().count());
    names += (names.empty() ? "" : ", ") + slot.name;
    if (const std::int64_t left = missing(slot); left > 0) {
      names += fmt::format(" ({} {})", left, slot.resumes ? "unsent" : "lost");
    }
  }
  return fmt::format("{} {} to {}", verb, core::counted(count, noun), names);
}

std::vector<std::string> Exports::summary() const {
  std::vector<std::string> lines;
  if (!trackers_.empty()) lines.push_back(line("exported", "record", trackers_));
  if (!receivers_.empty()) lines.push_back(line("sent", "event", receivers_));
  return lines;
}

std::vector<std::string> Exports::unsent() const {
  std::vector<std::string> names;
  for (const Slot& slot : trackers_) {
    if (slot.resumes && missing(slot) > 0) names.push_back(slot.name);
  }
  return names;
}

bool Exports::lost_some() const {
  const auto is_short = [](const Slot& slot) { return missing(slot) > 0; };
  return std::any_of(trackers_.begin(), trackers_.end(), is_short) ||
         std::any_of(receivers_.begin(), receivers_.end(), is_short);
}

}  // namespace scaletrain::track
