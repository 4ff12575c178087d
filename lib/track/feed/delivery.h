// Delivery of JSON Lines files to one sink, which is offered again what it could not take.
//
// The files are the buffer: retries of a sink delay only its own delivery. Counts may be read from
// any thread; use everything else from one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/track/feed/sink.h"
#include "lib/track/feed/source.h"

namespace scaletrain::track {

struct DeliveryOptions {
  std::string what;         // in warnings: "export to csv"
  bool keeps = false;       // items are offered again after any error, and never lost
  std::string consequence;  // in warnings: "training goes on without it"
  std::function<void(const std::string& line)> warn;  // called from the delivery's thread
};

// Items of a file that are not written.
struct Shortfall {
  std::string noun;  // of the file's SourceOptions
  std::int64_t count = 0;
  bool is_first = false;  // items of the first file, which count() counts
  bool operator==(const Shortfall&) const = default;
};

class Delivery {
 public:
  explicit Delivery(DeliveryOptions options);
  virtual ~Delivery() = default;
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // Passes on what was appended to the files. Returns early during a pause, which follows an
  // attempt that is to be made again: exponential back-off, short if `is_ending`.
  void pump(bool is_ending);

  // Finishes the sink if everything was passed on. False: not yet, call pump() and it again.
  bool finish();

  virtual int socket() const = 0;
  virtual void serve() = 0;

  std::int64_t count() const;  // items of the first file, those included that were not read yet
  std::vector<Shortfall> missing() const;  // in the order of the files; {}: all was written

 protected:
  enum class Outcome { kDone, kFailed, kAgain };

  // Adds a file. If the first one became shorter, all files are delivered again, from the
  // beginning, to a new sink.
  void add_source(std::unique_ptr<Source> source);

  // Calls `work`; an error is a warning, once.
  Outcome attempt(const std::function<void()>& work);

  virtual void make_sink() = 0;  // unless it is there
  virtual void drop_sink() = 0;
  virtual void finish_sink() = 0;

 private:
  Source* next_source();
  void begin_again();
  bool write_batch(Source& source);
  void warn_once(const std::string& found, bool is_final);
  void pause();

  DeliveryOptions options_;
  std::vector<std::unique_ptr<Source>> sources_;
  core::SteadyTime not_before_{};
  int failures_ = 0;  // consecutive failures
  bool has_warned_ = false;
  bool is_ending_ = false;
  bool is_drained_ = false;  // by the last pump()
};

// A delivery to a sink of class `To`, which is made at the first pump() and again after an error.
template <class To>
class SinkDelivery : public Delivery {
 public:
  using Make = std::function<std::unique_ptr<To>()>;

  SinkDelivery(DeliveryOptions options, Make make)
      : Delivery(std::move(options)), make_(std::move(make)) {}

  // Adds a file, whose items are passed to `write`, before the first pump().
  template <class Item>
  void follow(SourceOptions options, typename ItemSource<Item>::Parse parse,
              void (To::*write)(std::span<const Item>)) {
    add_source(std::make_unique<ItemSource<Item>>(
        std::move(options), std::move(parse),
        [this, write](std::span<const Item> items) { (sink_.get()->*write)(items); }));
  }

  int socket() const override { return sink_ ? sink_->socket() : -1; }
  void serve() override {
    attempt([this] { sink_->serve(); });
  }

 protected:
  void make_sink() override {
    if (!sink_) sink_ = make_();
  }
  void drop_sink() override { sink_.reset(); }
  void finish_sink() override { sink_->finish(); }

 private:
  Make make_;
  std::unique_ptr<To> sink_;
};

}  // namespace scaletrain::track
