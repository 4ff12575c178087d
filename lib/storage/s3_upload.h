// A large object in parts: Amazon S3 API Reference, CreateMultipartUpload, UploadPart,
// CompleteMultipartUpload, AbortMultipartUpload. Nobody sees the object before all of it is there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/storage/http_caller.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

// One request for the object at hand, which is sent again as HttpCaller does.
struct S3Request {
  std::string method = {};
  std::map<std::string, std::string> query = {};
  std::map<std::string, std::string> headers = {};
  std::string_view body = {};
  std::vector<long> expected = {};
  HttpClient::Fault fault = {};
  std::optional<double> give_up_after_s = {};
};
using S3Send = std::function<HttpResponse(const S3Request&)>;

// Larger objects go in parts of this size, several at once; S3 takes no smaller ones than 5 MiB.
inline constexpr std::int64_t kS3PartBytes = 8 << 20;

// The size of the parts: S3 takes 10,000 of them.
std::int64_t s3_part_bytes(std::int64_t object_bytes);

// Uploads `source` in parts (multipart upload). The server verifies the SHA-256 of each, which the
// request's signature covers. Unfinished uploads are aborted. Throws core::Error of `place`.
void upload_in_parts(const S3Send& send, const Source& source, const std::string& place);

}  // namespace scaletrain::storage
