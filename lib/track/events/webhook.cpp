#include "lib/track/events/webhook.h"

#include <string_view>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

constexpr std::string_view kVariable = "env:";

class Webhook : public EventSink {
 public:
  explicit Webhook(JsonServer server) : server_(std::move(server)) {}

  void write(std::span<const Event> events) override {
    for (const Event& event : events) {
      const JsonAnswer answer = server_.post("", event.payload);
      if (!answer.is_success()) server_.refuse(answer);
    }
  }

 private:
  JsonServer server_;
};

}  // namespace

std::string webhook_url(const std::string& setting, const storage::Variables& variables) {
  if (!setting.starts_with(kVariable)) return setting;
  const std::string name = setting.substr(kVariable.size());
  std::string url = variables(name);
  if (url.empty()) {
    throw core::UsageError("log.webhook", "the environment variable " + name + " is not set",
                           "set it to the URL");
  }
  return url;
}

std::unique_ptr<EventSink> make_webhook(const std::string& url, SendHttp send) {
  if (!send) send = http_sender();
  return std::make_unique<Webhook>(JsonServer(url, {}, std::move(send), JsonServer::Shows::kHost));
}

}  // namespace scaletrain::track
