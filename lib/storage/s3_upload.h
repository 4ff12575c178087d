// Multipart upload of a large object: Amazon S3 API Reference, CreateMultipartUpload, UploadPart,
// CompleteMultipartUpload, AbortMultipartUpload. The object becomes visible when it is complete.
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

// One request for the object, retried by HttpCaller.
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

// Larger objects are uploaded in parts of this size, several at once; S3's minimum is 5 MiB.
inline constexpr std::int64_t kS3PartBytes = 8 << 20;

// Returns the part size: S3 allows 10,000 parts.
std::int64_t s3_part_bytes(std::int64_t object_bytes);

// Uploads `source` in parts (multipart upload). The server verifies the SHA-256 of each, which the
// request's signature covers. Unfinished uploads are aborted. Throws core::Error of `place`.
void upload_in_parts(const S3Send& send, const Source& source, const std::string& place);

}  // namespace scaletrain::storage
