#include "lib/storage/remote_object.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"

namespace scaletrain::storage {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr std::int64_t kMaxWholeBytes = std::int64_t{4} << 30;

std::optional<std::int64_t> to_number(std::string_view text) {
  const auto number = core::parse_number<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

// The size in "bytes 0-0/1234" or "bytes */1234".
std::optional<std::int64_t> size_of(const std::string& content_range) {
  const std::size_t slash = content_range.rfind('/');
  if (!content_range.starts_with("bytes ") || slash == std::string::npos) return std::nullopt;
  return to_number(std::string_view(content_range).substr(slash + 1));
}

std::int64_t mtime_of(const HttpResponse& response) {
  const std::time_t seconds = curl_getdate(response.header("last-modified").c_str(), nullptr);
  return seconds < 0 ? 0 : std::int64_t{seconds} * kNanoseconds;
}

// Returns the MD5 of an object that was uploaded in one part. S3's ETag has a '-' for other
// objects, and is no MD5 if S3 encrypts with a key.
std::string md5_of(const HttpResponse& response) {
  const std::string etag = response.header("etag");
  const bool has_key = response.header("x-amz-server-side-encryption").starts_with("aws:kms") ||
                       !response.header("x-amz-server-side-encryption-customer-algorithm").empty();
  std::string md5 = etag.size() == 34 ? etag.substr(1, 32) : "";
  const bool is_hex = md5.find_first_not_of("0123456789abcdef") == std::string::npos;
  return has_key || !is_hex ? "" : md5;
}

class RemoteObject : public Object {
 public:
  RemoteObject(const HttpCaller& caller, RemotePath path)
      : caller_(caller), path_(std::move(path)) {
    std::array<std::byte, 1> first{};
    HttpCall call = call_for(0, first);
    call.expected = {416};  // the answer for an object without a byte
    call.fault = [&first](const HttpResponse& response) -> std::string {
      if (response.status != 206) return "";
      const auto size = size_of(response.header("content-range"));
      if (!size) return "the answer has no size in \"Content-Range\"" + shown_range(response);
      return fault_of(response, fmt::format("bytes 0-0/{}", *size), first);
    };
    const HttpResponse response = caller_.call(call);
    if (response.status == 206 || response.status == 416) {
      identity_.bytes = size_of(response.header("content-range")).value_or(0);
    } else {
      const auto size = to_number(response.header("content-length"));
      if (!size) fail_without_ranges();
      identity_.bytes = *size;
      has_ranges_ = *size == 0;  // an empty object is never read
    }
    identity_.mtime_ns = mtime_of(response);
    identity_.etag = response.header("etag");
    if (path_.etag_is_md5) identity_.md5 = md5_of(response);
  }

  Identity identity() const override { return identity_; }
  bool has_ranges() const override { return has_ranges_; }

  void read(std::int64_t offset, std::span<std::byte> out) const override {
    const auto end = offset + static_cast<std::int64_t>(out.size());
    if (end > identity_.bytes) {
      throw core::DataError(path_.place,
                            fmt::format("ends at byte {} while bytes {} to {} are read",
                                        identity_.bytes, offset, end),
                            "the object is truncated, or its index is of another one");
    }
    if (out.empty()) return;
    if (!has_ranges_) fail_without_ranges();
    HttpCall call = call_for(offset, out);
    const std::string range = fmt::format("bytes {}-{}/{}", offset, end - 1, identity_.bytes);
    call.fault = [this, &range, &out](const HttpResponse& response) {
      if (response.status != 206) fail_without_ranges();
      check_version(response);
      return fault_of(response, range, out);
    };
    caller_.call(call);
  }

  // Without ranges.
  std::vector<std::byte> read_whole() const {
    if (identity_.bytes > kMaxWholeBytes) fail_without_ranges();
    std::vector<std::byte> bytes(static_cast<std::size_t>(identity_.bytes));
    HttpCall call = call_with({}, bytes);
    call.fault = [this, &bytes](const HttpResponse& response) -> std::string {
      check_version(response);
      if (response.too_long || response.received != bytes.size()) {
        return fmt::format("{} of {} bytes came", response.too_long ? "more" : "fewer",
                           bytes.size());
      }
      return "";
    };
    caller_.call(call);
    return bytes;
  }

 private:
  HttpCall call_for(std::int64_t offset, std::span<std::byte> out) const {
    return call_with({{"Range", fmt::format("bytes={}-{}", offset,
                                            offset + static_cast<std::int64_t>(out.size()) - 1)}},
                     out);
  }

  HttpCall call_with(std::map<std::string, std::string> headers, std::span<std::byte> out) const {
    // A weak ETag never matches: it is compared by us only.
    if (!identity_.etag.empty() && !identity_.etag.starts_with("W/")) {
      headers["If-Match"] = identity_.etag;
    }
    HttpCall call;
    call.place = path_.place;
    call.make = [this, headers, out] {
      HttpRequest request = path_.request(headers);
      request.out = out;
      return request;
    };
    call.renew = path_.renew;
    call.forbidden_remedy = path_.forbidden_remedy;
    return call;
  }

  void check_version(const HttpResponse& response) const {
    const std::string etag = response.header("etag");
    const auto size = size_of(response.header("content-range"));
    const bool other_size = identity_.etag.empty() && size && *size != identity_.bytes;
    if (etag == identity_.etag && !other_size) return;
    throw core::DataError(path_.place, "was replaced while it was read",
                          "start again, and do not change shards while they are read");
  }

  [[noreturn]] void fail_without_ranges() const {
    throw core::DataError(path_.place, "the server sends whole objects only, no ranges",
                          "name a folder in /data/cache, which keeps objects of up to 4 GiB "
                          "whole, or use a server that knows \"Range\"");
  }

  static std::string fault_of(const HttpResponse& response, const std::string& range,
                              std::span<const std::byte> out) {
    if (response.header("content-range") != range) {
      return fmt::format("{} were asked for{}", range, shown_range(response));
    }
    if (response.too_long) return fmt::format("more than {} bytes came", out.size());
    if (response.received != out.size()) {
      return fmt::format("{} of {} bytes came", response.received, out.size());
    }
    return "";
  }

  static std::string shown_range(const HttpResponse& response) {
    return fmt::format(", and \"{}\" came", core::printable(response.header("content-range")));
  }

  const HttpCaller& caller_;
  RemotePath path_;
  Identity identity_;
  bool has_ranges_ = true;
};

class WholeStream : public Stream {
 public:
  explicit WholeStream(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = std::min(out.size(), bytes_.size() - used_);
    if (count > 0) std::memcpy(out.data(), bytes_.data() + used_, count);
    used_ += count;
    return count;
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
};

}  // namespace

std::unique_ptr<Object> open_remote(const HttpCaller& caller, RemotePath path) {
  return std::make_unique<RemoteObject>(caller, std::move(path));
}

std::unique_ptr<Stream> stream_remote(const HttpCaller& caller, RemotePath path) {
  auto object = std::make_unique<RemoteObject>(caller, std::move(path));
  if (object->has_ranges()) return stream_of(std::move(object));
  return std::make_unique<WholeStream>(object->read_whole());
}

}  // namespace scaletrain::storage
