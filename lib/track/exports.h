// All trackers and event receivers of a run, each on a thread of its own. A failure of one is a
// warning, once, and the records that it could not take are counted; the other exporters continue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/track/exporters.h"
#include "lib/track/feed/feed.h"

namespace scaletrain::track {

struct EventOptions {
  std::string webhook;              // URL, or "env:NAME"; "": none
  std::string command;              // shell command; "": none
  std::vector<std::string> names;   // events that are sent; empty: all
  std::uintmax_t journal_from = 0;  // byte of journal.jsonl where the events of this job begin
};

class Exports {
 public:
  using Warn = std::function<void(const std::string& line)>;  // called from several threads

  // Follows metrics.jsonl, pictures and histograms for the trackers `names`, and journal.jsonl for
  // the receivers of events. Throws core::UsageError for an unknown name.
  Exports(const std::vector<std::string>& names, const ExportOptions& options,
          const EventOptions& events, const Warn& warn);

  // Delivers the remaining records, which are complete now, and finishes. Returns false if a
  // delivery was not done by `until`; it may still be blocked in a system call.
  bool finish(core::SteadyTime until);

  // After finish(): "exported 65 records to tensorboard, csv (3 lost), mlflow (2 unsent)", and
  // "sent 5 events to webhook (1 lost)"; no line for what there is none of. Pictures and steps of
  // histograms are named only where they were lost: "tensorboard (44 lost, 3 pictures lost)".
  std::vector<std::string> summary() const;

  // Returns trackers to which a later export can send the rest.
  std::vector<std::string> unsent() const;

  bool lost_some() const;  // lost or unsent

 private:
  struct Slot {
    std::string name;
    bool resumes = false;
    std::unique_ptr<Feed> feed{};
  };

  static std::string line(const std::string& verb, const std::string& noun,
                          const std::vector<Slot>& slots);

  std::vector<Slot> trackers_, receivers_;
};

}  // namespace scaletrain::track
