// Delivery of the lines of a JSON Lines file to one sink: it counts what was read, written and
// lost, and offers again what the sink could not take.
//
// The file is the spool: a sink that asks to try again holds up its own delivery only, and memory
// holds one batch of items. Counts may be read from any thread, all else is for one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/observe/line_follower.h"
#include "lib/track/feed/sink.h"

namespace scaletrain::track {

struct DeliveryOptions {
  std::string what;            // in warnings: "export to csv"
  std::filesystem::path file;  // JSON Lines
  std::uintmax_t from = 0;     // byte of the file where it begins
  std::size_t batch = 1024;    // items of one write
  bool keeps = false;          // items are offered again after any error, and never lost
  std::string consequence;     // in warnings: "training goes on without it"
  std::function<void(const std::string& line)> warn;  // called from the delivery's thread
};

class Delivery {
 public:
  explicit Delivery(DeliveryOptions options);
  virtual ~Delivery() = default;
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // Passes on what was appended to the file. Returns early during a pause, which follows an
  // attempt that is to be made again: exponential back-off, short if `is_ending`.
  void pump(bool is_ending);

  // Finishes the sink if everything was passed on. False: not yet, call pump() and it again.
  bool finish();

  virtual int socket() const = 0;
  virtual void serve() = 0;

  // Items of the file: those that were read, and those of lines that were not.
  std::int64_t count() const;
  std::int64_t written() const { return written_; }
  std::int64_t lost() const { return lost_; }

 protected:
  enum class Outcome { kDone, kFailed, kAgain };

  // Calls `work`; an error is a warning, once.
  Outcome attempt(const std::function<void()>& work);

  virtual void make_sink() = 0;                                      // unless it is there
  virtual void drop_sink() = 0;                                      // and its items
  virtual std::int64_t add(const nlohmann::ordered_json& line) = 0;  // returns the line's items
  virtual std::int64_t items_in(const nlohmann::ordered_json& line) const = 0;  // any thread
  virtual void write_items() = 0;
  virtual void clear_items() = 0;
  virtual void finish_sink() = 0;
  // Passes on other files of the run; called with the sink there, when all items were passed on.
  virtual void pump_more() {}

 private:
  bool read_batch();
  bool write_batch();
  void warn_once(const std::string& found, bool is_final);
  void pause();

  DeliveryOptions options_;
  observe::LineFollower lines_;
  std::atomic<std::uintmax_t> offset_;
  std::atomic<std::int64_t> read_ = 0, written_ = 0, lost_ = 0;
  std::int64_t held_ = 0;  // items that were read and are neither written nor lost
  core::SteadyTime not_before_{};
  int failures_ = 0;  // in a row
  bool has_warned_ = false;
  bool is_ending_ = false;
  bool is_drained_ = false;  // by the last pump()
};

// A delivery to a sink of `Item`, which is made at the first pump() and again after an error.
template <class Item>
class SinkDelivery : public Delivery {
 public:
  // May be called from several threads at once.
  using Parse = std::function<std::vector<Item>(const nlohmann::ordered_json& line)>;
  using Make = std::function<std::unique_ptr<Sink<Item>>()>;

  SinkDelivery(DeliveryOptions options, Parse parse, Make make)
      : Delivery(std::move(options)), parse_(std::move(parse)), make_(std::move(make)) {}

  int socket() const override { return sink_ ? sink_->socket() : -1; }
  void serve() override {
    attempt([this] { sink_->serve(); });
  }

 protected:
  void make_sink() override {
    if (!sink_) sink_ = make_();
  }
  void drop_sink() override {
    sink_.reset();
    items_.clear();
  }
  std::int64_t add(const nlohmann::ordered_json& line) override {
    std::vector<Item> items = parse_(line);
    for (Item& item : items) items_.push_back(std::move(item));
    return static_cast<std::int64_t>(items.size());
  }
  std::int64_t items_in(const nlohmann::ordered_json& line) const override {
    return static_cast<std::int64_t>(parse_(line).size());
  }
  void write_items() override { sink_->write(items_); }
  void clear_items() override { items_.clear(); }
  void finish_sink() override { sink_->finish(); }

  Sink<Item>& sink() { return *sink_; }  // in pump_more()

 private:
  Parse parse_;
  Make make_;
  std::unique_ptr<Sink<Item>> sink_;
  std::vector<Item> items_;
};

}  // namespace scaletrain::track
