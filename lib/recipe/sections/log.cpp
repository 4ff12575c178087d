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
           "Experiment trackers that metrics are exported to, for example [\"tensorboard\", "
           "\"csv\"]. Their files are in OUTPUT/export. Default: none.")
      .add("port", integer(value.port, from(0).to(65535)),
           "Port on 127.0.0.1 where Prometheus scrapes the run, for example 9400. Default: 0, no "
           "port.")
      .add("textfile_folder", path(value.textfile_folder),
           "Folder for the Prometheus textfile, as node_exporter reads it. Default: "
           "OUTPUT/export.")
      .add("images", optional(value.images, [](bool& images) { return flag(images); }),
           "Pictures of the first training batch and of the most confident mistakes of each "
           "validation, in OUTPUT/media. For image tasks. Default: true with \"tensorboard\" in "
           "log.to, otherwise false.")
      .add("histograms",
           optional(value.histograms,
                    [](Duration& interval) {
                      return duration(interval, {Duration::Unit::kSteps, Duration::Unit::kEpochs});
                    }),
           "Interval of the histograms of weights and gradients in OUTPUT/histograms.jsonl, and of "
           "the norms and update-to-weight ratios of the model's units in metrics.jsonl, for "
           "example {\"steps\": 100}. Default: none.")
      .add("webhook", text(value.webhook, "a URL, or env:NAME"),
           "URL that gets each event of the run by a POST of JSON, for example "
           "\"env:SLACK_WEBHOOK_URL\" for the contents of an environment variable. Default: none.")
      .add("on_event", text(value.on_event, "a shell command"),
           "Shell command for each event of the run: JSON on standard input, its name in "
           "SCALETRAIN_EVENT. Default: none.")
      .add("events", names(value.events, named(kEvents)),
           "Events that log.webhook and log.on_event get, for example [\"failure\", \"end\"]. "
           "Default: all.");
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
