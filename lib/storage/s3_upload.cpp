#include "lib/storage/s3_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/parallel.h"
#include "lib/storage/xml.h"

namespace scaletrain::storage {
namespace {

constexpr int kPartsAtOnce = 4;
constexpr std::int64_t kMostParts = 10'000;
constexpr double kAbortPatienceS = 2;  // timeout for a server that has just failed
constexpr int kTries = 2;              // attempts for a whole object

std::string begin_upload(const S3Send& send) {
  S3Request request{.method = "POST", .query = {{"uploads", ""}}};
  request.fault = [](const HttpResponse& answer) {
    return xml_text(answer.body, "UploadId").empty() ? std::string("the answer names no upload")
                                                     : std::string();
  };
  return xml_text(send(request).body, "UploadId");
}

// The ETag.
std::string put_part(const S3Send& send, const std::string& id, std::int64_t number,
                     std::string_view bytes) {
  S3Request request{.method = "PUT",
                    .query = {{"partNumber", std::to_string(number)}, {"uploadId", id}},
                    .body = bytes};
  request.fault = [](const HttpResponse& answer) {
    return answer.header("etag").empty() ? std::string("the answer has no ETag") : std::string();
  };
  return send(request).header("etag");
}

// False if the server does not know the upload (any more): the answer to an earlier try may have
// been lost.
bool complete_upload(const S3Send& send, const std::string& id,
                     const std::vector<std::string>& etags) {
  std::string body = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < etags.size(); ++i) {
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, etags[i]);
  }
  body += "</CompleteMultipartUpload>";
  S3Request request{.method = "POST",
                    .query = {{"uploadId", id}},
                    .headers = {{"Content-Type", "application/xml"}},
                    .body = body,
                    .expected = {404}};
  // The status is sent before the parts are combined, so an error may follow it.
  request.fault = [](const HttpResponse& answer) -> std::string {
    if (answer.body.find("</CompleteMultipartUploadResult>") != std::string::npos) return "";
    const std::string error = error_text(answer);
    return error.empty() ? "the answer does not say that the object is there" : error;
  };
  return send(request).status != 404;
}

void abort_upload(const S3Send& send, const std::string& id, const std::string& place) {
  try {
    send({.method = "DELETE",
          .query = {{"uploadId", id}},
          .expected = {404},
          .give_up_after_s = kAbortPatienceS});
  } catch (const core::Error& error) {
    core::warn("{}: parts of an upload that failed stay on the server until the next one: {}",
               place, error.found());
  }
}

bool upload_once(const S3Send& send, const Source& source, const std::string& place) {
  const std::int64_t part_bytes = s3_part_bytes(source.bytes);
  const std::int64_t count = (source.bytes + part_bytes - 1) / part_bytes;
  const std::string id = begin_upload(send);
  try {
    std::vector<std::string> etags(static_cast<std::size_t>(count));
    core::for_each_index(count, kPartsAtOnce, [&](std::int64_t i) {
      const std::int64_t offset = i * part_bytes;
      std::string part(static_cast<std::size_t>(std::min(part_bytes, source.bytes - offset)), '\0');
      source.read(offset, std::as_writable_bytes(std::span(part)));
      etags[static_cast<std::size_t>(i)] = put_part(send, id, i + 1, part);
    });
    return complete_upload(send, id, etags);
  } catch (...) {
    abort_upload(send, id, place);
    throw;
  }
}

}  // namespace

std::int64_t s3_part_bytes(std::int64_t object_bytes) {
  const std::int64_t least = (object_bytes + kMostParts - 1) / kMostParts;
  return std::max(kS3PartBytes, least);
}

void upload_in_parts(const S3Send& send, const Source& source, const std::string& place) {
  for (int i = 0; i < kTries; ++i) {
    if (upload_once(send, source, place)) return;
  }
  throw core::StorageError(place, "the server has lost an upload that was under way",
                           "check the object store; is there a rule that removes uploads?");
}

}  // namespace scaletrain::storage
