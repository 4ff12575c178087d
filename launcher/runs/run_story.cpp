#include "launcher/runs/run_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "launcher/runs/run_devices.h"
#include "launcher/runs/run_ledger.h"
#include "launcher/runs/run_results.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/observe/progress_text.h"

namespace scaletrain::launcher {
namespace {

std::int64_t integer(const RunJson& record, const char* name, std::int64_t missing = -1) {
  const std::optional<double> value = number_of(record, name);
  return value ? static_cast<std::int64_t>(*value) : missing;
}

// First line of a text field, "" if it is absent.
std::string words_of(const RunJson& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_string()) return "";
  const auto text = found->get<std::string>();
  return core::printable(text.substr(0, text.find('\n')));
}

std::string event_name(const RunJson& record) { return words_of(record, "event"); }

// ": CAUSE." or "."
std::string because(const RunJson& record, const char* name = "cause") {
  std::string cause = words_of(record, name);
  while (cause.ends_with('.')) cause.pop_back();
  return cause.empty() ? "." : ": " + cause + ".";
}

std::string started(const RunJson& record) {
  const std::int64_t step = integer(record, "step");
  return fmt::format("Attempt {} started with {} on {}, {}.", integer(record, "attempt", 0),
                     core::counted(integer(record, "ranks", 1), "rank"),
                     core::counted(integer(record, "nodes", 1), "node"),
                     step < 0 ? "from the beginning"
                              : fmt::format("resumed from the checkpoint of step {}", step));
}

std::string failed(const RunJson& record) {
  const std::int64_t rank = integer(record, "rank"), step = integer(record, "step");
  const std::string signal = words_of(record, "signal"), host = words_of(record, "host");
  const std::string who = rank < 0 ? "the node" : fmt::format("rank {}", rank);
  const std::string how = signal.empty()
                              ? fmt::format("ended with exit code {}", integer(record, "exit_code"))
                              : "was killed by " + signal;
  return fmt::format("Attempt {} failed{}: {}{} {}{}", integer(record, "attempt", 0),
                     step < 0 ? "" : fmt::format(" at step {}", step), who,
                     host.empty() ? "" : fmt::format(" (host {})", host), how, because(record));
}

std::string restarting(const RunJson& record) {
  std::string text = words_of(record, "text");
  if (text.empty()) return "The job starts again" + because(record);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.ends_with('.') ? text : text + ".";
}

std::string stopped(const RunJson& record) {
  const std::string signal = words_of(record, "signal");
  return (signal.empty() ? "The job was stopped" : "The job was stopped by " + signal) +
         because(record);
}

std::string of_node(const RunJson& record, const char* what) {
  const std::int64_t node = integer(record, "node");
  return fmt::format("{} ({}) {}{}", node < 0 ? "A node" : fmt::format("Node {}", node),
                     words_of(record, "who"), what, because(record, "why"));
}

// "train.tar/1, train.tar/2 and 2 more", from the keys of an anomalous step's samples.
std::string samples_of(const RunJson& record) {
  constexpr std::size_t kShownKeys = 3;
  const auto keys = record.find("keys");
  std::string text;
  std::size_t shown = 0;
  if (keys != record.end() && keys->is_array()) {
    for (const RunJson& key : *keys) {
      if (!key.is_string() || shown == kShownKeys) continue;
      text += (text.empty() ? "" : ", ") + core::printable(key.get<std::string>());
      ++shown;
    }
  }
  const std::int64_t more = integer(record, "samples", 0) - static_cast<std::int64_t>(shown);
  return shown > 0 && more > 0 ? fmt::format("{} and {} more", text, more) : text;
}

std::string anomalous(const RunJson& record) {
  const auto skipped = record.find("skipped");
  const bool is_clipped = skipped != record.end() && skipped->is_boolean() && !skipped->get<bool>();
  const std::string unit = words_of(record, "unit"), samples = samples_of(record);
  std::string text =
      fmt::format("Step {} was anomalous and {}{} It came from rank {}", integer(record, "step"),
                  is_clipped ? "clipped" : "left out", because(record), integer(record, "rank", 0));
  if (!unit.empty()) text += fmt::format(", where {} was the first not finite", unit);
  return text + (samples.empty() ? "." : fmt::format("; its samples: {}.", samples));
}

std::string rolled_back(const RunJson& record) {
  const std::int64_t from = integer(record, "checkpoint"), step = integer(record, "step");
  return fmt::format(
      "The run went back to the weights of step {}: the batches of steps {} to {} are skipped.",
      from, from + 1, step);
}

std::string replicas_differ(const RunJson& record) {
  const auto wrong = record.find("wrong");
  std::string ranks;
  if (wrong != record.end() && wrong->is_array()) {
    for (const RunJson& rank : *wrong) {
      if (rank.is_number_integer()) {
        ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank.get<std::int64_t>());
      }
    }
  }
  return fmt::format("Replicas differed at step {} (silent data corruption){} {}",
                     integer(record, "step"), because(record),
                     ranks.empty() ? "No majority shows which rank is wrong."
                                   : fmt::format("The majority differs from rank {}.", ranks));
}

std::string went_back(const RunJson& record) {
  const std::int64_t from = integer(record, "checkpoint");
  return fmt::format("The run went back to the checkpoint of step {} and repeated steps {} to {}.",
                     from, from + 1, integer(record, "step"));
}

std::string at_step(const RunJson& record, const char* text) {
  return fmt::format("{} at step {}{}", text, integer(record, "step"), because(record));
}

using Sentence = std::string (*)(const RunJson&);

const std::map<std::string, Sentence, std::less<>>& sentences() {
  static const std::map<std::string, Sentence, std::less<>> result{
      {"attempt_started", started},
      {"attempt_failed", failed},
      {"restarting", restarting},
      {"stopped", stopped},
      {"checkpoint_refused",
       [](const RunJson& record) { return at_step(record, "No checkpoint was saved"); }},
      {"lr_reduced",
       [](const RunJson& record) {
         return at_step(record, fmt::format("The learning rate was multiplied by {:g}",
                                            number_of(record, "factor").value_or(0))
                                    .c_str());
       }},
      {"anomaly", anomalous},
      {"rolled_back", rolled_back},
      {"replicas_differ", replicas_differ},
      {"went_back", went_back},
      {"wrong_product",
       [](const RunJson& record) { return at_step(record, "A matrix product was wrong, found"); }},
      {"saturated", [](const RunJson& record) { return at_step(record, "Training stands still"); }},
      {"early_stopped",
       [](const RunJson& record) { return at_step(record, "Training stopped early"); }},
      {"finished", [](const RunJson& record) { return at_step(record, "The run finished"); }},
      {"node_joined", [](const RunJson& record) { return of_node(record, "joined the job"); }},
      {"node_lost", [](const RunJson& record) { return of_node(record, "was lost"); }},
      {"node_refused", [](const RunJson& record) { return of_node(record, "was refused"); }},
      {"straggler",
       [](const RunJson& record) {
         return fmt::format("Rank {} was steadily slower than the others, phase {}.",
                            integer(record, "rank"), words_of(record, "phase"));
       }},
      {"lost_replica", [](const RunJson& record) {
         return fmt::format("Replica {} was lost at step {}; {} go on.", integer(record, "replica"),
                            integer(record, "step"), integer(record, "left"));
       }}};
  return result;
}

// Events that follow each other as one sentence; `last` is the last of `count`.
std::string together(const RunJson& first, const RunJson& last, std::int64_t count) {
  const bool is_save = event_name(first) == "checkpoint_saved";
  const std::int64_t from = integer(first, "step"), to = integer(last, "step");
  if (is_save && count == 1) return fmt::format("The checkpoint of step {} was saved.", from);
  if (is_save) return fmt::format("{} checkpoints were saved, steps {} to {}.", count, from, to);
  if (count == 1) return fmt::format("Step {} was skipped{}", from, because(first));
  return fmt::format("{} steps from {} to {} were skipped, the first{}", count, from, to,
                     because(first));
}

bool is_grouped(const std::string& event) {
  return event == "checkpoint_saved" || event == "step_skipped";
}

bool ends_attempt(const std::string& event) {
  static const std::set<std::string> ends{"attempt_failed", "restarting", "stopped", "finished"};
  return ends.contains(event);
}

std::vector<RunJson> events_in_order(const RunRecord& run) {
  std::vector<RunJson> events = run.journal;
  for (const RunJson& record : run.others) {
    const std::string event = event_name(record);
    if (event == "straggler" || event == "lost_replica") events.push_back(record);
  }
  if (run.journal.empty()) {
    for (const auto& [attempt, span] : run.attempts) {
      events.push_back({{"event", "first_record"}, {"attempt", attempt}, {"time", span.first}});
    }
    if (run.failure.is_object()) {
      events.push_back(run.failure);
      events.back()["event"] = "attempt_failed";
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const RunJson& a, const RunJson& b) {
    return number_of(a, "time").value_or(0) < number_of(b, "time").value_or(0);
  });
  return events;
}

std::string sentence_of(const RunJson& record) {
  const std::string event = event_name(record);
  if (event == "first_record") {
    return fmt::format("Attempt {} wrote its first record.", integer(record, "attempt", 0));
  }
  const auto found = sentences().find(event);
  return found != sentences().end() ? found->second(record) : fmt::format("Event {}.", event);
}

std::string story_time(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[32] = {};
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return {text, length};
}

std::size_t attempt_count(const RunRecord& run) {
  const auto starts = std::count_if(run.journal.begin(), run.journal.end(), [](const auto& one) {
    return event_name(one) == "attempt_started";
  });
  return std::max(static_cast<std::size_t>(starts), run.attempts.size());
}

}  // namespace

std::vector<StoryLine> run_story(const RunRecord& run) {
  constexpr const char* kNoEnd = "ended without a record: its launcher or machine was killed.";
  const std::vector<RunJson> events = events_in_order(run);
  std::vector<StoryLine> story;
  std::int64_t open = -1;  // the attempt that has started and not ended
  for (std::size_t i = 0; i < events.size(); ++i) {
    const RunJson& first = events[i];
    const std::string event = event_name(first);
    const double time = number_of(first, "time").value_or(0);
    if (event == "attempt_started") {
      if (open >= 0) story.push_back({time, fmt::format("Attempt {} {}", open, kNoEnd)});
      open = integer(first, "attempt", 0);
    } else if (ends_attempt(event)) {
      open = -1;
    }
    if (!is_grouped(event)) {
      story.push_back({time, sentence_of(first)});
      continue;
    }
    const std::size_t begin = i;
    while (i + 1 < events.size() && event_name(events[i + 1]) == event) ++i;
    const auto count = static_cast<std::int64_t>(i - begin + 1);
    story.push_back({time, together(first, events[i], count)});
  }
  if (open >= 0 && run.state.state == "dead") {
    const double time = story.empty() ? 0 : story.back().time;
    story.push_back({time, fmt::format("Attempt {} {}", open, kNoEnd)});
  }
  return story;
}

std::string story_text(const RunRecord& run) {
  std::string text =
      fmt::format("{}: {} after {}, {} of training\n", core::printable(run.name), run.state.state,
                  core::counted(static_cast<std::int64_t>(attempt_count(run)), "attempt"),
                  observe::format_duration(trained_seconds(run)));
  for (const StoryLine& line : run_story(run)) {
    text += fmt::format("  {}  {}\n", story_time(line.time), line.text);
  }
  if (run.journal.empty()) {
    text += "  journal.jsonl is missing: only starts and the last failure are known\n";
  }
  return text + ledger_text(run) + devices_text(run);
}

RunJson story_json(const RunRecord& run) {
  RunJson events = RunJson::array();
  for (const StoryLine& line : run_story(run)) {
    events.push_back({{"time", line.time}, {"text", line.text}});
  }
  return {{"run", run.shown},
          {"name", run.name},
          {"state", run.state.state},
          {"attempts", attempt_count(run)},
          {"events", events},
          {"times", ledger_json(run)},
          {"devices", devices_json(run)}};
}

}  // namespace scaletrain::launcher
