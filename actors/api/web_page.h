// The web page's files (actors/api/web, dygraphs and its licence), which actors/api/web/embed.py
// compiles into the binary, and how they travel by HTTP: with an ETag, and compressed for clients
// that accept it. Who may see the page is decided in http_auth.h.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "runtime/http/http.h"

namespace tandem::api {

// All views are of constant data of the program.
struct WebAsset {
  std::string_view path;          // "/", "/assets/app.js", "/licences.txt"; "/unauthorized" is for
                                  // those who may not see "/"
  std::string_view content_type;  // with its charset
  std::string_view etag;          // strong, with its quotes: a digest of `bytes`
  std::string_view bytes;
  std::string_view gzip;  // the same compressed, or empty where that saves next to nothing
};

std::span<const WebAsset> web_assets();
const WebAsset* find_web_asset(std::string_view path);  // null: there is none

// The answer to a GET of a file of the page; nullopt for any other request.
std::optional<http::HttpResponse> web_file(const http::HttpRequest& request);

// The answer to a request for "/" from a browser without a key: a page that says how to get one.
http::HttpResponse not_signed_in();

// Whether the request is for a file that a browser without a key may have, since not_signed_in()
// uses it. Such files say nothing about this cluster.
bool is_open_file(const http::HttpRequest& request);

}  // namespace tandem::api
