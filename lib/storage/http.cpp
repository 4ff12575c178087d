#include "lib/storage/http.h"

#include "lib/core/text/url.h"
#include "lib/storage/remote_object.h"

namespace scaletrain::storage {
namespace {

class HttpStorage : public Storage {
 public:
  explicit HttpStorage(const HttpCaller& caller) : caller_(caller) {}

  std::unique_ptr<Object> open(const std::string& path) const override {
    return open_remote(caller_, remote_path(path));
  }

  std::unique_ptr<Stream> stream(const std::string& path) const override {
    return stream_remote(caller_, remote_path(path));
  }

  std::vector<Entry> list(const std::string& folder) const override {
    refuse(folder, "cannot be listed");
  }
  void write(const std::string& path, std::string_view /*bytes*/) const override {
    refuse(path, "cannot be written");
  }
  bool write_if_absent(const std::string& path, std::string_view /*bytes*/) const override {
    refuse(path, "cannot be written");
  }

 private:
  static RemotePath remote_path(const std::string& path) {
    RemotePath remote;
    remote.place = core::shown_path(path);
    remote.request = [path](const std::map<std::string, std::string>& headers) {
      HttpRequest request;
      request.url = path;
      request.headers = headers;
      request.follow_redirects = true;
      return request;
    };
    remote.forbidden_remedy = "the server does not let us read it: check the address";
    return remote;
  }

  [[noreturn]] static void refuse(const std::string& path, const std::string& what) {
    throw core::DataError(core::shown_path(path), what + ": a plain web server is read-only",
                          "use a folder, s3:// or gs://");
  }

  const HttpCaller& caller_;
};

}  // namespace

std::unique_ptr<Storage> make_http_storage(const HttpCaller& caller) {
  return std::make_unique<HttpStorage>(caller);
}

}  // namespace scaletrain::storage
