#include "lib/recipe/sections/log.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "lib/core/text/url.h"
#include "lib/recipe/catalog/duration.h"
#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/object.h"
#include "lib/recipe/schema/problems.h"

namespace scaletrain::recipe {
namespace {

template <std::size_t kCount>
NamedValues named(const std::array<LogChoice, kCount>& choices) {
  NamedValues values;
  for (const LogChoice& choice : choices) {
    values.emplace_back(std::string(choice.name), std::string(choice.help));
  }
  return values;
}

bool exports_to(const Log& log, std::string_view tracker) {
  return std::find(log.to.begin(), log.to.end(), tracker) != log.to.end();
}

void check_events(const Log& log, const Node& tree, Problems& problems) {
  if (!log.events.empty() && log.webhook.empty() && log.on_event.empty()) {
    problems.add(written_at(tree, {"log", "events"}), "/log/events",
                 "is for log.webhook and log.on_event", "add one of them, or leave the events out");
  }
  if (log.webhook.empty()) return;
  const std::string_view scheme = core::url_scheme(log.webhook);
  if (!log.webhook.starts_with("env:") && scheme != "http" && scheme != "https") {
    problems.add(written_at(tree, {"log", "webhook"}), "/log/webhook", "is not a URL",
                 "use https://..., or env:NAME for the contents of an environment variable");
  } else if (core::holds_secret(log.webhook)) {
    problems.add(written_at(tree, {"log", "webhook"}), "/log/webhook",
                 "carries a secret, which would be stored with the run",
                 "put the URL into an environment variable and use env:NAME");
  }
}

}  // namespace

bool Log::writes_images() const { return images.value_or(exports_to(*this, "tensorboard")); }

TypePtr describe(Log& value) {
  auto keys = std::make_unique<Object>();
  keys->add("every", duration(value.every, any_unit()),
            "Logging interval in steps, epochs or minutes. Default: 10 steps.")
      .add("to", names(value.to, named(kTrackers)),
           "Experiment trackers to which metrics are exported, for example [\"tensorboard\", "
           "\"csv\"]. Their files are in OUTPUT/export. Default: none, only metrics.jsonl.")
      .add("port", integer(value.port, from(0).to(65535)),
           "Port on 127.0.0.1 at which Prometheus scrapes the run, for example 9400. Default: 0, "
           "no port. Needs \"prometheus\" in log.to.")
      .add("textfile_folder", path(value.textfile_folder),
           "Folder for the Prometheus textfile of node_exporter. Default: OUTPUT/export. Needs "
           "\"prometheus\" in log.to.")
      .add("images", optional(value.images, [](bool& images) { return flag(images); }),
           "Writes images of the first training batch and of the most confident mistakes of each "
           "validation to OUTPUT/media. Default: true with \"tensorboard\" in log.to, otherwise "
           "false.")
      .add("histograms",
           optional(value.histograms,
                    [](Duration& interval) {
                      return duration(interval, {Duration::Unit::kSteps, Duration::Unit::kEpochs});
                    }),
           "Interval at which histograms of weights and gradients are written to "
           "OUTPUT/histograms.jsonl. Norms and update-to-weight ratios of the model's units go to "
           "metrics.jsonl. For example {\"steps\": 100}. Default: none.")
      .add("webhook", text(value.webhook, "a URL, or env:NAME"),
           "URL to which each event of the run is posted as JSON. For example "
           "\"env:SLACK_WEBHOOK_URL\", the URL in that environment variable. Default: none.")
      .add("on_event", text(value.on_event, "a shell command"),
           "Shell command that runs at each event of the run. It gets JSON on standard input and "
           "the event's name in SCALETRAIN_EVENT. Default: none.")
      .add("events", names(value.events, named(kEvents)),
           "Events for which log.webhook and log.on_event are called, for example [\"failure\", "
           "\"end\"]. Default: all.");
  return keys;
}

void check(const Log& log, const Node& tree, Problems& problems) {
  check_events(log, tree, problems);
  if (exports_to(log, "prometheus")) return;
  if (log.port != 0) {
    problems.add(written_at(tree, {"log", "port"}), "/log/port", "is for Prometheus",
                 "add \"prometheus\" to log.to, or leave the port out");
  }
  if (!log.textfile_folder.empty()) {
    problems.add(written_at(tree, {"log", "textfile_folder"}), "/log/textfile_folder",
                 "is for Prometheus", "add \"prometheus\" to log.to, or leave the folder out");
  }
}

}  // namespace scaletrain::recipe
