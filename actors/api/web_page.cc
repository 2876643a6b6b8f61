// web_assets() itself is in a source that actors/api/web/embed.py generates.
#include "actors/api/web_page.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/base/check.h"

namespace tandem::api {
namespace {

constexpr std::string_view kAssets = "/assets/";
constexpr std::string_view kLicences = "/licences.txt";
constexpr const char* kNotSignedIn = "/unauthorized";
constexpr int kNotModified = 304;

std::string_view path_in(const http::HttpRequest& request) {
  return std::string_view(request.target).substr(0, request.target.find('?'));
}

// A strong ETag names one representation, so the compressed one has another.
std::string etag_of(const WebAsset& asset, bool compressed) {
  std::string etag(asset.etag);
  if (compressed) etag.insert(etag.size() - 1, "-gz");
  return etag;
}

http::HttpResponse answer_with(const WebAsset& asset, const http::HttpRequest& request) {
  // Any mention of gzip counts; q-values are not read.
  const bool compressed =
      !asset.gzip.empty() && request.header("accept-encoding").find("gzip") != std::string::npos;
  const std::string etag = etag_of(asset, compressed);
  http::HttpResponse response{.content_type = std::string(asset.content_type)};
  response.headers = {{"etag", etag}, {"cache-control", "no-cache"}, {"vary", "Accept-Encoding"}};
  // The cache must ask each time (no-cache), and gets no body while the file is the same.
  if (request.header("if-none-match") == etag) {
    response.status = kNotModified;
    return response;
  }
  if (compressed) response.headers["content-encoding"] = "gzip";
  response.body = compressed ? asset.gzip : asset.bytes;
  return response;
}

}  // namespace

const WebAsset* find_web_asset(std::string_view path) {
  const auto assets = web_assets();
  const auto found =
      std::find_if(assets.begin(), assets.end(), [&](const WebAsset& a) { return a.path == path; });
  return found == assets.end() ? nullptr : &*found;
}

std::optional<http::HttpResponse> web_file(const http::HttpRequest& request) {
  const WebAsset* asset = find_web_asset(path_in(request));
  if (request.method != "GET" || !asset || asset->path == kNotSignedIn) return std::nullopt;
  return answer_with(*asset, request);
}

http::HttpResponse not_signed_in() {
  const WebAsset* asset = find_web_asset(kNotSignedIn);
  CHECK(asset != nullptr);
  http::HttpResponse response = answer_with(*asset, {});
  response.status = 401;
  return response;
}

bool is_open_file(const http::HttpRequest& request) {
  const std::string_view path = path_in(request);
  return request.method == "GET" && (path.starts_with(kAssets) || path == kLicences);
}

}  // namespace tandem::api
