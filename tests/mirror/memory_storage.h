// An object store in memory, on which any single request can fail.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "lib/core/error.h"
#include "lib/storage/storage.h"

namespace scaletrain::test {

class MemoryStorage : public storage::Storage {
 public:
  // Called before each request that changes something, with its name and path, by one thread at a
  // time; may throw.
  std::function<void(const std::string& operation, const std::string& path)> before;

  std::map<std::string, std::string> objects() const {
    const std::lock_guard lock(mutex_);
    return objects_;
  }
  // "step-00000001/manifest.json" and so on, of s3://b/run/checkpoints.
  std::set<std::string> names() const {
    const std::string folder = "s3://b/run/checkpoints/";
    std::set<std::string> result;
    for (const auto& [path, bytes] : objects()) result.insert(path.substr(folder.size()));
    return result;
  }
  void replace(const std::string& path, std::string bytes) {
    const std::lock_guard lock(mutex_);
    objects_[path] = std::move(bytes);
  }

  std::unique_ptr<storage::Object> open(const std::string& path) const override {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    if (found == objects_.end()) throw storage::AbsentError(path, "is absent", "");
    return std::make_unique<Bytes>(found->second);
  }
  std::vector<Entry> list(const std::string& folder) const override {
    const std::string whole = folder.ends_with('/') ? folder : folder + "/";
    std::map<std::string, bool> found;
    for (const auto& [path, bytes] : objects()) {
      if (!path.starts_with(whole)) continue;
      const std::string rest = path.substr(whole.size());
      found[rest.substr(0, rest.find('/'))] = rest.find('/') != std::string::npos;
    }
    std::vector<Entry> entries;
    for (const auto& [name, is_folder] : found) entries.push_back({name, is_folder});
    return entries;
  }
  void write(const std::string& path, std::string_view bytes) const override {
    begin("write", path);
    const std::lock_guard lock(mutex_);
    objects_[path] = bytes;
  }
  bool write_if_absent(const std::string& path, std::string_view bytes) const override {
    begin("write_if_absent", path);
    const std::lock_guard lock(mutex_);
    return objects_.try_emplace(path, bytes).second;
  }
  void upload(const std::string& path, const storage::Source& source) const override {
    std::string bytes(static_cast<std::size_t>(source.bytes), '\0');
    source.read(0, std::as_writable_bytes(std::span(bytes)));
    write(path, bytes);
  }
  void remove(const std::string& path) const override {
    begin("remove", path);
    const std::lock_guard lock(mutex_);
    objects_.erase(path);
  }
  void remove_unfinished(const std::string& folder) const override {
    begin("remove_unfinished", folder);
  }

 private:
  class Bytes : public storage::Object {
   public:
    explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
    storage::Identity identity() const override {
      return {.bytes = std::ssize(bytes_),
              .mtime_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::system_clock::now().time_since_epoch())
                              .count()};
    }
    void read(std::int64_t offset, std::span<std::byte> out) const override {
      std::memcpy(out.data(), bytes_.data() + offset, out.size());
    }

   private:
    std::string bytes_;
  };

  void begin(const std::string& operation, const std::string& path) const {
    const std::lock_guard lock(asking_);
    if (before) before(operation, path);
  }

  mutable std::mutex asking_, mutex_;
  mutable std::map<std::string, std::string> objects_;
};

}  // namespace scaletrain::test
