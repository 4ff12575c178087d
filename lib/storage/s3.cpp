#include "lib/storage/s3.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/url.h"
#include "lib/storage/remote_object.h"
#include "lib/storage/s3_upload.h"
#include "lib/storage/xml.h"

namespace scaletrain::storage {
namespace {

using Fields = std::map<std::string, std::string>;

constexpr double kTidyPatienceS = 5;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

// Decodes "a%20b" to "a b"; '+' also stands for a blank, as in a form.
std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = i + 2 < text.size() && text[i] == '%' ? digit(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : digit(text[i + 2]);
    if (low >= 0) {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      result += text[i] == '+' ? ' ' : text[i];
    }
  }
  return result;
}

// Splits "s3://bucket/a/b/" for a listing: the bucket's path and the prefix of the keys, "a/b/".
std::pair<std::string, std::string> bucket_and_prefix(const std::string& folder) {
  const std::string whole = folder.ends_with('/') ? folder : folder + "/";
  const std::size_t bucket_end = whole.find('/', core::url_scheme(whole).size() + 3);
  return {whole.substr(0, bucket_end), whole.substr(std::min(bucket_end + 1, whole.size()))};
}

class S3Storage : public Storage {
 public:
  S3Storage(S3Account account, const HttpCaller& caller)
      : account_(std::move(account)), caller_(caller), credentials_(account_.credentials()) {}

  std::unique_ptr<Object> open(const std::string& path) const override {
    RemotePath remote;
    remote.place = core::shown_path(path);
    remote.request = [this, path](const Fields& headers) {
      return request("GET", s3_address(account_, path), {}, headers, "");
    };
    remote.etag_is_md5 = true;
    remote.renew = [this] { return renew(); };
    remote.forbidden_remedy = account_.forbidden_remedy;
    return open_remote(caller_, std::move(remote));
  }

  std::vector<Entry> list(const std::string& folder) const override;

  void write(const std::string& path, std::string_view bytes) const override {
    put(path, bytes, {}, {});
  }

  bool write_if_absent(const std::string& path, std::string_view bytes) const override {
    if (!account_.knows_if_none_match) {
      throw core::StorageError(core::shown_path(path), "cannot be written only where it is absent",
                               "use s3:// or a folder");
    }
    int tries = 0;
    if (put(path, bytes, {{"If-None-Match", "*"}}, {412}, &tries) != 412) return true;
    // The answer to a first try may have been lost after it had won.
    return tries > 1 && holds(path, bytes);
  }

  void upload(const std::string& path, const Source& source) const override {
    if (source.bytes > kS3PartBytes) {
      return upload_in_parts([this, &path](const S3Request& asked) { return send(path, asked); },
                             source, core::shown_path(path));
    }
    std::string bytes(static_cast<std::size_t>(source.bytes), '\0');
    source.read(0, std::as_writable_bytes(std::span(bytes)));
    write(path, bytes);
  }

  void remove(const std::string& path) const override {
    send(path, {.method = "DELETE", .expected = {404}});
  }

  void remove_unfinished(const std::string& folder) const override;

 private:
  // The status. `tries` counts the requests.
  long put(const std::string& path, std::string_view bytes, const Fields& headers,
           std::vector<long> expected, int* tries = nullptr) const {
    HttpCall call = call_for(path);
    call.make = [&, address = s3_address(account_, path)] {
      if (tries != nullptr) ++*tries;
      return request("PUT", address, {}, headers, bytes);
    };
    call.expected = std::move(expected);
    return caller_.call(call).status;
  }

  HttpResponse send(const std::string& path, const S3Request& asked) const {
    HttpCall call = call_for(path);
    call.make = [this, &asked, address = s3_address(account_, path)] {
      return request(asked.method, address, asked.query, asked.headers, asked.body);
    };
    call.expected = asked.expected;
    call.fault = asked.fault;
    call.give_up_after_s = asked.give_up_after_s;
    return caller_.call(call);
  }

  bool holds(const std::string& path, std::string_view bytes) const {
    const auto object = open(path);
    if (object->identity().bytes != static_cast<std::int64_t>(bytes.size())) return false;
    std::string found(bytes.size(), '\0');
    object->read(0, std::as_writable_bytes(std::span(found)));
    return found == bytes;
  }

  HttpCall call_for(const std::string& path) const {
    HttpCall call;
    call.place = core::shown_path(path);
    call.renew = [this] { return renew(); };
    call.forbidden_remedy = account_.forbidden_remedy;
    return call;
  }

  HttpRequest request(const std::string& method, const S3Address& address, const Fields& query,
                      Fields headers, std::string_view body) const {
    HttpRequest request;
    request.method = method;
    request.url = address.base + address.path;
    if (!query.empty()) request.url += "?" + canonical_query(query);
    request.body = body;
    if (const auto credentials = current()) {
      const std::string time = utc_now();
      SignedRequest signing{method, address.path, query, {}, core::Sha256().update(body).hex()};
      Fields signed_headers{{"x-amz-content-sha256", signing.payload_sha256}, {"x-amz-date", time}};
      if (!credentials->session_token.empty()) {
        signed_headers["x-amz-security-token"] = credentials->session_token;
      }
      headers.insert(signed_headers.begin(), signed_headers.end());
      signing.headers = std::move(signed_headers);
      signing.headers["host"] = address.host;
      headers["Authorization"] = authorization(signing, *credentials, {time, account_.region});
    }
    request.headers = std::move(headers);
    return request;
  }

  std::optional<Credentials> current() const {
    const std::lock_guard lock(mutex_);
    return credentials_;
  }

  bool renew() const {
    const auto newest = account_.credentials();
    const std::lock_guard lock(mutex_);
    return std::exchange(credentials_, newest) != newest;
  }

  S3Account account_;
  const HttpCaller& caller_;
  mutable std::mutex mutex_;
  mutable std::optional<Credentials> credentials_;
};

std::vector<Storage::Entry> S3Storage::list(const std::string& folder) const {
  const std::pair<std::string, std::string> parts = bucket_and_prefix(folder);
  const std::string& bucket = parts.first;
  const std::string& prefix = parts.second;
  std::vector<Entry> entries;
  Fields query{
      {"list-type", "2"}, {"prefix", prefix}, {"delimiter", "/"}, {"encoding-type", "url"}};
  const auto add = [&](std::string_view xml, const char* name, bool is_folder) {
    std::string found = percent_decoded(xml_text(xml, name));
    if (!found.starts_with(prefix)) return;
    found.erase(0, prefix.size());
    if (is_folder && found.ends_with('/')) found.pop_back();
    if (!found.empty()) entries.push_back({std::move(found), is_folder});
  };
  while (true) {
    HttpCall call = call_for(folder);
    call.make = [&] { return request("GET", s3_address(account_, bucket), query, {}, ""); };
    call.fault = [](const HttpResponse& answer) {
      const bool is_whole = answer.body.find("</ListBucketResult>") != std::string::npos;
      return is_whole ? std::string() : "the answer is not a complete listing";
    };
    const HttpResponse answer = caller_.call(call);
    for (const auto xml : xml_elements(answer.body, "Contents")) add(xml, "Key", false);
    for (const auto xml : xml_elements(answer.body, "CommonPrefixes")) add(xml, "Prefix", true);
    const std::string next = xml_text(answer.body, "NextContinuationToken");
    if (next.empty()) break;
    query["continuation-token"] = next;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

void S3Storage::remove_unfinished(const std::string& folder) const {
  const auto [bucket, prefix] = bucket_and_prefix(folder);
  const HttpResponse answer = send(bucket, {.method = "GET",
                                            .query = {{"uploads", ""}, {"prefix", prefix}},
                                            .give_up_after_s = kTidyPatienceS});
  for (const auto xml : xml_elements(answer.body, "Upload")) {
    const std::string key = xml_text(xml, "Key");
    if (!key.starts_with(prefix)) continue;
    send(fmt::format("{}/{}", bucket, key), {.method = "DELETE",
                                             .query = {{"uploadId", xml_text(xml, "UploadId")}},
                                             .expected = {404}});
  }
}

}  // namespace

std::unique_ptr<Storage> make_s3_storage(S3Account account, const HttpCaller& caller) {
  return std::make_unique<S3Storage>(std::move(account), caller);
}

}  // namespace scaletrain::storage
