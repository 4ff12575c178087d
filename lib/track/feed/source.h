// A JSON Lines file whose lines are items of a sink, and the counts of what was read and written.
//
// The file is the spool: memory holds one batch of items. Counts may be read from any thread; use
// everything else from one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/observe/line_follower.h"

namespace scaletrain::track {

struct SourceOptions {
  std::filesystem::path file;   // JSON Lines
  std::uintmax_t from = 0;      // byte of the file where it begins
  std::size_t batch = 1024;     // items of one write
  std::string noun = "record";  // name of an item, in summaries
};

class Source {
 public:
  explicit Source(SourceOptions options);
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Reads a batch unless one is held. False: the file has no further items. A file that became
  // shorter is read from its beginning, and its counts begin at 0, after a call of `begin_again`.
  bool fill(const std::function<void()>& begin_again);

  // Passes the batch on, which is held until settle(). Throws what the sink throws.
  virtual void write_batch() const = 0;

  // Drops the batch, which counts as written or as lost.
  void settle(bool is_written);

  // Drops the batch. The file is read from its beginning again.
  void rewind();

  // Items of the file: those that were read, and those of lines that were not.
  std::int64_t count() const;
  std::int64_t written() const { return written_; }
  const std::string& noun() const { return options_.noun; }

 protected:
  virtual std::int64_t add(const nlohmann::ordered_json& line) = 0;  // returns the line's items
  virtual std::int64_t items_in(const nlohmann::ordered_json& line) const = 0;  // any thread
  virtual void clear() = 0;

 private:
  SourceOptions options_;
  observe::LineFollower lines_;
  std::atomic<std::uintmax_t> offset_;
  std::atomic<std::int64_t> read_ = 0, written_ = 0;
  std::int64_t held_ = 0;  // items of the batch
};

template <class Item>
class ItemSource : public Source {
 public:
  // May be called from several threads at once.
  using Parse = std::function<std::vector<Item>(const nlohmann::ordered_json& line)>;
  using Write = std::function<void(std::span<const Item> items)>;

  ItemSource(SourceOptions options, Parse parse, Write write)
      : Source(std::move(options)), parse_(std::move(parse)), write_(std::move(write)) {}

  void write_batch() const override { write_(items_); }

 protected:
  std::int64_t add(const nlohmann::ordered_json& line) override {
    std::vector<Item> items = parse_(line);
    for (Item& item : items) items_.push_back(std::move(item));
    return static_cast<std::int64_t>(items.size());
  }
  std::int64_t items_in(const nlohmann::ordered_json& line) const override {
    return static_cast<std::int64_t>(parse_(line).size());
  }
  void clear() override { items_.clear(); }

 private:
  Parse parse_;
  Write write_;
  std::vector<Item> items_;
};

}  // namespace scaletrain::track
