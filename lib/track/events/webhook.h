// Webhook: a POST of each event's payload as JSON to a URL.
#pragma once

#include <memory>
#include <string>

#include "lib/storage/aws_settings.h"
#include "lib/track/events/event.h"
#include "lib/track/net/json_server.h"

namespace scaletrain::track {

// Returns the URL of log.webhook: itself, or for "env:NAME" the contents of that variable. Throws
// core::UsageError if the variable is not set.
std::string webhook_url(const std::string& setting, const storage::Variables& variables);

// `send` is for tests.
std::unique_ptr<EventSink> make_webhook(const std::string& url, SendHttp send = {});

}  // namespace scaletrain::track
