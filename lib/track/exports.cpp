#include "lib/track/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/core/text/text.h"
#include "lib/track/events/event_command.h"
#include "lib/track/events/webhook.h"

namespace scaletrain::track {
namespace {

using Line = nlohmann::ordered_json;
using EventDelivery = SinkDelivery<Sink<Event>>;

constexpr std::size_t kMediaBatch = 1;  // a picture that cannot be exported loses no other one

// Adapts a function that finds at most one item on a line.
template <class Item>
typename ItemSource<Item>::Parse parse_with(std::optional<Item> (*parse)(const Line& line)) {
  return [parse](const Line& line) {
    std::vector<Item> items;
    if (std::optional<Item> item = parse(line)) items.push_back(std::move(*item));
    return items;
  };
}

// " (44 lost, 3 pictures lost)", or "" if nothing is missing. Items of the first file are those
// that the line counts.
std::string missing_text(const std::vector<Shortfall>& missing, std::string_view state) {
  std::string text;
  for (const Shortfall& one : missing) {
    text += fmt::format(
        "{}{} {}", text.empty() ? " (" : ", ",
        one.is_first ? fmt::to_string(one.count) : core::counted(one.count, one.noun), state);
  }
  return text.empty() ? text : text + ")";
}

std::unique_ptr<Feed> tracker_feed(const ExporterRow& row, const ExportOptions& options,
                                   const Exports::Warn& warn) {
  auto delivery = std::make_unique<SinkDelivery<Exporter>>(
      DeliveryOptions{.what = fmt::format("export to {}", row.name),
                      .keeps = row.resumes,
                      .consequence = "training goes on without it",
                      .warn = warn},
      [make = row.make, options] { return make(options); });
  delivery->follow<Record>({.file = options.run / "metrics.jsonl", .batch = row.batch},
                           parse_with(parse_record), &Exporter::write);
  if (row.shows_media) {
    delivery->follow<Picture>(
        {.file = options.run / "media" / "index.jsonl", .batch = kMediaBatch, .noun = "picture"},
        parse_with(parse_picture), &Exporter::write_pictures);
    delivery->follow<Histograms>(
        {.file = options.run / "histograms.jsonl", .batch = kMediaBatch, .noun = "histogram step"},
        parse_with(parse_histograms), &Exporter::write_histograms);
  }
  return std::make_unique<Feed>(std::move(delivery));
}

std::unique_ptr<Feed> receiver_feed(const std::string& name, const ExportOptions& options,
                                    const EventOptions& events, const Exports::Warn& warn,
                                    EventDelivery::Make make) {
  auto delivery = std::make_unique<EventDelivery>(
      DeliveryOptions{.what = "events to " + name,
                      .consequence = "the event is lost, and training goes on",
                      .warn = warn},
      std::move(make));
  const auto parse = [run = options.name, names = events.names](const Line& line) {
    std::vector<Event> found = parse_events(line, run);
    std::erase_if(found, [&names](const Event& event) {
      return !names.empty() && std::find(names.begin(), names.end(), event.name) == names.end();
    });
    return found;
  };
  delivery->follow<Event>(
      {.file = options.run / "journal.jsonl", .from = events.journal_from, .batch = 1}, parse,
      &Sink<Event>::write);
  return std::make_unique<Feed>(std::move(delivery));
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
  const auto receive = [&](const char* name, EventDelivery::Make make) {
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

std::string Exports::line(const std::string& verb, const std::string& noun,
                          const std::vector<Slot>& slots) {
  std::string names;
  std::int64_t count = 0;
  for (const Slot& slot : slots) {
    count = std::max(count, slot.feed->delivery().count());
    names += (names.empty() ? "" : ", ") + slot.name;
    names += missing_text(slot.feed->delivery().missing(), slot.resumes ? "unsent" : "lost");
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
    if (slot.resumes && !slot.feed->delivery().missing().empty()) names.push_back(slot.name);
  }
  return names;
}

bool Exports::lost_some() const {
  const auto is_short = [](const Slot& slot) { return !slot.feed->delivery().missing().empty(); };
  return std::any_of(trackers_.begin(), trackers_.end(), is_short) ||
         std::any_of(receivers_.begin(), receivers_.end(), is_short);
}

}  // namespace scaletrain::track
